package topology_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"weft/fabric"

	"weft/internal/plural"
	"weft/orchestrator/topology"
	"weft/units"
)

// wire is the link of most tests: 100 Gb/s, 1 us.
var wire = topology.LinkSpec{Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond}}

// fatTree returns a fat-tree of k-port switches.
func fatTree(k int) topology.Spec {
	return topology.Spec{Kind: "fat-tree", Shape: &topology.FatTree{K: k}, Link: wire, MTU: 4096}
}

// leafSpine returns a leaf-spine network.
func leafSpine(leaves, spines, hostsPerLeaf int) topology.Spec {
	return topology.Spec{Kind: "leaf-spine", Shape: &topology.LeafSpine{Leaves: leaves, Spines: spines, HostsPerLeaf: hostsPerLeaf, Oversubscription: 1}, Link: wire, MTU: 4096}
}

// dumbbell returns a dumbbell.
func dumbbell(hosts int) topology.Spec {
	return topology.Spec{Kind: "dumbbell", Shape: &topology.Dumbbell{Side: hosts}, Link: wire, MTU: 4096}
}

// star returns a star.
func star(hosts int) topology.Spec {
	return topology.Spec{Kind: "star", Shape: &topology.Star{Size: hosts}, Link: wire, MTU: 4096}
}

// custom reads "h0-s0 s0-s1@3us h1-s1": links, with a delay where it is not that of wire. Nodes
// whose name begins with s are switches; they are listed as they first appear, after the names in
// also.
func custom(links string, also ...string) topology.Spec {
	t := new(topology.Custom)
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			t.Nodes = append(t.Nodes, topology.CustomNode{Name: name, Switch: strings.HasPrefix(name, "s")})
		}
	}
	for _, name := range also {
		add(name)
	}
	for _, l := range strings.Fields(links) {
		l, delay, slow := strings.Cut(l, "@")
		a, b, _ := strings.Cut(l, "-")
		add(a)
		add(b)
		spec := wire
		if slow {
			spec.Delay, _ = units.ParseTime(delay)
		}
		t.Links = append(t.Links, topology.CustomLink{A: a, B: b, LinkSpec: spec})
	}
	return topology.Spec{Kind: "custom", Shape: t, Link: wire, MTU: 4096}
}

// namedSpec is a topology with a name for subtests.
type namedSpec struct {
	name string
	t    topology.Spec
}

// largeSpecs returns topologies with at least a thousand hosts.
func largeSpecs() []namedSpec {
	return []namedSpec{
		{"fat-tree-1024", fatTree(16)},
		{"leaf-spine-8192", leafSpine(128, 64, 64)},
		{"fat-tree-8192", fatTree(32)},
	}
}

// build builds a topology that must be valid.
func build(tb testing.TB, t topology.Spec) *topology.Graph {
	tb.Helper()
	g, err := topology.Build(t)
	if err != nil {
		tb.Fatalf("Build(%+v): %v", t, err)
	}
	return g
}

// nodeID returns the number of a node that must be there.
func nodeID(tb testing.TB, g *topology.Graph, name string) topology.NodeID {
	tb.Helper()
	n, ok := g.NodeNamed(name)
	if !ok {
		tb.Fatalf("no node %s", name)
	}
	return n
}

// linkNames returns the names of links, in their order.
func linkNames(g *topology.Graph, links []topology.LinkID) string {
	var s []string
	for _, l := range links {
		s = append(s, g.Links[l].Name)
	}
	return strings.Join(s, " ")
}

