package topologies

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/internal/fuzztest"
	"weft/internal/losttest"
)

// fabric is one network in every format that can have names.
var samples = map[string]string{
	"dot": `// Air
graph "fabric" {
  layout=neato; node [shape=box]
  subgraph cluster_0 { label=x; { rank=same; leaf0; } }
  "leaf0" [function="leaf" memory=1024]
  "leaf0":"swp1" -- "server0":"eth1" [rate="100Gbps", delay=2us]
  leaf0:swp2 -- server1
}
`,
	"containerlab": `name: fabric
topology:
  defaults: {kind: linux}
  nodes:
    leaf0: {kind: nokia_srlinux, image: x}
    server0: {}
    server1:
      kind: linux
  links:
    - endpoints: ["leaf0:e1-1", "server0:eth1"]
    - type: veth
      endpoints: [{node: leaf0, interface: e1-2}, {node: server1, interface: eth1}]
`,
	"graphml": `<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="bandwidth" attr.type="string"/>
<graph edgedefault="undirected">
<node id="leaf0"/><node id="server0"/><node id="server1"/>
<edge source="leaf0" target="server0"><data key="d0">100Gbps</data></edge>
<edge source="leaf0" target="server1"/>
</graph></graphml>
`,
	"simai": "3 1 2\n0\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0.01\nthat is all\n",
	"htsim": `Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 500
Tier 2
Downlink_speed_Gbps 200
Radix_Down 4
Downlink_Latency_ns 2000
`,
}

func TestFormats(t *testing.T) {
	want := map[string]string{
		"dot":          "3 nodes, 2 hosts, 2 links, the first leaf0-server0 at 100Gbps with 2us and loss 0",
		"containerlab": "3 nodes, 2 hosts, 2 links, the first leaf0-server0 at 0bps with 0s and loss 0",
		"graphml":      "3 nodes, 2 hosts, 2 links, the first leaf0-server0 at 100Gbps with 0s and loss 0",
		"simai":        "3 nodes, 2 hosts, 2 links, the first s0-h1 at 100Gbps with 1us and loss 0",
		"htsim":        "36 nodes, 16 hosts, 48 links, the first h0-tor0 at 100Gbps with 1us and loss 0",
	}
	for name, text := range samples {
		n, err := Parse(name, strings.NewReader(text))
		if err != nil {
			t.Error(err)
			continue
		}
		hosts := 0
		for _, node := range n.Nodes {
			if !node.Switch {
				hosts++
			}
		}
		l := n.Links[0]
		got := fmt.Sprintf("%d nodes, %d hosts, %d links, the first %s-%s at %v with %v and loss %v", len(n.Nodes), hosts,
			len(n.Links), l.A, l.B, l.Rate, l.Delay, l.Loss)
		if n.Format != name || got != want[name] {
			t.Errorf("%s: %s; %s", name, n.Format, got)
		}
	}
}

