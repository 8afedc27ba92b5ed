package run

import (
	"strings"
	"testing"

	"weft/orchestrator/lab"
	"weft/transport"
)

const sixteen = `
weft: 1
name: groups
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4, link: {rate: 100Gbps, delay: 1us}}
`

// Groups of ranks take part on their own: no host is in two, every one has its own time, and the item has the slowest.
func TestGroupsRunOnTheirOwn(t *testing.T) {
	const text = sixteen + `
workload:
  - {collective: all-reduce, ranks: {groups: 3, size: 5}, size: 1MB}
  - {collective: permute, ranks: {groups: 2, size: 8}, size: 1MB, start: previous}
expect: [collective.0.time >= collective.0.fastest, collective.1.ranks == 8]
`
	x := build(t, text)
	if len(x.items) != 5 {
		t.Fatalf("%d items, want one for each group: 5", len(x.items))
	}
	in := map[transport.HostID]int{}
	for _, it := range x.items[:3] {
		for _, h := range it.Ranks {
			in[h]++
		}
	}
	if len(in) != 15 {
		t.Errorf("%d hosts in 3 groups of 5", len(in))
	}
	s, err := simulateIn(t, t.TempDir(), text)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Verified || len(s.Collectives) != 2 {
		t.Fatalf("verified %t, %d collectives", s.Verified, len(s.Collectives))
	}
	c := s.Collectives[0]
	if c.Groups != 3 || c.Ranks != 5 || !(c.FastestUS > 0) || c.FastestUS > c.TimeUS || c.Checked != 3*5*1_000_000/4 {
		t.Errorf("three rings of five: %+v", c)
	}
	for _, e := range s.Expect {
		if !e.OK {
			t.Errorf("%s: %s", e.That, e.Note)
		}
	}
}

// As many links of each leaf that loses some are down, and another seed draws others.
func TestDrawnLinksAreDown(t *testing.T) {
	const text = `
weft: 1
name: drawn
topology: {kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 2, down: {random: 6, among: 2 leaves}}
workload: [{collective: permute, size: 1MB}]
sweep: {seed: [1, 2]}
`
	labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range labs {
		x, err := Build(l)
		if err != nil {
			t.Fatal(err)
		}
		var down []string
		by := map[string]int{}
		for _, k := range x.Graph.Links {
			if k.Down {
				down = append(down, k.Name)
				leaf, _, _ := strings.Cut(k.Name, "-")
				by[leaf]++
			}
		}
		if len(down) != 6 || len(by) != 2 {
			t.Errorf("down: %v; want three uplinks of each of two leaves", down)
		}
		for leaf, n := range by {
			if n != 3 {
				t.Errorf("%s lost %d links, want 3", leaf, n)
			}
		}
		names = append(names, strings.Join(down, " "))
	}
	if names[0] == names[1] {
		t.Errorf("two seeds drew the same links: %s", names[0])
	}
}