func TestFatTreeOfFour(t *testing.T) {
	g := build(t, fatTree(4))
	if g.Hosts != 16 || g.Switches() != 20 || len(g.Links) != 48 {
		t.Fatalf("hosts %d switches %d links %d, want 16 20 48", g.Hosts, g.Switches(), len(g.Links))
	}
	for _, want := range []string{
		"h0-edge0", "h15-edge7", "edge0-agg0", "edge0-agg1", "edge7-agg6", "edge7-agg7",
		"agg0-core0", "agg0-core1", "agg1-core2", "agg1-core3", "agg7-core3",
	} {
		if l, ok := g.LinkNamed(want); !ok || g.Links[l].Name != want {
			t.Errorf("no link %s", want)
		}
	}
	if _, ok := g.LinkNamed("agg0-core2"); ok {
		t.Error("agg0-core2 is there; agg0 belongs to cores 0 and 1")
	}
	if got := linkNames(g, g.Path(0, 15)); got != "h0-edge0 edge0-agg0 agg0-core0 agg6-core0 edge7-agg6 h15-edge7" {
		t.Errorf("path h0 to h15: %s", got)
	}
	if got := linkNames(g, g.Routes().NextHops(nodeID(t, g, "edge0"), 15)); got != "edge0-agg0 edge0-agg1" {
		t.Errorf("edge0 towards h15: %s", got)
	}
	if got := linkNames(g, g.Routes().NextHops(nodeID(t, g, "core3"), 15)); got != "agg7-core3" {
		t.Errorf("core3 towards h15: %s", got)
	}
	if a := g.Nodes[15].Addr; a != "10.0.0.16" {
		t.Errorf("h15 has %s", a)
	}
}

func TestTiersHaveTheirOwnLinks(t *testing.T) {
	top := fatTree(4)
	top.Tiers = map[string]topology.LinkSpec{
		"edge": {Link: fabric.Link{Rate: 200 * units.Gbps, Delay: 2 * units.Microsecond}},
		"core": {Link: fabric.Link{Delay: 3 * units.Microsecond}}, // rate not given: the default's
	}
	g := build(t, top)
	hops := g.Path(0, 15)
	want := []units.Bandwidth{100 * units.Gbps, 200 * units.Gbps, 100 * units.Gbps, 100 * units.Gbps, 200 * units.Gbps, 100 * units.Gbps}
	if got := g.Rates(hops); !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
	if got := g.Propagation(hops); got != 12*units.Microsecond {
		t.Errorf("propagation %v, want 12us", got)
	}
}

func TestOversubscriptionScalesTheUplinks(t *testing.T) {
	rate := func(top topology.Spec) units.Bandwidth {
		g := build(t, top)
		l, _ := g.LinkNamed("leaf0-spine0")
		return g.Links[l].Rate
	}
	top := leafSpine(4, 4, 16)
	if got := rate(top); got != 400*units.Gbps { // 16 * 100 / 4
		t.Errorf("uplinks at 1:1 have %v", got)
	}
	top.Shape.(*topology.LeafSpine).Oversubscription = 4
	if got := rate(top); got != 100*units.Gbps {
		t.Errorf("uplinks at 4:1 have %v", got)
	}
	top.Tiers = map[string]topology.LinkSpec{"host": {Link: fabric.Link{Rate: 25 * units.Gbps}}}
	if got := rate(top); got != 25*units.Gbps { // 16 * 25 / (4 * 4)
		t.Errorf("uplinks of 25 Gbps hosts at 4:1 have %v", got)
	}
	top.Tiers["leaf"] = topology.LinkSpec{Link: fabric.Link{Delay: 5 * units.Microsecond}}
	if got := rate(top); got != 25*units.Gbps {
		t.Errorf("a delay for the tier changed its rate to %v", got)
	}
	top.Tiers["leaf"] = topology.LinkSpec{Link: fabric.Link{Rate: 800 * units.Gbps}}
	if got := rate(top); got != 800*units.Gbps { // said outright
		t.Errorf("uplinks given as 800 Gbps have %v", got)
	}
}

func TestDumbbellHasOneBottleneck(t *testing.T) {
	top := dumbbell(3)
	top.Tiers = map[string]topology.LinkSpec{"core": {Link: fabric.Link{Rate: 10 * units.Gbps, Delay: 7 * units.Microsecond}}}
	g := build(t, top)
	if got := linkNames(g, g.Path(2, 3)); got != "h2-switch0 switch0-switch1 h3-switch1" {
		t.Errorf("path h2 to h3: %s", got)
	}
	if got := linkNames(g, g.Path(0, 2)); got != "h0-switch0 h2-switch0" {
		t.Errorf("path h0 to h2: %s", got)
	}
	// 2 × (1 + 7 + 1) us; a 1250-byte packet takes 100 ns at 100 Gb/s and 1 us at 10 Gb/s, an ack
	// of 125 a tenth.
	want := 18*units.Microsecond + 1200*units.Nanosecond + 120*units.Nanosecond
	if got := g.PairRTT(0, 5, 1250, 125); got != want {
		t.Errorf("RTT of h0 and h5 %v, want %v", got, want)
	}
	if got := g.BaseRTT(1250, 125); got != want {
		t.Errorf("base RTT %v, want %v", got, want)
	}
	if x := g.Extent(); x != (topology.Extent{Hops: 3, Paths: 1, Propagation: 9 * units.Microsecond}) {
		t.Errorf("extent %+v", x)
	}
}

