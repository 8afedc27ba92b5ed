package topology_test

import (
	"slices"
	"strings"
	"testing"
	"weft/fabric"

	"pgregory.net/rapid"

	"weft/orchestrator/topology"
	"weft/units"
)

var line = topology.LinkSpec{Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond}}

// buildOnLine builds a topology whose links are all line.
func buildOnLine(t *testing.T, l topology.Spec) *topology.Graph {
	t.Helper()
	l.Link, l.MTU = line, 4096
	g, err := topology.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func figure1() topology.Spec {
	return topology.Spec{Kind: "clos", Shape: &topology.Clos{Racks: 2, SwitchingRacks: 2, Leaves: 2, Spines: 2, Cores: 2, RacksPerPod: 1, HostsPerLeaf: 2}}
}

// The links of the example in section 7 of the CCM draft, by the names of its Figure 1.
func TestClosIsFigure1(t *testing.T) {
	g := buildOnLine(t, figure1())
	if g.Hosts != 8 || g.Switches() != 2*4+2*(4+2) {
		t.Fatalf("%d hosts, %d switches", g.Hosts, g.Switches())
	}
	for _, name := range []string{"h0-l1-1-1", "l1-1-1-l2-1-1", "l2-1-1-l3-1-1", "l2-1-1-l3-2-1", "l3-1-1-l4-1-1", "l3-1-1-l4-1-2", "l2-2-1-l3-1-3"} {
		if _, ok := g.LinkNamed(name); !ok {
			t.Errorf("no link %s", name)
		}
	}
	hops := g.Path(0, 7)
	if len(hops) != 8 || g.Paths(0, 7) != 2*2*2*2 {
		t.Errorf("%d links, %d paths from h0 to h7", len(hops), g.Paths(0, 7))
	}
	pods := figure1()
	pods.Shape.(*topology.Clos).RacksPerPod = 2
	if g := buildOnLine(t, pods); len(g.Path(0, 7)) != 6 {
		t.Errorf("racks of a pod: %d links", len(g.Path(0, 7)))
	}
}

func dragonfly() topology.Spec {
	return topology.Spec{Kind: "dragonfly-plus", Shape: &topology.DragonflyPlus{Groups: 4, Leaves: 2, Spines: 2, HostsPerLeaf: 2}}
}

// Between groups there are as many shortest paths as spines; detours lead by any third group.
func TestDragonflyPlus(t *testing.T) {
	d := dragonfly()
	d.Shape.(*topology.DragonflyPlus).Detours = true
	g := buildOnLine(t, d)
	if g.Hosts != 16 || g.Switches() != 16 || len(g.Path(0, 15)) != 5 || g.Paths(0, 15) != 2 {
		t.Errorf("%d hosts, %d switches, %d links, %d paths", g.Hosts, g.Switches(), len(g.Path(0, 15)), g.Paths(0, 15))
	}
	spine, _ := g.NodeNamed("spine-1-1")
	leaf, _ := g.NodeNamed("leaf-1-1")
	r := g.Routes()
	var by []string
	for _, l := range r.Groups(spine)[r.Asides(spine)[15]] {
		by = append(by, g.Nodes[g.Links[l].Other(spine)].Name)
	}
	if want := []string{"spine-2-1", "spine-3-1"}; !slices.Equal(by, want) {
		t.Errorf("detours by %q, want %q", by, want)
	}
	if r.Asides(leaf)[15] != -1 || r.Asides(spine)[0] != -1 {
		t.Error("a detour from a leaf, or within the group")
	}
	if g := buildOnLine(t, dragonfly()); g.Routes().Asides(spine) != nil {
		t.Error("detours that were not asked for")
	}
}

func TestTorus(t *testing.T) {
	g := buildOnLine(t, topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{4, 4}, HostsPerSwitch: 1}})
	if g.Hosts != 16 || len(g.Links) != 16+32 || g.Paths(0, 5) != 2 || len(g.Path(0, 10)) != 6 {
		t.Errorf("%d hosts, %d links, %d paths, %d links on one", g.Hosts, len(g.Links), g.Paths(0, 5), len(g.Path(0, 10)))
	}
	for _, name := range []string{"t0-0-t0-1", "t0-3-t0-0", "t3-0-t0-0"} {
		if _, ok := g.LinkNamed(name); !ok {
			t.Errorf("no link %s", name)
		}
	}
	if g := buildOnLine(t, topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{2, 3, 4}, HostsPerSwitch: 2}}); g.Hosts != 48 || len(g.Links) != 48+12+24+24 {
		t.Errorf("3D: %d hosts, %d links", g.Hosts, len(g.Links))
	}
}

