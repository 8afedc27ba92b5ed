package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"weft/internal/golden"
	"weft/orchestrator/emulate"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/lab"
	"weft/realtime"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// kernelTopologies are topologies for the kernel datapath, with the maximum number of switches on
// a path.
var kernelTopologies = []struct {
	name, topology string
	hops           int
}{
	{"star", "{kind: star, hosts: 3, link: LINK}", 1},
	{"dumbbell", "{kind: dumbbell, hosts: 2, link: LINK, tiers: {core: {rate: 50Gbps}}}", 2},
	{"leaf-spine", "{kind: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 2, link: LINK}", 3},
	{"fat-tree", "{kind: fat-tree, k: 4, link: LINK}", 5},
	{"clos", "{kind: clos, racks: 2, switching_racks: 2, leaves: 2, spines: 2, cores: 2, hosts_per_leaf: 2, link: LINK}", 7},
	{"torus", "{kind: torus, dimensions: [3, 3], hosts_per_switch: 2, link: LINK}", 3},
	{"dragonfly-plus", "{kind: dragonfly-plus, groups: 3, leaves: 2, spines: 2, hosts_per_leaf: 2, link: LINK}", 4},
	{"custom", `
  kind: custom
  link: LINK
  nodes:
    - {name: left, switch: true}
    - {name: upper, switch: true}
    - {name: lower, switch: true}
    - {name: right, switch: true}
    - {name: a}
    - {name: b}
    - {name: c}
  links:
    - {between: [a, left]}
    - {between: [b, left], rate: 25Gbps}
    - {between: [c, right]}
    - {between: [left, upper]}
    - {between: [left, lower]}
    - {between: [left, lower]}
    - {between: [upper, right]}
    - {between: [lower, right]}`, 3},
}