func TestStarRTT(t *testing.T) {
	g := build(t, star(5))
	if got, want := g.BaseRTT(12500, 0), 4*units.Microsecond+2*units.Microsecond; got != want {
		t.Errorf("base RTT %v, want %v: two links of 1 us each way, 1 us on each for 12,500 bytes", got, want)
	}
	if x := g.Extent(); x != (topology.Extent{Hops: 2, Paths: 1, Propagation: 2 * units.Microsecond}) {
		t.Errorf("extent %+v", x)
	}
}

func TestDownLinksCarryNothing(t *testing.T) {
	top := leafSpine(2, 4, 2)
	top.Down = []string{"leaf0-spine3", "spine1-leaf1"} // either end first
	g := build(t, top)
	if got := linkNames(g, g.Routes().NextHops(nodeID(t, g, "leaf0"), 3)); got != "leaf0-spine0 leaf0-spine2" {
		t.Errorf("leaf0 towards h3: %s", got)
	}
	if got := g.Paths(0, 3); got != 2 {
		t.Errorf("%d paths, want 2", got)
	}
	if got := linkNames(g, g.Adjacent[nodeID(t, g, "spine3")]); got != "leaf1-spine3" {
		t.Errorf("spine3 has %s", got)
	}
	// spine3 cannot reach leaf0 directly; its way leads back down over leaf1, and nothing is ever
	// sent there.
	if got := linkNames(g, g.Routes().NextHops(nodeID(t, g, "spine3"), 0)); got != "leaf1-spine3" {
		t.Errorf("spine3 towards h0: %s", got)
	}
}

func TestSwitchWithoutLinksHasNoRoutes(t *testing.T) {
	top := leafSpine(2, 2, 1)
	top.Down = []string{"leaf0-spine1", "leaf1-spine1"}
	g := build(t, top)
	if hops := g.Routes().NextHops(nodeID(t, g, "spine1"), 0); hops != nil {
		t.Errorf("spine1 routes to h0 over %s", linkNames(g, hops))
	}
}

func TestCustomTakesTheFewestHopsThenTheSmallestDelay(t *testing.T) {
	// Three ways from s0 to s4: over s1 (2 us), over s2 (8 us), over s3 and s5 (0.3 us, but a hop
	// more).
	g := build(t, custom("h0-s0 s0-s2@4us s2-s4@4us s0-s1 s1-s4 s0-s3@100ns s3-s5@100ns s5-s4@100ns s4-h1"))
	if got := linkNames(g, g.Routes().NextHops(nodeID(t, g, "s0"), nodeID(t, g, "h1"))); got != "s0-s2 s0-s1" {
		t.Errorf("s0 towards h1: %s", got)
	}
	if got := linkNames(g, g.Path(0, 1)); got != "h0-s0 s0-s1 s1-s4 h1-s4" {
		t.Errorf("path %s", got)
	}
	if got := linkNames(g, g.Path(1, 0)); got != "h1-s4 s1-s4 s0-s1 h0-s0" {
		t.Errorf("path back %s", got)
	}
	if got := g.Path(1, 1); got != nil {
		t.Errorf("path from h1 to itself: %s", linkNames(g, got))
	}
}

func TestParallelLinks(t *testing.T) {
	top := custom("h0-s0 s0-s1 s1-s0 s0-s1 s1-h1") // the second is written the other way round
	g := build(t, top)
	if got := linkNames(g, g.Routes().NextHops(nodeID(t, g, "s0"), nodeID(t, g, "h1"))); got != "s0-s1 s0-s1#2 s0-s1#3" {
		t.Errorf("s0 towards h1: %s", got)
	}
	if got := g.Paths(0, 1); got != 3 {
		t.Errorf("%d paths, want 3", got)
	}
	top.Down = []string{"s1-s0#2", "s0-s1"}
	g = build(t, top)
	if got := linkNames(g, g.Path(0, 1)); got != "h0-s0 s0-s1#3 h1-s1" {
		t.Errorf("path %s", got)
	}
}

