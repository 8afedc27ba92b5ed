package topology

import (
	"testing"
	"weft/fabric"

	"weft/params"
	"weft/units"
)

// A kind that is not searched for circles has none: the claim of its registration, at several
// sizes.
func TestKindsThatAreNotSearchedHaveNoCircle(t *testing.T) {
	sizes := map[string][]Shape{
		"fat-tree":   {&FatTree{2}, &FatTree{4}, &FatTree{6}},
		"leaf-spine": {&LeafSpine{Leaves: 2, Spines: 1, HostsPerLeaf: 1, Oversubscription: 1}, &LeafSpine{Leaves: 5, Spines: 3, HostsPerLeaf: 2, Oversubscription: 1}},
		"dumbbell":   {&Dumbbell{1}, &Dumbbell{3}},
		"star":       {&Star{2}, &Star{9}},
	}
	for _, k := range kinds {
		if k.reason == "" {
			continue
		}
		if len(sizes[k.Name]) == 0 {
			t.Errorf("%s says that %q, and has no network here that shows it", k.Name, k.reason)
		}
		for _, s := range sizes[k.Name] {
			g, err := Build(Spec{Kind: k.Name, Shape: s, MTU: 1000, Link: LinkSpec{Link: fabric.Link{Rate: units.Gbps, Delay: units.Microsecond}}})
			if err != nil {
				t.Fatal(err)
			}
			if c := g.Circle(); c != nil {
				t.Errorf("%s has the circle %v", g.Title, c)
			}
		}
	}
}

// ring is a kind that is registered by one line.
type ring struct{ Size int }

func (r *ring) Keys() []params.Key {
	return []params.Key{params.New("size", params.Integer(&r.Size, 3, 100), "switches")}
}
func (r *ring) Hosts() int { return r.Size }

// build implements the kind.
func (r *ring) build(b *builder) error {
	b.g.Title = "ring"
	hosts, ring := b.many(r.Size, "h", Host, "host"), b.many(r.Size, "s", Switch, "switch")
	for i := range r.Size {
		b.link(ring+NodeID(i), hosts+NodeID(i), "host", b.t.Link)
		b.link(ring+NodeID(i), ring+NodeID((i+1)%r.Size), "switch", b.t.Link)
	}
	return nil
}

// A kind is searched unless its registration gives a reason, so that a new one cannot miss it; so
// is what somebody draws by hand.
func TestNewKindsAreSearched(t *testing.T) {
	defer func(before []Registration) { kinds = before }(kinds)
	kinds = append(kinds, register("ring", "a ring", ring{5}))
	drawn := new(Custom)
	for _, s := range []string{"0", "1", "2", "3", "4"} {
		drawn.Nodes = append(drawn.Nodes, CustomNode{Name: "h" + s}, CustomNode{Name: "s" + s, Switch: true})
		drawn.Links = append(drawn.Links, CustomLink{A: "h" + s, B: "s" + s}, CustomLink{A: "s" + s, B: "s" + string('0'+(s[0]-'0'+1)%5)})
	}
	for _, s := range []Spec{{Kind: "ring", Shape: &ring{5}}, {Kind: "custom", Shape: drawn}} {
		s.MTU, s.Link = 1000, LinkSpec{Link: fabric.Link{Rate: units.Gbps}}
		g, err := Build(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Deadlock()) == 0 {
			t.Errorf("a %s of five switches could not deadlock", s.Kind)
		}
	}
}
