package render_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
	"weft/fabric"

	"weft/internal/golden"
	"weft/orchestrator/topology"
	"weft/orchestrator/topology/render"
	"weft/units"
)

var wire = topology.LinkSpec{Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond}}

func labs() map[string]topology.Spec {
	slow := topology.LinkSpec{Link: fabric.Link{Rate: 10 * units.Gbps, Delay: 5 * units.Microsecond}}
	return map[string]topology.Spec{
		"fat-tree-4": {Kind: "fat-tree", Shape: &topology.FatTree{K: 4}, Link: wire, MTU: 4096},
		"leaf-spine-down": {Kind: "leaf-spine", Shape: &topology.LeafSpine{Leaves: 4, Spines: 2, HostsPerLeaf: 2,
			Oversubscription: 2}, Link: wire, MTU: 4096,
			Down: []string{"leaf0-spine1", "leaf3-spine0"}},
		"leaf-spine-256": {Kind: "leaf-spine", Shape: &topology.LeafSpine{Leaves: 8, Spines: 4, HostsPerLeaf: 32,
			Oversubscription: 1}, Link: wire, MTU: 4096,
			Down: []string{"leaf7-spine3"}},
		"dumbbell": {Kind: "dumbbell", Shape: &topology.Dumbbell{Side: 2}, Link: wire,
			Tiers: map[string]topology.LinkSpec{"core": slow}, MTU: 4096},
		"star": {Kind: "star", Shape: &topology.Star{Size: 3}, Link: wire, MTU: 4096},
		// Names that every format has to escape, a link unlike the others, a switch that nothing
		// joins.
		"custom": {Kind: "custom", Link: wire, MTU: 4096, Shape: &topology.Custom{
			Nodes: []topology.CustomNode{{Name: `a "quoted"\name`}, {Name: "<b>&'b'"}, {Name: "sw#1", Switch: true},
				{Name: "a switch with a name that is longer than a box", Switch: true}, {Name: "top", Switch: true},
				{Name: "alone", Switch: true}},
			Links: []topology.CustomLink{
				{A: `a "quoted"\name`, B: "sw#1", LinkSpec: wire},
				{A: "<b>&'b'", B: "a switch with a name that is longer than a box", LinkSpec: wire},
				{A: "sw#1", B: "top", LinkSpec: wire},
				{A: "a switch with a name that is longer than a box", B: "top", LinkSpec: wire},
				{A: "sw#1", B: "a switch with a name that is longer than a box", LinkSpec: slow},
			}}},
	}
}

