package run

import (
	"fmt"
	"testing"

	"weft/collectives/schedule"
	"weft/units"
)

const eight = `
weft: 1
name: eight
topology: {kind: star, hosts: 8, link: {rate: 100Gbps, delay: 1us}}
`

// Every collective runs by every algorithm, on every type and with every reduction that it has, and the data is right.
func TestEveryCollectiveRuns(t *testing.T) {
	n := 0
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			f, err := schedule.About(c, a)
			if err != nil {
				t.Fatal(err)
			}
			item := fmt.Sprintf("collective: %s, algorithm: %s, size: 100KB", c, a)
			if f.Windowed {
				item += ", parallel: 3"
			}
			if f.Group {
				item += ", group: 2"
			}
			if f.Order {
				item += ", far_first: true"
			}
			item += fmt.Sprintf(", type: %s", schedule.Types()[n%len(schedule.Types())])
			if f.Reduces {
				item += fmt.Sprintf(", op: %s", schedule.Reductions()[n%len(schedule.Reductions())])
			}
			n++
			s, err := simulateIn(t, t.TempDir(), eight+"workload: [{"+item+"}]")
			if err != nil {
				t.Errorf("%s: %v", item, err)
				continue
			}
			if got := s.Collectives[0]; !s.Verified || s.Flows.Unfinished != 0 || got.Checked == 0 || !(got.BusBWGbps > 0) || got.BusBWGbps > 100 {
				t.Errorf("%s: verified %t, %+v", item, s.Verified, got)
			}
		}
	}
}

// The rank that a collective is about is the host that the lab names, its first rank, or one that was drawn.
func TestRoots(t *testing.T) {
	for item, want := range map[string]int{
		"{collective: broadcast, ranks: [h3, h1, h6], root: h6, size: 1KB}": 6,
		"{collective: reduce, ranks: [h3, h1, h6], size: 1KB}":              3,
		"{collective: scatter, root: h5, size: 1KB}":                        5,
		"{collective: ps, ranks: 3, size: 1KB}":                             3,
		"{collective: ps, size: 1KB}":                                       0,
	} {
		x := build(t, eight+"workload: ["+item+"]")
		it := x.item(0)
		if got := int(it.Ranks[it.Root]); got != want {
			t.Errorf("%s: root h%d, want h%d", item, got, want)
		}
	}
	refused := 0
	for h := range 8 {
		if _, err := Build(parse(t, eight+fmt.Sprintf("workload: [{collective: gather, ranks: {random: 2}, root: h%d, size: 1KB}]", h))); err != nil {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d of 8 roots refused where 2 ranks are drawn", refused)
	}
}

// Sums of bfloat16 are exact for fewer ranks than maxima are; the simulator needs no real data.
func TestRealDataBoundsRanks(t *testing.T) {
	for item, emulable := range map[string]bool{
		"{collective: all-reduce, type: bfloat16, size: 4KB}":          false,
		"{collective: all-reduce, type: bfloat16, op: max, size: 4KB}": true,
		"{collective: all-gather, type: bfloat16, size: 4KB}":          true,
		"{collective: all-reduce, size: 4KB}":                          true,
	} {
		x := build(t, "weft: 1\nname: many\ntopology: {kind: star, hosts: 300}\nworkload: ["+item+"]")
		if err := x.emulable(); (err == nil) != emulable {
			t.Errorf("%s: %v", item, err)
		}
	}
}

// Source ports leave room for every path of a connection.
func TestPortsOfPaths(t *testing.T) {
	x := build(t, eight+"transport: {kind: strack}\nworkload: [{collective: all-to-all, size: 1KB}, {collective: all-to-all, size: 1KB}]")
	for _, s := range x.Conns {
		if last := int(s.SrcPort) + s.Paths() - 1; s.SrcPort < 49152 || last > 65535 {
			t.Errorf("connection %d has ports %d to %d", s.ID, s.SrcPort, last)
		}
		if s.NetRTT < 4*units.Microsecond {
			t.Errorf("connection %d: network RTT %v", s.ID, s.NetRTT)
		}
	}
}
