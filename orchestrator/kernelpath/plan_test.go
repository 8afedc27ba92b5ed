package kernelpath

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"pgregory.net/rapid"

	"weft/fabric"
	"weft/internal/golden"
	"weft/units"
)

// twoSwitches returns a lab of two switches with the same number of hosts each. Trunks links join
// the switches.
func twoSwitches(hosts, trunks int) *Lab {
	l := &Lab{
		Fabric: &fabric.Config{Hosts: 2 * hosts, Switches: make([]fabric.SwitchConfig, 2)},
		Net:    netip.MustParsePrefix("10.0.0.0/8"), MTU: 4284,
	}
	port := func(from, to int) {
		l.Fabric.Ports = append(l.Fabric.Ports, fabric.PortConfig{From: fabric.NodeID(from), To: fabric.NodeID(to),
			Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond}, Buffer: units.MB})
	}
	for h := range 2 * hosts {
		port(h, 2*hosts+h/hosts)
		port(2*hosts+h/hosts, h)
		l.Hosts = append(l.Hosts, fmt.Sprintf("h%d", h))
		l.Addrs = append(l.Addrs, netip.AddrFrom4([4]byte{10, 0, 0, byte(h + 1)}))
	}
	up := [2][]int32{}
	for range trunks {
		up[0] = append(up[0], int32(len(l.Fabric.Ports)))
		up[1] = append(up[1], int32(len(l.Fabric.Ports)+1))
		port(2*hosts, 2*hosts+1)
		port(2*hosts+1, 2*hosts)
	}
	for s := range 2 {
		sw := &l.Fabric.Switches[s]
		sw.Name, sw.Seed = fmt.Sprintf("s%d", s), uint64(s+1)
		for h := range 2 * hosts {
			if h/hosts == s {
				sw.Route = append(sw.Route, int32(len(sw.Groups)))
				sw.Groups = append(sw.Groups, []int32{int32(2*h + 1)})
			}
		}
		sw.Groups = append(sw.Groups, up[s])
		route := sw.Route
		sw.Route = nil
		for h := range 2 * hosts {
			if h/hosts == s {
				sw.Route, route = append(sw.Route, route[0]), route[1:]
			} else {
				sw.Route = append(sw.Route, int32(len(sw.Groups)-1))
			}
		}
		l.Switches = append(l.Switches, netip.AddrFrom4([4]byte{10, 128, 0, byte(s + 1)}))
	}
	return l
}

func TestPlan(t *testing.T) {
	n, err := Plan(twoSwitches(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "host\taddress\tMAC\tswitch\tneighbours on the bridge")
	for _, h := range n.Hosts {
		fmt.Fprintf(w, "%s\t%v\t%v\t%s\t", h.Name, h.Addr, h.MAC, n.Switches[h.Home].Name)
		for _, p := range h.Peers {
			fmt.Fprintf(w, "%v at %v", p.Addr, p.MAC)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "\nswitch\taddress\tMAC\tECMP seed")
	for _, s := range n.Switches {
		fmt.Fprintf(w, "%s\t%v\t%v\t%d\n", s.Name, s.Addr, s.MAC, s.Seed)
	}
	fmt.Fprintln(w, "\nswitch\tbridged interface\thost")
	for _, s := range n.Switches {
		for _, m := range s.Rack {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, m.Interface, n.Hosts[m.Host].Name)
		}
	}
	fmt.Fprintln(w, "\nswitch\trouted interface\tpeer\tpeer's address\tfabric port")
	for _, s := range n.Switches {
		for _, p := range s.Ports {
			fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%d\n", s.Name, p.Interface, n.Switches[p.Peer].Name, p.Via, p.Port)
		}
	}
	fmt.Fprintln(w, "\nswitch\troute to\tby equal-cost interfaces")
	for _, s := range n.Switches {
		for _, r := range s.Routes {
			var by []string
			for _, p := range s.Groups[r.Group] {
				by = append(by, s.Ports[p].Interface)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, n.Hosts[r.To].Name, strings.Join(by, " "))
		}
	}
	fmt.Fprintln(w, "\ncable end A\tMAC\tindex\tcable end B\tMAC\tindex\tMTU\tqueues, packets")
	for _, c := range n.Cables {
		fmt.Fprintf(w, "%s:%s\t%v\t%d\t%s:%s\t%v\t%d\t%d B\t%d, %d\n", c.A.Node, c.A.Interface, c.A.MAC, c.A.Index,
			c.B.Node, c.B.Interface, c.B.MAC, c.B.Index, int(c.MTU), c.A.Queue, c.B.Queue)
	}
	fmt.Fprintln(w, "\nfabric port\tnode\tinterface with its queue")
	for i, e := range n.Ends {
		node := ""
		if e.Host >= 0 {
			node = n.Hosts[e.Host].Name
		} else {
			node = n.Switches[e.Switch].Name
		}
		fmt.Fprintf(w, "%d\t%s\t%s\n", i, node, e.Interface)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	golden.Table(t, "plan", "The plan of two switches with two hosts each and two links between them.", b.String())
}

func TestPlanRefuses(t *testing.T) {
	for want, change := range map[string]func(*Lab){
		"not the two directions":  func(l *Lab) { l.Fabric.Ports[1].To = 3 },
		"without a switch":        func(l *Lab) { l.Fabric.Ports[0].To, l.Fabric.Ports[1].From = 1, 1 },
		"more than one link":      func(l *Lab) { l.Fabric.Ports[2].From, l.Fabric.Ports[3].To = 0, 0 },
		"has no link":             func(l *Lab) { l.Fabric.Ports = l.Fabric.Ports[2:] },
		"addresses of 2 switches": func(l *Lab) { l.Switches = l.Switches[:1] },
		"not its own":             func(l *Lab) { l.Fabric.Switches[0].Groups[2][0] = 9 },
	} {
		l := twoSwitches(2, 2)
		change(l)
		if _, err := Plan(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Interfaces are named after their peers unless the kernel refuses the name or it is taken.
func TestInterfaceNames(t *testing.T) {
	l := twoSwitches(3, 2)
	l.Hosts[0], l.Hosts[1], l.Hosts[2] = "rack", "a-host-with-a-long-name", "port1"
	l.Fabric.Switches[1].Name = "wire65537" // the name of an ifb
	n, err := Plan(l)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range n.Switches[0].Rack {
		names = append(names, m.Interface)
	}
	for _, p := range n.Switches[0].Ports {
		names = append(names, p.Interface)
	}
	if want := []string{"port1", "port3", "port5", "port12", "port14"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// Every path has the same share of the hash's range, also of any stretch of whole rounds, and two
// switches use different orders.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths, seed := rapid.IntRange(2, 16).Draw(t, "paths"), rapid.Uint64().Draw(t, "seed")
		order := spread(paths, seed)
		if len(order) != rounds*paths {
			t.Fatalf("%d shares", len(order))
		}
		for round := range slices.Chunk(order, paths) {
			round = slices.Clone(round)
			slices.Sort(round)
			for i, w := range round {
				if w != i {
					t.Fatalf("a round of %v", round)
				}
			}
		}
		if slices.Equal(order, spread(paths, seed+1)) {
			t.Fatalf("seeds %d and %d make the same order", seed, seed+1)
		}
	})
	if one := spread(1, 7); !slices.Equal(one, []int{0}) {
		t.Errorf("one path has shares %v", one)
	}
}
