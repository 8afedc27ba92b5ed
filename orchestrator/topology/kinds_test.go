package topology

import (
	"testing"

	"weft/orchestrator/lab"
	"weft/units"
)

// A kind that is not searched for circles has none: the claim of its registration, at several sizes. A kind that a lab can name is
// registered here, and the other way round.
func TestKindsThatAreNotSearchedHaveNoCircle(t *testing.T) {
	sizes := map[string][]lab.Topology{
		"fat-tree":   {{K: 2}, {K: 4}, {K: 6}},
		"leaf-spine": {{Leaves: 2, Spines: 1, HostsPerLeaf: 1}, {Leaves: 5, Spines: 3, HostsPerLeaf: 2}},
		"dumbbell":   {{Hosts: 1}, {Hosts: 3}},
		"star":       {{Hosts: 2}, {Hosts: 9}},
	}
	for _, k := range kinds {
		if k.free != upAndDown {
			continue
		}
		if len(sizes[k.name]) == 0 {
			t.Errorf("%s says that %q, and has no network here that shows it", k.name, k.free)
		}
		for _, s := range sizes[k.name] {
			s.Kind, s.MTU, s.Link = k.name, 1000, lab.LinkSpec{Rate: units.Gbps, Delay: units.Microsecond}
			g, err := Build(s)
			if err != nil {
				t.Fatal(err)
			}
			if c := g.Circle(); c != nil {
				t.Errorf("%s has the circle %v", g.Title, c)
			}
		}
	}
	for i, k := range lab.TopologyKinds() {
		if i >= len(kinds) || kinds[i].name != k.Name {
			t.Fatalf("package lab has %s as kind %d, which is another one here", k.Name, i)
		}
	}
}

// A kind is searched unless its registration gives a reason, so that a new one cannot miss it.
func TestNewKindsAreSearched(t *testing.T) {
	defer func(before []kind) { kinds = before }(kinds)
	kinds = append(kinds, kind{name: "ring", build: func(b *builder) error {
		b.g.Title = "ring"
		hosts, ring := b.many(5, "h", Host, "host"), b.many(5, "s", Switch, "switch")
		for i := range NodeID(5) {
			b.link(ring+i, hosts+i, "host", b.t.Link)
			b.link(ring+i, ring+(i+1)%5, "switch", b.t.Link)
		}
		return nil
	}})
	g, err := Build(lab.Topology{Kind: "ring", MTU: 1000, Link: lab.LinkSpec{Rate: units.Gbps}})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Deadlock()) == 0 {
		t.Error("a ring of five switches could not deadlock")
	}
}