func TestCustomPutsHostsFirst(t *testing.T) {
	g := build(t, custom("s0-h0 h1-s0", "s0", "h1"))
	var got []string
	for _, n := range g.Nodes {
		got = append(got, fmt.Sprintf("%d %s %s %s", n.ID, n.Name, n.Kind, n.Addr))
	}
	want := []string{"0 h1 host 10.0.0.1", "1 h0 host 10.0.0.2", "2 s0 switch "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if g.Links[0].Name != "h0-s0" { // from the host, whichever is written first
		t.Errorf("link %s", g.Links[0].Name)
	}
	if g.Port(0, 1) != 0 || g.Port(0, 2) != 1 || g.Ports() != 4 {
		t.Errorf("ports of h0-s0: %d at h0, %d at s0, %d in all", g.Port(0, 1), g.Port(0, 2), g.Ports())
	}
}

func TestPathCountSaturates(t *testing.T) {
	var links []string
	for i := range 64 { // 64 pairs of parallel links in a row: 2^64 paths
		links = append(links, fmt.Sprintf("s%d-s%d s%d-s%d", i, i+1, i, i+1))
	}
	g := build(t, custom("h0-s0 h1-s64 "+strings.Join(links, " ")))
	if got := g.Paths(0, 1); got != math.MaxInt {
		t.Errorf("%d paths, want the most an int holds", got)
	}
	if got := g.Paths(1, 1); got != 0 {
		t.Errorf("%d paths to itself", got)
	}
}

func TestBadSections(t *testing.T) {
	var kinds []string
	for _, k := range topology.Kinds() {
		kinds = append(kinds, k.Name)
	}
	with := func(t topology.Spec, change func(*topology.Spec)) topology.Spec { change(&t); return t }
	for _, c := range []struct {
		name string
		t    topology.Spec
		want string
	}{
		{"no kind", topology.Spec{}, `topology: kind ""; expected ` + plural.Or(kinds)},
		{"odd k", fatTree(3), "topology: fat-tree: k: 3 is odd; expected an even number such as 4"},
		{"k 0", fatTree(0), "topology: fat-tree: k: 0 is out of range; expected a whole number from 2 to 64"},
		{"k 66", fatTree(66), "topology: fat-tree: k: 66 is out of range; expected a whole number from 2 to 64"},
		{"no spine", leafSpine(4, 0, 4), "topology: leaf-spine: spines: 0 is out of range; expected a whole number from 1 to 4096"},
		{"nothing", leafSpine(0, 1, -1), "topology: leaf-spine: leaves: 0 is out of range; expected a whole number from 1 to 65536"},
		{"switches", leafSpine(32000, 1000, 1), "topology: leaf-spine: 33000 switches: want at most 32768"},
		{"links", leafSpine(2000, 2000, 1), "topology: leaf-spine: 4002000 links: want at most 1048576"},
		{"tables", leafSpine(30000, 2, 1), "topology: leaf-spine, 30000 leaves of 1 host, 2 spines: " +
			"30000 switches with hosts, 30002 switches and 90000 links in all: too many for route tables"},
		{"oversubscription", with(leafSpine(2, 2, 2), func(t *topology.Spec) { t.Shape.(*topology.LeafSpine).Oversubscription = -1 }),
			"topology: leaf-spine: oversubscription: -1 is out of range; expected 0.01 to 1000"},
		{"oversubscription too large", with(leafSpine(2, 2, 2), func(t *topology.Spec) { t.Shape.(*topology.LeafSpine).Oversubscription = 1e12 }),
			"topology: leaf-spine: oversubscription: 1e+12 is out of range; expected 0.01 to 1000"},
		{"no rate for uplinks", with(leafSpine(2, 2, 2), func(t *topology.Spec) { t.Link.Rate = 0 }),
			"topology: leaf-spine: the rate of host links is 0bps: want more than 0"},
		{"dumbbell", dumbbell(0), "topology: dumbbell: hosts: 0 is out of range; expected a whole number from 1 to 32768"},
		{"dumbbell too large", dumbbell(40000), "topology: dumbbell: hosts: 40000 is out of range; expected a whole number from 1 to 32768"},
		{"star of none", star(0), "topology: star: hosts: 0 is out of range; expected a whole number from 2 to 65536"},
		{"star of one", star(1), "topology: star: hosts: 1 is out of range; expected a whole number from 2 to 65536"},
		{"tier", with(star(2), func(t *topology.Spec) { t.Tiers = map[string]topology.LinkSpec{"core": wire} }),
			"topology: tiers: a star has the tiers [host] only"},
		{"fat-tree tier", with(fatTree(4), func(t *topology.Spec) { t.Tiers = map[string]topology.LinkSpec{"leaf": wire} }),
			"topology: tiers: a fat-tree has the tiers [host edge core] only"},
		{"rate 0", with(dumbbell(1), func(t *topology.Spec) { t.Link.Rate = 0 }),
			"topology: dumbbell, 1 hosts on each side: link h0-switch0: rate 0bps: want more than 0\n" +
				"link h1-switch1: rate 0bps: want more than 0\nlink switch0-switch1: rate 0bps: want more than 0"},
		{"delay", with(custom("h0-s0 h1-s0"), func(t *topology.Spec) { t.Shape.(*topology.Custom).Links[1].Delay = -1 }),
			"topology: custom, 2 hosts, 1 switches: link h1-s0: delay -1ps: want 0 or more"},
		{"down unknown", with(star(2), func(t *topology.Spec) { t.Down = []string{"h0-switch1", "h9-switch0"} }),
			"topology: star, 2 hosts: down: no link is named \"h0-switch1\"\ndown: no link is named \"h9-switch0\""},
		{"cut off", with(dumbbell(2), func(t *topology.Spec) { t.Down = []string{"switch0-switch1"} }),
			"topology: dumbbell, 2 hosts on each side: hosts h0 and h2 cannot reach each other over links that are up"},
		{"first host cut off", with(star(3), func(t *topology.Spec) { t.Down = []string{"h0-switch0"} }),
			"topology: star, 3 hosts: hosts h0 and h1 cannot reach each other over links that are up"},
		{"through a host", custom("h0-s0 s0-h1 h1-s1 s1-h2"),
			"topology: custom, 3 hosts, 2 switches: host h1 has 2 links: want exactly one, to a switch"},
		{"host to host", custom("h0-h1"), "topology: custom, 2 hosts, 0 switches: link h0-h1 joins two hosts: want a switch at one end"},
		{"no links", with(custom("", "h0", "h1", "s0"), func(t *topology.Spec) { t.Down = []string{"h0-s0"} }),
			"topology: custom, 2 hosts, 1 switches: down: no link is named \"h0-s0\""},
		{"empty", custom(""), "topology: custom: 0 hosts: want at least 2"},
		{"no name", with(custom("h0-s0 h1-s0"), func(t *topology.Spec) { t.Shape.(*topology.Custom).Nodes[1].Name = "" }), "topology: custom: a node has no name"},
		{"unknown ends", with(custom("h0-s0 h1-s0", "h2"), func(s *topology.Spec) {
			t := s.Shape.(*topology.Custom)
			t.Links = append(t.Links, topology.CustomLink{A: "h2", B: "s9", LinkSpec: wire}, topology.CustomLink{A: "x", B: "s0", LinkSpec: wire},
				topology.CustomLink{A: "s0", B: "s0", LinkSpec: wire})
			t.Nodes = append(t.Nodes, topology.CustomNode{Name: "h0"})
		}), "topology: custom: two nodes are named \"h0\"\nlink h2-s9: no node is named \"s9\"\nlink x-s0: no node is named \"x\"\n" +
			"link s0-s0 joins a node to itself"},
		{"same name", topology.Spec{Kind: "custom", Link: wire, Shape: &topology.Custom{Nodes: []topology.CustomNode{
			{Name: "a"}, {Name: "a-b"}, {Name: "b-c", Switch: true}, {Name: "c", Switch: true}},
			Links: []topology.CustomLink{{A: "a", B: "b-c"}, {A: "a-b", B: "c"}, {A: "b-c", B: "c"}}}},
			"topology: custom: the links a to b-c and a-b to c would both be named \"a-b-c\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := topology.Build(c.t)
			if err == nil || g != nil || err.Error() != c.want {
				t.Errorf("got %v, %v\nwant %s", g, err, c.want)
			}
		})
	}
}

func TestKindPrints(t *testing.T) {
	if got := fmt.Sprint(topology.Host, topology.Switch, topology.NodeKind(9)); got != "host switch kind 9" {
		t.Error(got)
	}
}