// kernelPlan returns the network of a lab on the kernel datapath.
func kernelPlan(t *testing.T, topology string) *kernelpath.Network {
	t.Helper()
	text := fmt.Sprintf("weft: 1\nname: planned\ntopology: %s\nworkload: [{collective: all-to-all, size: 64KB}]\nengine: {datapath: kernel}\n"+
		"queues: {ecn: off}\n", strings.Replace(topology, "LINK", "{rate: 100Gbps, delay: 1us}", 1))
	x := build(t, text)
	spec := emulation(x, 1000, emulate.Processes{}, qdisc.Full())
	l := kernelpath.Lab{Fabric: &spec.Fabric, Addrs: spec.Addrs, Switches: spec.Kernel.Switches, Net: spec.Kernel.Net, MTU: 4 * units.KB}
	for h := range x.Plans {
		l.Hosts = append(l.Hosts, x.Plans[h].Name)
	}
	n, err := kernelpath.Plan(&l)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Every kind of topology becomes bridges and routes over which all hosts reach each other, on
// shortest paths, whichever next hops the switches choose.
func TestKernelReachesAll(t *testing.T) {
	for _, c := range kernelTopologies {
		n := kernelPlan(t, c.topology)
		hops := 0
		for from := range n.Hosts {
			for to := range n.Hosts {
				if from != to {
					hops = max(hops, maxHops(t, n, n.Hosts[from].Home, to, len(n.Switches)))
				}
			}
		}
		if hops != c.hops {
			t.Errorf("%s: packets cross up to %d switches, expected %d", c.name, hops, c.hops)
		}
	}
}

// maxHops returns the maximum number of switches that a packet crosses from a switch to a host.
func maxHops(t *testing.T, n *kernelpath.Network, at, to, left int) int {
	sw := &n.Switches[at]
	if left == 0 {
		t.Fatalf("packets to %s go in circles at %s", n.Hosts[to].Name, sw.Name)
	}
	if slices.ContainsFunc(sw.Rack, func(m kernelpath.Member) bool { return m.Host == to }) {
		return 1
	}
	i := slices.IndexFunc(sw.Routes, func(r kernelpath.Route) bool { return r.To == to })
	if i < 0 || len(sw.Groups[sw.Routes[i].Group]) == 0 {
		t.Fatalf("%s has no path to %s", sw.Name, n.Hosts[to].Name)
	}
	hops := 0
	for _, next := range sw.Groups[sw.Routes[i].Group] {
		p := &sw.Ports[next]
		if end := n.Ends[p.Port]; end.Switch != at || end.Interface != p.Interface || n.Ends[p.Port^1].Switch != p.Peer || n.Switches[p.Peer].Addr != p.Via {
			t.Fatalf("%s: port %+v has ends %+v and %+v", sw.Name, *p, end, n.Ends[p.Port^1])
		}
		hops = max(hops, maxHops(t, n, p.Peer, to, left-1))
	}
	return hops + 1
}

// TestKernelPlans keeps the plans of two small topologies as tables for review.
func TestKernelPlans(t *testing.T) {
	for _, c := range kernelTopologies {
		if c.name != "dumbbell" && c.name != "custom" {
			continue
		}
		n := kernelPlan(t, c.topology)
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "host\taddress\tMAC\tswitch\tneighbours on the bridge")
		for _, h := range n.Hosts {
			var peers []string
			for _, p := range h.Peers {
				peers = append(peers, p.Addr.String())
			}
			fmt.Fprintf(w, "%s\t%v\t%v\t%s\t%s\n", h.Name, h.Addr, h.MAC, n.Switches[h.Home].Name, dashIfNone(peers))
		}
		fmt.Fprintln(w, "\nswitch\taddress\tMAC\tbridged interfaces")
		for _, sw := range n.Switches {
			var bridged []string
			for _, m := range sw.Rack {
				bridged = append(bridged, m.Interface)
			}
			fmt.Fprintf(w, "%s\t%v\t%v\t%s\n", sw.Name, sw.Addr, sw.MAC, dashIfNone(bridged))
		}
		fmt.Fprintln(w, "\nswitch\troute to\tby equal-cost interfaces")
		for _, sw := range n.Switches {
			for _, r := range sw.Routes {
				var by []string
				for _, p := range sw.Groups[r.Group] {
					by = append(by, fmt.Sprintf("%s via %v", sw.Ports[p].Interface, sw.Ports[p].Via))
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", sw.Name, n.Hosts[r.To].Addr, strings.Join(by, ", "))
			}
		}
		fmt.Fprintln(w, "\ncable end A\tcable end B")
		for _, k := range n.Cables {
			fmt.Fprintf(w, "%s:%s\t%s:%s\n", k.A.Node, k.A.Interface, k.B.Node, k.B.Interface)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		golden.Table(t, "kernel-"+c.name, "The kernel datapath's plan of a "+c.name+" topology.", b.String())
	}
}

// dashIfNone joins names. Without names it returns "-".
func dashIfNone(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

// A lab is rejected before it starts if no kernel can honour it at the dilation it asks for. If it
// leaves the dilation open, only possible dilations are tried.
func TestKernelHonoursDilation(t *testing.T) {
	text := func(dilation string) string {
		return star + "queues: {ecn: {mark: ingress}}\nworkload: [{collective: incast, ranks: 2, root: h3, size: 64KB}]\nengine: {datapath: kernel" + dilation + "}\n"
	}
	wantProblem(t, text(", dilation: 1000000000"), "engine.datapath", "at dilation 1000000000", "whole bytes per second")
	build(t, text(", dilation: 30000"))
	x := build(t, text(""))
	p := placement{datapath: lab.DatapathKernel, kernel: qdisc.Full()}
	if got := slowerDilations(x, p, 30_000); !slices.Equal(got, []float64{60_000, 120_000, 240_000}) {
		t.Errorf("instead of 30000: %v", got)
	}
	if got := slowerDilations(x, p, 3e8); len(got) != 0 {
		t.Errorf("instead of 300,000,000: %v", got)
	}
	x.Lab.Engine.Dilation = 30_000
	if got := slowerDilations(x, p, 30_000); got != nil {
		t.Errorf("instead of what was asked for: %v", got)
	}
}

// slowdownReason names the dilations that failed.
func TestSlowdownReason(t *testing.T) {
	got := slowdownReason(realtime.Ready{Dilation: 400, Tried: []realtime.Tried{{Dilation: 100}, {Dilation: 200}}})
	if want := "at 100, at 200 links differed from the lab"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// WithMachine reports what no kernel can do together with what this machine's kernel lacks. It
// leaves other errors alone.
func TestWithMachine(t *testing.T) {
	const text = "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\nengine: {datapath: kernel}\n"
	for more, of := range map[string]bool{"queues: {pfc: on}\n": true, "queues: {ecn: off}\nseed: x\n": false} {
		_, err := lab.Parse("lab.yaml", []byte(text+more), lab.Options{})
		var before, after lab.Problems
		if !errors.As(err, &before) {
			t.Fatalf("%q: %v", more, err)
		}
		want := len(before)
		_, lacks := kernelpath.Available()
		if of && errors.Is(lacks, qdisc.ErrRefused) {
			want++
		}
		if got := WithMachine(t.Context(), err); !errors.As(got, &after) || len(after) != want {
			t.Errorf("%q: %d problems, want %d:\n%v", more, len(after), want, got)
		}
	}
}
