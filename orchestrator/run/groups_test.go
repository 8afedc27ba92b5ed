package run

import (
	"testing"

	"weft/transport"
)

const sixteen = `
weft: 1
name: groups
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4, link: {rate: 100Gbps, delay: 1us}}
`

// Groups of ranks run independently: no host is in two groups, each group has its own time, and the
// item has that of the slowest.
func TestGroupsRunOnTheirOwn(t *testing.T) {
	const text = sixteen + `
workload:
  - {collective: all-reduce, ranks: {groups: 3, size: 5}, size: 1MB}
  - {collective: permute, ranks: {groups: 2, size: 8}, size: 1MB, start: previous}
expect: [collective.0.time >= collective.0.fastest, collective.1.ranks == 8]
`
	x := build(t, text)
	if len(x.Items) != 5 {
		t.Fatalf("%d items, want one for each group: 5", len(x.Items))
	}
	in := map[transport.HostID]int{}
	for _, it := range x.Items[:3] {
		for _, h := range it.Ranks {
			in[h]++
		}
	}
	if len(in) != 15 {
		t.Errorf("%d hosts in 3 groups of 5", len(in))
	}
	s := mustSimulate(t, text)
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
