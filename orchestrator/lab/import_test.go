package lab

import (
	"strings"
	"testing"
	"testing/fstest"

	"weft/orchestrator/topology"
	"weft/orchestrator/topology/render"
	"weft/units"
)

// An imported topology is a custom one, with the lab's link for what the file does not say.
func TestImport(t *testing.T) {
	files := Options{Files: fstest.MapFS{
		"n/a.dot": {Data: []byte("graph { s -- a [rate=400Gbps]; s -- b }")}, "bad.dot": {Data: []byte("graph {\n a -- <b> }")},
	}}
	lab := func(topology string) string {
		return "weft: 1\nname: lab\ntopology: {" + topology + "}\nworkload: [{collective: all-reduce, size: 1KB, ranks: [b, a]}]\n"
	}
	labs, err := Parse("lab.yaml", []byte(lab("import: n/a.dot, link: {rate: 50Gbps, delay: 3us}")), files)
	if err != nil {
		t.Fatal(err)
	}
	top := &labs[0].Topology
	nodes, links := top.Drawn()
	if top.Kind != topology.ListKind() || len(nodes) != 3 || !nodes[0].Switch || nodes[1].Switch || len(links) != 2 ||
		links[0].Rate != 400*units.Gbps || links[1].Rate != 50*units.Gbps || links[0].Delay != 3*units.Microsecond {
		t.Errorf("%s: %+v, %+v", top.Kind, nodes, links)
	}
	for _, c := range []struct{ topology, want string }{
		{"import: n/b.dot", "lab.yaml:3:20: topology.import: n/b.dot: file does not exist"},
		{"import: bad.dot", "lab.yaml:3:20: topology.import: bad.dot:2: HTML is not understood"},
		{"import: ../a.dot", "expected a file below the lab file's folder"},
		{"import: n/a.dot, kind: star, hosts: 3", "given together with kind: star"},
		{"import: n/a.dot, nodes: [{name: x}]", "given together with topology.nodes"},
		{"link: {rate: 1Gbps}", "topology.kind: missing"},
	} {
		_, err := Parse("lab.yaml", []byte(lab(c.topology)), files)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.topology, err, c.want)
		}
	}
}

// What weft graph writes as DOT and as YAML is read as the same network.
func TestDrawnNetworkIsRead(t *testing.T) {
	const rest = "\nworkload: [{collective: all-reduce, size: 1KB}]\n"
	read := func(section string, files fstest.MapFS) (string, string) {
		t.Helper()
		labs, err := Parse("lab.yaml", []byte("weft: 1\nname: lab\n"+section+rest), Options{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		g, err := topology.Build(labs[0].Topology)
		if err != nil {
			t.Fatal(err)
		}
		return render.YAML(g), render.DOT("x", g)
	}
	yaml, dot := read("topology: {kind: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 2, link: {loss: 0.001, delay: 1500ns}}",
		nil)
	if again, _ := read(yaml, nil); again != yaml {
		t.Errorf("YAML:\n%s\nand\n%s", yaml, again)
	}
	if again, _ := read("topology: {import: x.dot}", fstest.MapFS{"x.dot": {Data: []byte(dot)}}); again != yaml {
		t.Errorf("DOT:\n%s\nas YAML:\n%s", dot, again)
	}
}
