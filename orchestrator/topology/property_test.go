package topology_test

import (
	"fmt"
	"net/netip"
	"testing"
	"weft/fabric"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weft/orchestrator/topology"
	"weft/units"
)

// anyTopology draws a section of any kind, also a custom one: a tree of switches with some links
// added.
func anyTopology() *rapid.Generator[topology.Spec] {
	return rapid.Custom(func(t *rapid.T) topology.Spec {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return fatTree(2 * rapid.IntRange(1, 4).Draw(t, "k/2"))
		case 1:
			top := leafSpine(rapid.IntRange(2, 9).Draw(t, "leaves"), rapid.IntRange(1, 9).Draw(t, "spines"), rapid.IntRange(1, 9).Draw(t, "hosts"))
			top.Shape.(*topology.LeafSpine).Oversubscription = rapid.SampledFrom([]float64{0.5, 1, 3, 7}).Draw(t, "oversubscription")
			return top
		case 2:
			return dumbbell(rapid.IntRange(1, 20).Draw(t, "hosts"))
		case 3:
			return star(rapid.IntRange(2, 600).Draw(t, "hosts"))
		}
		return anyCustom(t)
	})
}

// anyCustom draws a custom topology.
func anyCustom(t *rapid.T) topology.Spec {
	top := new(topology.Custom)
	spec := func() topology.LinkSpec {
		return topology.LinkSpec{
			Link: fabric.Link{Rate: rapid.SampledFrom([]units.Bandwidth{units.Gbps, 7 * units.Gbps, 100 * units.Gbps}).Draw(t, "rate"), Delay: units.Time(rapid.IntRange(0, 3).Draw(t, "delay")) * units.Microsecond},
		}
	}
	switches := rapid.IntRange(1, 12).Draw(t, "switches")
	hosts := rapid.IntRange(2, 12).Draw(t, "hosts")
	for i := range switches {
		top.Nodes = append(top.Nodes, topology.CustomNode{Name: fmt.Sprintf("s%d", i), Switch: true})
	}
	for i := range hosts {
		top.Nodes = append(top.Nodes, topology.CustomNode{Name: fmt.Sprintf("h%d", i)})
		at := rapid.IntRange(0, switches-1).Draw(t, "at")
		top.Links = append(top.Links, topology.CustomLink{A: fmt.Sprintf("s%d", at), B: fmt.Sprintf("h%d", i), LinkSpec: spec()})
	}
	for i := 1; i < switches; i++ {
		to := rapid.IntRange(0, i-1).Draw(t, "to")
		top.Links = append(top.Links, topology.CustomLink{A: fmt.Sprintf("s%d", i), B: fmt.Sprintf("s%d", to), LinkSpec: spec()})
	}
	for range rapid.IntRange(0, 12).Draw(t, "more") {
		a, b := rapid.IntRange(0, switches-1).Draw(t, "a"), rapid.IntRange(0, switches-1).Draw(t, "b")
		if a > b { // one direction only: the other would be named differently and is as good
			top.Links = append(top.Links, topology.CustomLink{A: fmt.Sprintf("s%d", a), B: fmt.Sprintf("s%d", b), LinkSpec: spec()})
		}
	}
	return topology.Spec{Kind: "custom", Shape: top, Link: wire, MTU: 1000}
}

func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := 2 * rapid.IntRange(1, 8).Draw(t, "k/2")
		g, err := topology.Build(fatTree(k))
		if err != nil {
			t.Fatal(err)
		}
		// "all k-port switches ... supports k^3/4 hosts" (Al-Fares et al., section 3.1).
		if g.Hosts != k*k*k/4 || g.Switches() != 5*k*k/4 || len(g.Links) != 3*k*k*k/4 {
			t.Fatalf("k %d: hosts %d switches %d links %d", k, g.Hosts, g.Switches(), len(g.Links))
		}
		for s := g.Hosts; s < len(g.Nodes); s++ {
			if n := len(g.Adjacent[s]); n != k {
				t.Fatalf("k %d: %s has %d ports", k, g.Nodes[s].Name, n)
			}
		}
		// "(k/2)^2 shortest paths between any two hosts on different pods".
		if got := g.Paths(0, topology.NodeID(g.Hosts-1)); got != k*k/4 {
			t.Fatalf("k %d: %d paths between pods, want %d", k, got, k*k/4)
		}
		if x := g.Extent(); x.Hops != 6 || x.Paths != k*k/4 || x.Propagation != 6*units.Microsecond {
			t.Fatalf("k %d: extent %+v", k, x)
		}
		if k > 2 && g.Paths(0, topology.NodeID(k/2)) != k/2 {
			t.Fatalf("k %d: %d paths within a pod, want %d", k, g.Paths(0, topology.NodeID(k/2)), k/2)
		}
	})
}

func TestNodesAreWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := topology.Build(anyTopology().Draw(t, "topology"))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		once := func(s string) {
			if seen[s] {
				t.Fatalf("%s twice", s)
			}
			seen[s] = true
		}
		subnet := netip.MustParsePrefix(fmt.Sprintf("10.0.0.0/%d", topology.PrefixLen))
		for i, n := range g.Nodes {
			once(n.Name)
			if int(n.ID) != i || (n.Kind == topology.Host) != (i < g.Hosts) {
				t.Fatalf("node %d is %+v", i, n)
			}
			if got, ok := g.NodeNamed(n.Name); !ok || got != n.ID {
				t.Fatalf("%s is found as %d", n.Name, got)
			}
			if n.Kind == topology.Host {
				once(n.Addr)
				a, err := netip.ParseAddr(n.Addr)
				if err != nil || !subnet.Contains(a) {
					t.Fatalf("%s has address %q: %v", n.Name, n.Addr, err)
				}
			}
		}
		for i, l := range g.Links {
			once(l.Name)
			if int(l.ID) != i || l.A == l.B || (g.Nodes[l.B].Kind == topology.Host) {
				t.Fatalf("link %d is %+v", i, l)
			}
			if got, ok := g.LinkNamed(l.Name); !ok || got != l.ID {
				t.Fatalf("%s is found as %d", l.Name, got)
			}
		}
	})
}

func TestSameSectionSameGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := anyTopology().Draw(t, "topology")
		a, errA := topology.Build(top)
		b, errB := topology.Build(top)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if d := cmp.Diff(a, b, cmpopts.EquateComparable(), cmp.AllowUnexported(topology.Graph{}, topology.Routes{})); d != "" {
			t.Fatal(d)
		}
	})
}
