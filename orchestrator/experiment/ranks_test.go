package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"weft/collectives/schedule"
	"weft/orchestrator/lab"
	"weft/transport"
	"weft/units"
)

// The rank that a collective is about is the host that the lab names, its first rank, or one that
// was drawn.
func TestRoots(t *testing.T) {
	for item, want := range map[string]int{
		"{collective: broadcast, ranks: [h3, h1, h6], root: h6, size: 1KB}": 6,
		"{collective: reduce, ranks: [h3, h1, h6], size: 1KB}":              3,
		"{collective: scatter, root: h5, size: 1KB}":                        5,
		"{collective: ps, ranks: 3, size: 1KB}":                             3,
		"{collective: ps, size: 1KB}":                                       0,
	} {
		x := build(t, eight+"workload: ["+item+"]")
		it := x.Item(0)
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
		if err := x.Emulable(); (err == nil) != emulable {
			t.Errorf("%s: %v", item, err)
		}
	}
}

// A job with a program that is too large for a message to a node is refused by name where it would
// be emulated, and only there.
func TestLargePrograms(t *testing.T) {
	op := schedule.Op{Kind: 255, Buf: 255, Stage: 255, Flow: math.MinInt32, Tag: math.MaxUint32, Peer: math.MinInt64,
		Off: math.MinInt64, Len: math.MinInt64}
	one, err := json.Marshal(op)
	if err != nil || len(one) > opBytes {
		t.Errorf("an operation takes %d bytes, %v; want at most %d: %s", len(one), err, opBytes, one)
	}
	if op.After = []int32{1 << 30}; true {
		if more, err := json.Marshal(op); err != nil || len(more) > opBytes {
			t.Errorf("with a dependency %d bytes, %v", len(more), err)
		}
	}
	for n, refused := range map[int]bool{1000: false, 260_000: true} {
		var job strings.Builder
		job.WriteString("num_ranks 2\nrank 0 {\nl0: send 8b to 1 tag 1\n")
		for i := range n {
			fmt.Fprintf(&job, "l%d: calc 1\n", i+1)
		}
		job.WriteString("}\nrank 1 {\nrecv 8b from 0 tag 1\n}\n")
		labs, err := lab.Parse("lab.yaml", []byte(eight+"workload: [{trace: job.goal, ranks: [h3, h5]}]"),
			lab.Options{Files: fstest.MapFS{"job.goal": {Data: []byte(job.String())}}})
		if err != nil {
			t.Fatal(err)
		}
		x, err := Build(labs[0])
		if err != nil {
			t.Fatal(err)
		}
		want := "workload.0: the program of h3 has 260001 operations"
		if err := x.Emulable(); (err != nil) != refused || refused && !strings.Contains(err.Error(), want) {
			t.Errorf("%d operations: %v; want %q", n, err, want)
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

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		item string
		want string // hosts of the ranks, and the rank of the root
	}{
		{"{collective: all-to-all, size: 1MB}", "[0 1 2 3 4] -1"},
		{"{collective: all-to-all, ranks: 3, size: 1MB}", "[0 1 2] -1"},
		{"{collective: all-reduce, ranks: [h4, h0, h2], size: 1MB}", "[4 0 2] -1"},
		{"{collective: incast, ranks: 2, size: 1MB}", "[0 1 2] 2"},
		{"{collective: incast, ranks: 2, root: h4, size: 1MB}", "[0 1 4] 2"},
		{"{collective: incast, ranks: all, size: 1MB}", "[1 2 3 4 0] 4"},
		{"{collective: incast, ranks: [h0, h1, h3], size: 1MB}", "[0 1 3 2] 3"},
	} {
		x := build(t, star+"workload: ["+c.item+"]")
		it := x.Item(0)
		if got := fmt.Sprint(it.Ranks, " ", it.Root); got != c.want {
			t.Errorf("%s: ranks %s, want %s", c.item, got, c.want)
		}
	}
}

func TestRandomRanksLeaveTheRootOut(t *testing.T) {
	for seed := range 20 {
		x := build(t, star+fmt.Sprintf("seed: %d\nworkload: [{collective: incast, ranks: {random: 4}, root: h3, size: 1MB}]", seed))
		seen := map[transport.HostID]bool{}
		for _, h := range x.Item(0).Ranks {
			seen[h] = true
		}
		if len(seen) != 5 || x.Item(0).Ranks[4] != 3 {
			t.Errorf("seed %d: ranks %v", seed, x.Item(0).Ranks)
		}
	}
}

// PC4, Table I, read to the letter: line/(n-1) for an all-to-all of n, however many peers a rank
// serves at once; also inside CCM.
func TestBaseRatesOfTheTable(t *testing.T) {
	const item = "workload: [{collective: all-to-all, parallel: 2, size: 1MB}]\n"
	for transport, flows := range map[string]units.Bandwidth{
		"{kind: pc4}":                          2,
		"{kind: pc4, pc4: {base_rate: table}}": 4,
		"{kind: ccm, ccm: {inner: pc4, pc4: {base_rate: table}}}": 4,
	} {
		for _, s := range build(t, star+item+"transport: "+transport).Conns {
			if want := 100 * units.Gbps / flows; s.Initial != want {
				t.Errorf("%s: connection %d starts at %d, want %d", transport, s.ID, s.Initial, want)
			}
		}
	}
}

// PC4, Table I: the base rates of the flows that arrive at a host add up to its line rate.
func TestPlannedBaseRatesFillTheLine(t *testing.T) {
	for item, flows := range map[string]int{
		"{collective: incast, ranks: 4, size: 1MB}":        4,
		"{collective: all-to-all, size: 1MB}":              4,
		"{collective: all-reduce, size: 1MB}":              1,
		"{collective: all-to-all, parallel: 2, size: 1MB}": 2,
		"{collective: permute, size: 1MB}":                 1,

		"{collective: all-reduce, algorithm: direct, size: 1MB}":                4,
		"{collective: all-to-all, algorithm: windowed, parallel: 3, size: 1MB}": 3,
		"{collective: broadcast, size: 1MB}":                                    1,
	} {
		x := build(t, star+"workload: ["+item+"]")
		for _, s := range x.Conns {
			if want := 100 * units.Gbps / units.Bandwidth(flows); s.Initial != want {
				t.Errorf("%s: connection %d starts at %d, want %d", item, s.ID, s.Initial, want)
			}
		}
	}
}

// PC4, section II-A: "each host is aware of all incoming and outgoing traffic". Flows of another
// item that arrive when an item begins share the line, those that are over or to come do not. At
// 100 Gb/s 10 MB take 0.8 ms.
func TestPlannedRatesAreSharedAcrossItems(t *testing.T) {
	const first = "{collective: incast, ranks: [h1], root: h0, size: 10MB}, "
	for second, flows := range map[string][]units.Bandwidth{
		"{collective: incast, ranks: [h2], root: h0, size: 10MB}":                  {2, 2},
		"{collective: incast, ranks: [h2, h3], root: h0, size: 10MB}":              {3, 3, 3},
		"{collective: incast, ranks: [h2], root: h0, size: 10MB, start: 790us}":    {1, 2},
		"{collective: incast, ranks: [h2], root: h0, size: 10MB, start: 810us}":    {1, 1},
		"{collective: incast, ranks: [h1], root: h0, size: 10MB, start: previous}": {1, 1},
		"{collective: incast, ranks: [h2], root: h3, size: 10MB}":                  {1, 1},
		"{collective: incast, ranks: [h0], root: h3, size: 10MB}":                  {1, 1},
		"{collective: incast, ranks: [h2], root: h0, size: 10MB, start: 400us}, " +
			"{collective: incast, ranks: [h3], root: h0, size: 10MB, start: 1100us}": {1, 2, 3},
		"{collective: incast, ranks: [h2], root: h0, size: 2MB, start: 400us}, " +
			"{collective: incast, ranks: [h3], root: h0, size: 2MB, start: 750us}": {1, 2, 2},
	} {
		x := build(t, star+"transport: {kind: pc4}\nworkload: ["+first+second+"]")
		for i, s := range x.Conns {
			if want := 100 * units.Gbps / flows[i]; s.Initial != want {
				t.Errorf("%s: connection %d starts at %v, want %v", second, i, s.Initial, want)
			}
		}
	}
	for _, source := range []string{"table", "observed", "off"} {
		x := build(t, star+"transport: {kind: pc4, pc4: {base_rate: "+source+"}}\nworkload: ["+first+
			"{collective: incast, ranks: [h2], root: h0, size: 10MB}]")
		if got := x.Conns[1].Initial; got != 100*units.Gbps {
			t.Errorf("with base_rate: %s a connection starts at %v", source, got)
		}
	}
}

func TestItemNames(t *testing.T) {
	l := &lab.Item{Index: 2, Ranks: lab.Ranks{Groups: 2, Group: 1}, Line: &lab.Line{Step: 1, Number: 4, Name: "grads", Groups: 2, Group: 1}}
	if got, want := itemName(l), "item 2, group 1, step 1, collective 4 (grads), its group 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