func graph(t *testing.T, name string) *topology.Graph {
	t.Helper()
	g, err := topology.Build(labs()[name])
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGolden(t *testing.T) {
	for name := range labs() {
		for _, format := range render.Formats() {
			t.Run(name+"/"+format, func(t *testing.T) {
				got, err := render.Graph(format, name, graph(t, name))
				if err != nil {
					t.Fatal(err)
				}
				golden.Check(t, name+"."+format, got)
			})
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := render.Graph("png", "x", graph(t, "star"))
	if err == nil || err.Error() != `graph format "png": want one of text, svg, dot, mermaid, yaml` {
		t.Error(err)
	}
}

// TestSVGIsXML parses every picture, one with control characters and markup in its title among
// them, and looks for references to anything outside.
func TestSVGIsXML(t *testing.T) {
	for name := range labs() {
		got := render.SVG("</title><script>\x00\x1b\xff", graph(t, name))
		d := xml.NewDecoder(strings.NewReader(got))
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			e, ok := tok.(xml.StartElement)
			if !ok {
				continue
			}
			if e.Name.Local == "script" || e.Name.Local == "image" || e.Name.Local == "use" {
				t.Errorf("%s: element %s", name, e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "url(") || a.Name.Local == "href" {
					t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
				}
			}
		}
	}
}

// TestLargeNetworksAreSampled: the text of 8,192 hosts fits a screen or two; the picture joins
// hosts.
func TestLargeNetworksAreSampled(t *testing.T) {
	g, err := topology.Build(topology.Spec{Kind: "leaf-spine", Shape: &topology.LeafSpine{Leaves: 128, Spines: 64,
		HostsPerLeaf: 64, Oversubscription: 1}, Link: wire, MTU: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(render.Text("big", g), "\n"); n > 30 {
		t.Errorf("the text has %d lines", n)
	}
	svg := render.SVG("big", g)
	if n := strings.Count(svg, "<rect class=\"host\""); n != 128 {
		t.Errorf("%d boxes of hosts, want one for each leaf", n)
	}
	if n := strings.Count(svg, "<path"); n != 128+128*64 {
		t.Errorf("%d lines, want %d", n, 128+128*64)
	}
	if !strings.Contains(render.Mermaid("big", g), "%% 16384 links: Mermaid draws 500") {
		t.Error("Mermaid's limit is not mentioned")
	}
}

func TestAllDown(t *testing.T) {
	top := topology.Spec{Kind: "custom", Link: wire, MTU: 4096, Shape: &topology.Custom{
		Nodes: []topology.CustomNode{{Name: "h0"}, {Name: "h1"}, {Name: "s0", Switch: true},
			{Name: "s1", Switch: true}},
		Links: []topology.CustomLink{{A: "h0", B: "s0", LinkSpec: wire}, {A: "h1", B: "s0", LinkSpec: wire},
			{A: "s0", B: "s1", LinkSpec: wire}}},
		Down: []string{"s0-s1"}}
	g, err := topology.Build(top)
	if err != nil {
		t.Fatal(err)
	}
	want := "switch links: 100Gbps, 1us (1 down)"
	for _, format := range []string{"svg", "dot", "mermaid"} {
		if got, _ := render.Graph(format, "x", g); !strings.Contains(got, want) {
			t.Errorf("%s does not say %q:\n%s", format, want, got)
		}
	}
}

func ExampleText() {
	g, err := topology.Build(topology.Spec{Kind: "star", Shape: &topology.Star{Size: 2}, Link: wire, MTU: 4096})
	if err != nil {
		panic(err)
	}
	fmt.Print(render.Text("pair", g))
	// Output:
	// pair: star, 2 hosts
	// 2 hosts, 1 switch, 2 links
	// farthest hosts: 2 links, 2us of propagation one way; at most 1 equal-cost path
	//
	// nodes   count  names    addresses
	// host    2      h0 h1    10.0.0.1 10.0.0.2
	// switch  1      switch0
	//
	// links  count  rate     delay  differ  down
	// host   2      100Gbps  1us    0       0
	//
	// link        rate     delay
	// h0-switch0  100Gbps  1us
	// h1-switch0  100Gbps  1us
}

func TestUtilisationIsColoured(t *testing.T) {
	g := graph(t, "star")
	shares := []float64{0, 0.5, 1}
	svg := render.Utilisation("x", g, func(l *topology.Link) float64 { return shares[l.ID] }, nil)
	for _, want := range []string{"stroke:#bbbbbb;stroke-width:0.8", "stroke:#e69f00",
		"stroke:#a01c1c;stroke-width:3.0", ": 50.0 % used", "</svg>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in it", want)
		}
	}
}

// Labels and broken lines show what happened to links and hosts, not colour alone.
func TestEventsAreMarked(t *testing.T) {
	for name, g := range map[string]*topology.Graph{
		"fat-tree": graph(t, "fat-tree-4"), "256 hosts": graph(t, "leaf-spine-256"), "torus": shape(t, "torus-4x4"),
		"three dimensions": shape(t, "torus-2x2x4"),
		"dragonfly-plus":   shape(t, "dragonfly-plus-4"), "clos": shape(t, "clos-figure-1"),
	} {
		last := len(g.Links) - 1
		for g.Links[last].Down {
			last--
		}
		link, host := g.Links[last].Name, g.Nodes[0].Name
		events := []render.Event{{Label: "1", Text: link + ": down <from> 50us", Place: link},
			{Label: "2", Text: host + ": killed", Place: host}}
		svg := render.Utilisation("x", g, func(*topology.Link) float64 { return 0.5 }, events)
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for want, count := range map[string]int{
			">1</text>": 2, ">2</text>": 2, "stroke-dasharray:6 4": 1, "stroke-dasharray:4 3\"": 1,
			"down &lt;from&gt; 50us</text>": 1,
			"% used; " + link + ": down":    1,
		} {
			if n := strings.Count(svg, want); n != count {
				t.Errorf("%s: %q %d times, want %d", name, want, n, count)
			}
		}
		if strings.Contains(svg, `cx="0.0"`) {
			t.Errorf("%s: a label is nowhere", name)
		}
	}
}