// A delay of 0 is one, and not the lab's.
func TestNoDelay(t *testing.T) {
	for text, want := range map[string]bool{`graph { a -- s [delay="0us"]; b -- s }`: true, `graph { a -- s; b -- s }`: false} {
		if n, err := Parse("f", strings.NewReader(text)); err != nil || n.Links[0].Delayed != want || n.Links[0].Delay != 0 {
			t.Errorf("%s: %+v, %v", text, n, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	replaced := func(sample, old, text string) string { return strings.Replace(samples[sample], old, text, 1) }
	for _, c := range []struct{ text, want string }{
		{"", "f:1: unknown format"},
		{"3 1 1\n0\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", "f:4: a link beyond the 1 that the first line counts"},
		{"4 2 2\n0 0\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", "f:2: switch 0 is listed twice"},
		{"graph { a -- b -- c -- a }", "0 hosts among 3 nodes"},
		{"graph { s -- a; s -- b; a [role=host]; a -- b }", "f:1: host a has a second link"},
		{"graph {\n subgraph x { a; b } -- c }", "f:2: a link of all nodes of a subgraph is not understood"},
		{"graph {\n c -- { a; b } }", "f:2: \"{\"; expected the other end of a link"},
		{"graph {\n subgraph x y { a }", "f:2: \"y\"; expected the { of a subgraph"},
		{"graph {" + strings.Repeat("{", 200), "f:1: subgraphs within each other 101 times"},
		{"graph { { a -- b\n", "f:2: the file ends within the graph"},
		{"graph {\n edge [rate=5Gbps]; a -- b }", "f:2: defaults of links are not understood"},
		{"graph {\n node [role=leaf]; a -- b }", "f:2: defaults of nodes are not understood; give each node its role"},
		{"graph { a -- b [rate=fast] }", "f:1: rate"},
		{"graph { a -- b [rate=\"-100Gbps\"] }", "f:1: rate"},
		{"graph { a -- b [rate=\"0Gbps\"] }", "f:1: rate: 0Gbps; expected 1kbps to 10Tbps"},
		{"graph { a -- b\n b -- c [bandwidth=400] }", "f:2: bandwidth: 400; expected 1kbps to 10Tbps, such as 400Gbps: without a unit, it counts bits per second"},
		{"graph { a -- b [delay=\"2s\"] }", "f:1: delay: 2s; expected 0 to 1s"},
		{"strict graph { a -- s\n b -- s\n s -- a }", "f:3: a second link of s and a, and the graph is strict"},
		{"digraph { a -> s\n b -> s\n s -> a\n s -> b }", "f:3: s to a is the other direction of the link on line 1"},
		{"graph { a -- s\n b -- s\n s -- a\n s -- b }", "f:3: 0 hosts among 3 nodes, and s and a have a link on line 1, too"},
		{"3 1 2\n2\n0 2 100Gbps 1us 0\n", "f:3: the file ends after 1 of 2 links"},
		{"graph { a -- b [delay=\"-1us\"] }", "f:1: delay"},
		{"graph { a -- b [loss=\"200%\"] }", "f:1: loss: 200%; expected a share from 0 to below 1"},
		{"graph {\n a -- s\n s -- Leaf_0 }", `f:3: node "Leaf_0"; expected a name of at most 63 letters`},
		{"graph {\n a -- s\n s -- s }", "f:3: a link of node s with itself"},
		{"graph { a -- s\n b -- s }\ngraph x {}", `f:3: "graph" behind the graph`},
		{"graph { a -- s\n b -- s\n", "f:3: the file ends within the graph"},
		{"graph { /* a", "f:1: a comment without an end"},
		{"graph {\n" + strings.Repeat("a", 1<<17), "f:2: a name of more than 65536 bytes"},
		{"graph {\n a -- s # [rate=\"10Gbps\"]\n b -- s }", "f:2: # within a line is no comment in DOT"},
		{"graph {\n a -- s [color=#ff0000, rate=\"10Gbps\"]\n b -- s }", "f:2: # within a line"},
		{"graph {\n rate=\"10Gbps\"; a -- b }", "f:2: defaults of links are not understood; give each link its rate"},
		{"graph {\n subgraph x { delay=\"10us\"; a }; a -- b }", "f:2: defaults of links are not understood"},
		{"graph { a -- <b> }", "f:1: HTML is not understood"},
		{"graph { \"a", "f:1: a name without a closing quote"},
		{replaced("containerlab", "type: veth", "type: mgmt-net"), "f:11: a link of type \"mgmt-net\""},
		{replaced("containerlab", "leaf0:e1-1", "leaf9:e1-1"), "f:10: a link of \"leaf9\", which is no node"},
		{replaced("containerlab", "{}", "{"), "f:6: did not find expected"},
		{replaced("containerlab", "{}", "[]"), "f:6: a seq where another kind of value belongs"},
		{replaced("containerlab", "server1:", "server0:"), "f:7: node server0 is on line 6, too; expected each once"},
		{replaced("containerlab", "interface: e1-2", "interface: e1-1"), "f:11: leaf0:e1-1 is an end of the link on line 10, too"},
		{samples["containerlab"] + "---\nname: two\n", "f:13: a second document begins here"},
		{samples["containerlab"] + "---\n", "f:13: a second document begins here"},
		{samples["containerlab"] + "---\n[\n", "f:15: did not find expected"},
		{replaced("graphml", `id="server1"`, `id="server0"`), "f:4: node server0 is on line 4, too"},
		{replaced("graphml", `<graph edgedefault="undirected">`, strings.Repeat("<x>", 20)), "f:3: elements within each other more than 16 times"},
		{replaced("graphml", "100Gbps", "quick"), "f:5: bandwidth"},
		{replaced("graphml", "<edge source", "<hyperedge/><edge source"), "f:5: a hyperedge"},
		{replaced("graphml", "</graph>", ""), "f:7: XML syntax error"},
		{replaced("graphml", "</graph>", "</graph><graph/>"), "f:7: a second graph; expected one"},
		{replaced("graphml", "</graph>", "</graph><edge source=\"server0\" target=\"server1\"/>"), "f:7: <edge> outside of the graph"},
		{replaced("graphml", "<graph ", `<node id="server9"/><graph `), "f:3: <node> outside of the graph"},
		{samples["graphml"] + "<graphml/>", "f:8: a second <graphml>; expected one"},
		{replaced("graphml", `<node id="leaf0"/>`, `<node id="leaf0"><graph/></node>`), "f:4: a graph within a node"},
		{replaced("graphml", "<data", "<graph/><data"), "f:5: a graph within a node or an edge"},
		{replaced("graphml", "<graph ", `<graph parse.nodes="4" `), "f:8: the file ends with 3 nodes; parse.nodes counts 4"},
		{replaced("graphml", "<graph ", `<graph parse.edges="1" `), "f:8: the file ends with 2 edges; parse.edges counts 1"},
		{replaced("simai", "3 1 2", "3 1 3"), "expected a link"},
		{replaced("simai", "0 2 100", "0 7 100"), "f:4: a link from 0 to 7 of 3 nodes"},
		{replaced("htsim", "Podsize 4", "Podsize 5"), "16 cannot be divided into 5"},
		{replaced("htsim", "Radix_Up 2", "Queue_Up 2"), "f:7: queue_up: queues belong to the lab"},
		{replaced("htsim", "Radix_Up 2", "Switch_Latency_ns 20"), "f:7: switches have no latency of their own"},
		{replaced("htsim", "Radix_Down 4", "Radix_Down 3"), "tier 2 has a radix_down of 3"},
	} {
		if _, err := Parse("f", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v; want %q", c.text, err, c.want)
		}
	}
}

// A property of a link that is there twice, under any of its names, is refused, and so is a node
// that is called a host and a switch.
func TestOneValueOfAProperty(t *testing.T) {
	const dot, xml = "graph { b -- s; c -- s\n%s %s }", `<graphml><graph><node id="a"/><node id="b"/><node id="s"/>` +
		`<edge source="b" target="s"/>` + "\n%s</graph></graphml>"
	refused := func(text, want string) {
		if _, err := Parse("f", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "f:2: ") ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	pairs := func(names []string, values [2]string, dots, xmls func(attributes string) string, want string) {
		for _, a := range names {
			for _, b := range names {
				var inDOT, inXML string
				for i, name := range []string{a, b} {
					inDOT += fmt.Sprintf("[%s=%q]", name, values[i])
					inXML += fmt.Sprintf(`<data key="%s">%s</data>`, name, values[i])
				}
				refused(dots(inDOT), want)
				refused(xmls(inXML), want)
			}
		}
	}
	for _, c := range []struct {
		names  []string
		values [2]string
		what   string
	}{
		{[]string{"rate", "bandwidth", "speed", "capacity", "linkspeedraw", "Rate"}, [2]string{"1Gbps", "25Gbps"}, "rate"},
		{[]string{"rate", "speed"}, [2]string{"1Gbps", "1Gbps"}, "rate"},
		{[]string{"delay", "latency", "Delay"}, [2]string{"0us", "900us"}, "delay"},
		{[]string{"loss", "LOSS"}, [2]string{"0", "0.1"}, "loss"},
	} {
		pairs(c.names, c.values, func(all string) string { return fmt.Sprintf(dot, "a -- s", all) },
			func(all string) string { return fmt.Sprintf(xml, `<edge source="a" target="s">`+all+`</edge>`) },
			c.values[1]+" is a second "+c.what+" of this link; expected one")
	}
	pairs([]string{"function", "role", "type", "kind"}, [2]string{"host", "leaf"},
		func(all string) string { return fmt.Sprintf(dot, "a", all) },
		func(all string) string { return fmt.Sprintf(xml, `<node id="x">`+all+`</node>`) },
		"is called host and leaf; expected a host or a switch")
	refused("graph { a [type=host]; a -- s; b -- s\n a [role=leaf] }", "node a is called host and leaf; expected a host or a switch")
}

// Attributes that do not describe the network cause one note for each kind.
func TestNotes(t *testing.T) {
	for text, want := range map[string]string{
		"graph {\n a -- s [zork=1, label=x]\n b -- s [zork=2]\n a [cpu=4, role=zebra] }": "f:4: attribute cpu of nodes is not used; " +
			"f:2: attribute zork of links is not used (2 times, this is the first); f:2: role zebra of nodes is not used",
		"graph {\n node [cpu=4, shape=box]; edge [zork=1]\n a -- s\n b -- s }": "f:2: attribute cpu of nodes is not used; " +
			"f:2: attribute zork of links is not used",
		samples["dot"]:          "f:5: attribute memory of nodes is not used",
		samples["containerlab"]: "f:5: attribute image of nodes is not used",
	} {
		n, err := Parse("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got := n.Notes.Texts()
		for _, part := range strings.Split(want, "; ") {
			if !slices.Contains(got, part) {
				t.Errorf("%q lacks %q", got, part)
			}
		}
	}
}

// A note says how a rate without a unit was read, that a label disagrees with the rate of its link,
// or that an oversubscription disagrees with the radixes. LinkSpeedRaw needs none, since its name
// implies the unit, and neither does a label that agrees.
func TestNotesDoubts(t *testing.T) {
	dot := func(attributes string) string {
		return "graph {\n a -- s [" + attributes + "]\n b -- s [" + attributes + "] }"
	}
	xml := func(key, value string) string {
		return `<graphml><graph><node id="a"/><node id="b"/><node id="s"/>` + "\n" + `<edge source="a" target="s"><data key="` +
			key + `">` + value + `</data></edge><edge source="b" target="s"/></graph></graphml>`
	}
	tier := func(line string) string { // 2 ports up and 2 down
		return strings.Replace(samples["htsim"], "Tier 1\n", line+"\nTier 1\n", 1)
	}
	for _, c := range []struct{ text, want string }{
		{dot("speed=100000"), "f:2: speed=100000 has no unit and counts bits per second: the link has 100kbps (2 times, this is the first)"},
		{dot("rate=100e9, delay=\"1us\""), "f:2: rate=100e9 has no unit and counts bits per second: the link has 100Gbps (2 times, " +
			"this is the first)"},
		{xml("capacity", "40000"), "f:2: capacity=40000 has no unit and counts bits per second: the link has 40kbps"},
		{xml("LinkSpeedRaw", "10000000000.0"), ""},
		{xml("bandwidth", "10Gbps"), ""},
		{dot(`rate="100Gbps", label="10G"`), "f:2: the label of a link says 10G, and its rate is 100Gbps, which counts (2 times, " +
			"this is the first)"},
		{dot(`rate="100Gbps", label="10 Gbps, 1us"`), "f:2: the label of a link says 10Gbps, and its rate is 100Gbps, which counts (2 " +
			"times, this is the first)"},
		{dot(`rate="100Gbps", label="100G 1us"`), ""},
		{dot(`rate="100Gbps", label="swp1 7"`), ""},
		{dot(`label="10G"`), "f:2: attribute label of links is not used (2 times, this is the first)"},
		{"graph {\n rankdir=LR; mtu=1500; subgraph cluster_0 { label=x; a }\n a -- s; b -- s }", "f:2: attribute mtu of the graph is " +
			"not used"},
		{"graph {\n# a -- b\n  # x\n a -- s; b -- s }", ""},
		{tier("Oversubscribed 1"), ""},
		{tier("Oversubscribed 2"), "f:9: oversubscribed 2 of tier 0 does not count, but its radixes do: 2 downwards and 2 upwards"},
		{samples["htsim"] + "Oversubscribed 1\n", ""},
		{samples["htsim"] + "Oversubscribed 4\n", "f:18: oversubscribed of the highest tier, which has no links upwards, is not used"},
	} {
		n, err := Parse("f", strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := strings.Join(n.Notes.Texts(), "; "); got != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.text, got, c.want)
		}
	}
}

// In every format with names, a note names each node whose links make it something else than its
// name says, and each node without links. There is none for a role that the file gives, or for a
// name that says nothing.
func TestNotesRolesFromLinks(t *testing.T) {
	const several = " is a switch without a part in the job, since it has several links; a host has one"
	const none = " is a switch without a part in the job, since it has no link; a host has one"
	for _, c := range []struct{ node, dot, says string }{ // dot: the node alone; "": it has links
		{"server0", "", several}, {"host", "", several}, {"gpu-0-1", "", several}, {"h7", "", several},
		{"leaf0", "", ""}, {"x", "", ""}, {"x", "x", none}, {"server0", "server0", none}, {"leaf0", "leaf0", none},
		{"server0", "server0 [type=switch]", none},
	} {
		dot, xml := "graph { a -- s; b -- s\n", `<graphml><key id="type" attr.name="type"/><graph><node id="a"/><node id="b"/>`+
			`<node id="s"/><edge source="a" target="s"/><edge source="b" target="s"/>`+"\n<node id=\""+c.node+"\">"
		clab := "topology:\n  nodes: {a: {kind: linux}, b: {kind: linux}, s: {}, " + c.node + ": {kind: linux}}\n" +
			"  links: [{endpoints: [\"a:1\", \"s:1\"]}, {endpoints: [\"b:1\", \"s:2\"]}"
		if strings.Contains(c.dot, "type") {
			xml += `<data key="type">switch</data>`
			clab = strings.Replace(clab, c.node+": {kind: linux}", c.node+": {kind: srl}", 1)
		}
		if xml += "</node>"; c.dot == "" {
			dot += fmt.Sprintf("%q -- a2; %q -- s", c.node, c.node)
			xml += `<node id="a2"/><edge source="` + c.node + `" target="a2"/><edge source="` + c.node + `" target="s"/>`
			clab = strings.Replace(clab, "s: {}", "s: {}, a2: {kind: linux}", 1) + `, {endpoints: ["` + c.node +
				`:1", "a2:1"]}, {endpoints: ["` + c.node + `:2", "s:3"]}`
		}
		for _, text := range []string{dot + c.dot + " }", xml + "</graph></graphml>", clab + "]\n"} {
			n, err := Parse("f.yml", strings.NewReader(text))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			var want []string
			if c.says != "" {
				want = []string{"f.yml:2: node " + c.node + c.says}
			}
			if got := n.Notes.Texts(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", text, got, want)
			}
		}
	}
}

// In every format, a switch without links is named in a note, and such a host is refused.
func TestNodesWithoutLinks(t *testing.T) {
	replaced := func(sample, old, text string) string { return strings.Replace(samples[sample], old, text, 1) }
	const told, refused = "node x is a switch without a part in the job, since it has no link", "host x has no link"
	all := map[string][]struct{ text, want string }{
		"dot": {
			{replaced("dot", "leaf0:swp2", "x; leaf0:swp2"), "f:7: " + told},
			{replaced("dot", "leaf0:swp2", "x [role=spine]; leaf0:swp2"), "f:7: " + told},
			{replaced("dot", "leaf0:swp2", "x [role=server]; leaf0:swp2"), "f:7: " + refused},
			{replaced("dot", "leaf0:swp2", "x; y [role=tor]; leaf0:swp2"), "f:7: nodes x, y are switches without a part"},
			{replaced("dot", "leaf0:swp2", "subgraph z { x }; leaf0:swp2"), "f:7: " + told},
			{replaced("dot", "}\n  \"leaf0\"", "}\n x0; x1; x2; x3; x4; x5; x6; x7; x8; x9; x10; x11; x12; x13; x14; x15; x16; "+
				"x17; x18; x19; x20; x21\n  \"leaf0\""), "x18, x19 and 2 others are switches without a part"},
		},
		"graphml": {
			{replaced("graphml", "<edge", `<node id="x"/><edge`), "f:5: " + told},
			{replaced("graphml", "<edge", `<node id="x"><data key="role">spine</data></node><edge`), "f:5: " + told},
			{replaced("graphml", "<edge", `<node id="x"><data key="role">gpu</data></node><edge`), "f:5: " + refused},
		},
		"containerlab": {
			{replaced("containerlab", "    server1:", "    x: {kind: srl}\n    server1:"), "f:7: " + told},
			{replaced("containerlab", "    server1:", "    x: {}\n    server1:"), "f:7: " + told},
		},
		"simai": {
			{"4 2 2\n0 3\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", "f:1: node s3 is a switch without a part in the job"},
			{"4 1 2\n0\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n", "f:1: host h3 has no link"},
		},
		"htsim": {{samples["htsim"], ""}}, // its trees have none
	}
	for _, name := range Formats() {
		if len(all[name]) == 0 {
			t.Errorf("no case for %s", name)
		}
		for _, c := range all[name] {
			n, err := Parse("f", strings.NewReader(c.text))
			got := fmt.Sprint(err)
			if err == nil {
				got = strings.Join(n.Notes.Texts(), "; ")
			}
			if n != nil && n.Format != name || !strings.Contains(got, c.want) {
				t.Errorf("%s: %s; want %s", c.text, got, c.want)
			}
		}
		if name == "htsim" {
			n, err := Parse("f", strings.NewReader(samples[name]))
			if err != nil || slices.ContainsFunc(n.Nodes, func(node Node) bool { return node.links == 0 }) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A port has one link, and a directed link carries both directions: a link for each is refused
// unless they have different ports. Other directed links are in a note.
func TestPortsAndDirections(t *testing.T) {
	xml := func(graph string, edges ...string) string {
		text := `<graphml><graph ` + graph + `><node id="a"/><node id="b"/><node id="s"/>`
		for _, e := range edges {
			text += "\n<edge " + e + "/>"
		}
		return text + "</graph></graphml>"
	}
	const both = "a directed link carries both directions"
	const other = "s to a is the other direction of the link on line 2; expected each link once"
	const as, bs, sa = `source="a" target="s"`, `source="b" target="s"`, `source="s" target="a"`
	for text, want := range map[string]string{
		xml("", as, bs):                                                       "",
		xml(`edgedefault="directed"`, as, bs):                                 "f:2: " + both + " (2 times",
		xml(`edgedefault="directed"`, as, bs, sa):                             "f:4: " + other,
		xml("", as+` directed="true"`, bs, sa+` directed="true"`):             "f:4: " + other,
		xml(`edgedefault="directed"`, as, bs+` directed="false"`):             "f:2: " + both,
		xml("", as+` targetport="1"`, bs+` targetport="1"`):                   "f:3: s:1 is an end of the link on line 2, too",
		xml("", as+` targetport="1"`, bs+` targetport="2"`):                   "",
		xml("", as, bs+` port="2"`):                                           "f:3: attribute port of links is not used",
		xml("", as, bs) + "<!-- -->":                                          "",
		strings.Replace(xml("", as, bs), "/>", `><port name="1"/></node>`, 1): "f:1: <port> of nodes is not used",
		strings.Replace(xml("", as, bs), "/>", ` port="1"/>`, 1):              "f:1: attribute port of nodes is not used",
		xml(`edgedefault="directed"`, as+` sourceport="1" targetport="1"`, bs, sa+` sourceport="2" targetport="2"`): "f:4: 1 hosts among 3 nodes",
		"digraph {\n a -> s\n b -> s }":          "f:2: " + both + " (2 times",
		"digraph {\n a -> s\n b -> s\n s -> a }": "f:4: " + other,
		"graph {\n a -- s:1\n b -- s:1 }":        "f:3: s:1 is an end of the link on line 2, too",
		"graph {\n a -- s:1:n\n b -- s:2:n }":    "",
		"graph {\n a -- s:n\n b -- s:n }":        "",
		"graph {\n a -- s:1 -- b }":              "f:2: s:1 is an end of the link on line 2, too",
	} {
		n, err := Parse("f", strings.NewReader(text))
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(n.Notes.Texts(), "; ")
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %q", text, got, want)
		}
	}
}

// A network that is too large is refused where it becomes that, not at the end of the file.
func TestTooLarge(t *testing.T) {
	read := 0
	r := readerFunc(func(b []byte) (int, error) {
		line := "graph {\n"
		if read > 0 {
			line = fmt.Sprintf("n%d -- s\n", read)
		}
		read++
		return copy(b, line), nil
	})
	_, err := Parse("f", r)
	if err == nil || err.Error() != "f:32768: more than 32768 nodes; expected a smaller network" || read > 40000 {
		t.Errorf("after %d lines: %v", read, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, text := range samples {
		corpus.Add([]byte(text))
	}
	corpus.Fuzz(func(t *testing.T, text []byte) {
		n, err := Parse("f", bytes.NewReader(text))
		if err == nil && len(n.Nodes) < 2 {
			t.Errorf("%q: %+v", text, n)
		}
	})
}

// What a file says is never lost: with a line left out, repeated or added, the network is another
// one, the file is refused, or a note tells what was skipped.
func TestNothingIsLost(t *testing.T) {
	told := func(name, text string) string {
		n, err := Parse(name, strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, node := range n.Nodes {
			fmt.Fprintln(&b, node.Name, node.Switch)
		}
		for _, l := range n.Links {
			fmt.Fprintln(&b, l.A, l.B, l.Rate, l.Delay, l.Loss)
		}
		return b.String() + fmt.Sprint(n.Notes)
	}
	added := map[string][]string{
		"dot": {"leaf0 -- server2\n", "x [colour=red]\n", "rate=\"10Gbps\"\n", "mtu=1500\n", "{ delay=\"1us\" }\n",
			"server1 -- server2 # [rate=\"10Gbps\"]\n"},
		"graphml":      {`<node id="x"/>`, `<edge source="leaf0" target="leaf0"/>`, `<colour/>`},
		"containerlab": {"colour: red\n"},
		"simai":        {"0 1 100Gbps 0.001ms 0\n", "0 2 100Gbps 0.001ms 0 9\n", "more\n", "7\n1 2\n"},
		"htsim":        {"Colour 1\n", "Nodes 16\n", "Radix_Up 2\n", "Tier 2\n", "Oversubscribed 2\n"},
	}
	for name, text := range samples {
		lines := losttest.Lines(text)
		at := len(lines)
		if name == "dot" || name == "graphml" {
			at--
		}
		t.Run(name, func(t *testing.T) {
			losttest.Check(t, losttest.Sample{Records: lines, Told: func(text string) string { return told(name, text) },
				Added: added[name], At: at, Default: []string{"      kind: linux\n"},
				Idle: []string{"layout=", "subgraph cluster", "// Air", "name: fabric", "that is all"}})
		})
	}
}