// Where PFC holds packets back, a cycle of channels that wait for each other is a deadlock: trees
// and their like have none, a torus and detours do, and routes that go up and down have none
// anywhere.
func TestCircles(t *testing.T) {
	torus := topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{4, 4}, HostsPerSwitch: 1}}
	detours := dragonfly()
	detours.Shape.(*topology.DragonflyPlus).Detours = true
	tree := torus
	tree.UpDown = true
	for name, c := range map[string]struct {
		t      topology.Spec
		circle bool
	}{
		"fat-tree":           {topology.Spec{Kind: "fat-tree", Shape: &topology.FatTree{K: 4}}, false},
		"clos":               {figure1(), false},
		"dragonfly-plus":     {dragonfly(), false},
		"with detours":       {detours, true},
		"torus":              {torus, true},
		"torus, up and down": {tree, false},
		"3D torus, the same": {topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{3, 3, 3}, HostsPerSwitch: 1}, UpDown: true}, false},
	} {
		g := buildOnLine(t, c.t)
		circle := g.Circle()
		if (circle != nil) != c.circle {
			t.Errorf("%s: %v", name, circle)
		}
		for i, p := range circle { // each begins where the one before ends
			from, to := g.Links[p/2], g.Links[circle[(i+1)%len(circle)]/2]
			if at := []topology.NodeID{from.B, from.A}[p%2]; at != to.A && at != to.B {
				t.Errorf("%s: %v is no circle", name, circle)
			}
		}
	}
}

// Whatever the network, routes up and down lead everywhere, without a cycle and without a loop.
func TestUpDownRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyTopology().Draw(t, "topology")
		l.UpDown = true
		g, err := topology.Build(l)
		if err != nil {
			if strings.Contains(err.Error(), "too many") {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		if c := g.Circle(); c != nil {
			t.Fatalf("%v", c)
		}
		a := topology.NodeID(rapid.IntRange(0, g.Hosts-1).Draw(t, "a"))
		b := topology.NodeID(rapid.IntRange(0, g.Hosts-1).Draw(t, "b"))
		for at, hops := g.Home(a), 0; at != g.Home(b); hops++ {
			paths := g.Routes().NextHops(at, b)
			if len(paths) == 0 || hops > len(g.Nodes) {
				t.Fatalf("%d paths from %s to %s after %d hops", len(paths), g.Nodes[at].Name, g.Nodes[b].Name, hops)
			}
			at = g.Links[rapid.SampledFrom(paths).Draw(t, "way")].Other(at)
		}
	})
}

func TestNewKindsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*topology.Spec){
		"spines: 0 is out of range; expected a whole number from 1 to 4096":                     func(l *topology.Spec) { l.Shape.(*topology.Clos).Spines = 0 },
		"racks_per_pod: 2 computing racks cannot be divided into pods of 3; expected a divisor": func(l *topology.Spec) { l.Shape.(*topology.Clos).RacksPerPod = 3 },
		"at most 65536": func(l *topology.Spec) { *l.Shape.(*topology.Clos) = topology.Clos{4096, 1, 4096, 1, 1, 1, 1} },
		"dimensions: 1 items; expected 2 to 3": func(l *topology.Spec) {
			*l = topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{4}, HostsPerSwitch: 1}}
		},
		"dimensions: 1 is out of range": func(l *topology.Spec) {
			*l = topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{4, 1}, HostsPerSwitch: 1}}
		},
		"hosts_per_switch: 0 is out of range": func(l *topology.Spec) {
			*l = topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{4, 4}}}
		},
		"want at most": func(l *topology.Spec) {
			*l = topology.Spec{Kind: "torus", Shape: &topology.Torus{Dimensions: []int{64, 64, 64}, HostsPerSwitch: 1}}
		},
		"groups: 0 is out of range": func(l *topology.Spec) { *l = topology.Spec{Kind: "dragonfly-plus", Shape: &topology.DragonflyPlus{}} },
		"tiers":                     func(l *topology.Spec) { l.Tiers = map[string]topology.LinkSpec{"edge": line} },
	} {
		l := figure1()
		change(&l)
		l.Link, l.MTU = line, 4096
		if _, err := topology.Build(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
