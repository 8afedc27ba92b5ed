package kernelpath

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/fabric"
	"weft/nodeimg/boot"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/units"
)

// Bridge is the name of the bridge that the hosts of a switch hang on, which also has the switch's address.
const Bridge = "rack"

// Lab is a network that is to be made.
type Lab struct {
	Fabric   *fabric.Config // links are pairs of ports: 2l and 2l+1 are the two directions of one
	Hosts    []string       // names, by host
	Addrs    []netip.Addr   // IPv4, by host
	Switches []netip.Addr   // IPv4, by switch
	Net      netip.Prefix   // that holds them all
	MTU      units.Bytes    // largest IP packet
}

// Network is what the namespaces of the nodes are to hold.
type Network struct {
	Hosts    []Host
	Switches []Switch
	Cables   []boot.Cable
	Ends     []End // by port of the fabric: where packets of it wait
}

// Host is how a host is attached.
type Host struct {
	Name  string
	Addr  netip.Addr
	MAC   boot.MAC
	Home  int // the switch
	Peers []boot.Peer
}

// Switch is what the namespace of a switch holds.
type Switch struct {
	Name   string
	Addr   netip.Addr
	MAC    boot.MAC // of the bridge and of every port
	Seed   uint64   // of the choice among equal ways
	Rack   []Member // hosts on its bridge
	Ports  []Port   // that it routes by
	Groups [][]int  // equally good ways, each an index in Ports
	Routes []Route  // by destination
}

// Member is a host on a bridge.
type Member struct {
	Interface string
	Host      int
}

// Port is an interface of a switch that leads to another.
type Port struct {
	Interface string
	Peer      int        // the other switch
	Via       netip.Addr // its address
	Port      int        // of the fabric
}

// Route is the way to a host.
type Route struct {
	Host  int
	Group int // in Groups
}

// End is an interface whose queue is one direction of a link.
type End struct {
	Host, Switch int    // one of them is -1
	Interface    string // in its namespace
}

// Plan says what is to be made for a lab.
func Plan(l *Lab) (*Network, error) {
	cfg := l.Fabric
	n := &Network{Ends: make([]End, len(cfg.Ports)), Hosts: make([]Host, cfg.Hosts), Switches: make([]Switch, len(cfg.Switches))}
	if len(cfg.Ports)%2 != 0 || len(l.Switches) != len(cfg.Switches) || len(l.Addrs) != cfg.Hosts || len(l.Hosts) != cfg.Hosts {
		return nil, fmt.Errorf("%d ports, %d addresses of %d switches, %d addresses and %d names of %d hosts",
			len(cfg.Ports), len(l.Switches), len(cfg.Switches), len(l.Addrs), len(l.Hosts), cfg.Hosts)
	}
	for h := range n.Hosts {
		n.Hosts[h] = Host{Name: l.Hosts[h], Addr: l.Addrs[h], MAC: boot.MACOf(l.Addrs[h]), Home: -1}
	}
	for s := range n.Switches {
		c := &cfg.Switches[s]
		n.Switches[s] = Switch{Name: c.Name, Addr: l.Switches[s], MAC: boot.MACOf(l.Switches[s]), Seed: c.Seed}
	}
	for i := 0; i < len(cfg.Ports); i += 2 {
		if err := n.link(l, i); err != nil {
			return nil, err
		}
	}
	for h := range n.Hosts {
		if n.Hosts[h].Home < 0 {
			return nil, fmt.Errorf("host %s has no link to a switch", n.Hosts[h].Name)
		}
	}
	n.neighbours()
	for s := range n.Switches {
		if err := n.route(s, &cfg.Switches[s]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// link plans the cable of ports i and i+1.
func (n *Network) link(l *Lab, i int) error {
	there, back := &l.Fabric.Ports[i], &l.Fabric.Ports[i+1]
	if there.From != back.To || there.To != back.From {
		return fmt.Errorf("ports %d and %d are not the two directions of a link", i, i+1)
	}
	hosts := fabric.NodeID(l.Fabric.Hosts)
	a, b := there.From, there.To
	if a < hosts && b < hosts {
		return fmt.Errorf("hosts %d and %d are joined without a switch", a, b)
	}
	if b < hosts { // a host's cable is made from its switch
		return n.attach(l, int(b), int(a-hosts), i+1, i)
	}
	if a < hosts {
		return n.attach(l, int(a), int(b-hosts), i, i+1)
	}
	s, t := int(a-hosts), int(b-hosts)
	from, to := n.name(s, n.Switches[t].Name, i), n.name(t, n.Switches[s].Name, i+1)
	n.Switches[s].Ports = append(n.Switches[s].Ports, Port{from, t, n.Switches[t].Addr, i})
	n.Switches[t].Ports = append(n.Switches[t].Ports, Port{to, s, n.Switches[s].Addr, i + 1})
	n.Ends[i], n.Ends[i+1] = End{-1, s, from}, End{-1, t, to}
	n.Cables = append(n.Cables, boot.Cable{
		A: boot.CableEnd{Node: n.Switches[s].Name, Interface: from, MAC: n.Switches[s].MAC, Index: firstIndex + i},
		B: boot.CableEnd{Node: n.Switches[t].Name, Interface: to, MAC: n.Switches[t].MAC}, MTU: l.MTU, Queue: queueLength,
	})
	return nil
}

// source is the host that sends by a port of the fabric; nil: a switch.
func (n *Network) source(port int) *qdisc.Source {
	if h := n.Ends[port].Host; h >= 0 {
		return &qdisc.Source{MAC: n.Hosts[h].MAC, Addr: n.Hosts[h].Addr}
	}
	return nil
}

// queueLength is that of interfaces whose queue is a qdisc with limits of its own, in frames.
const queueLength = 1000

// firstIndex is the least number of an interface that a cable is made from. Ours: the other ends, which get the next of their
// namespaces, have others. The kernel takes its time, a second, to see that a device is up whose other end has the same number
// (dev/link_watch.c: it thinks that it has none).
const firstIndex = 1 << 16

// attach plans the cable of a host: up is the port by which it sends, down that by which it receives.
func (n *Network) attach(l *Lab, h, s, up, down int) error {
	host, sw := &n.Hosts[h], &n.Switches[s]
	if host.Home >= 0 {
		return fmt.Errorf("host %s has more than one link", host.Name)
	}
	host.Home = s
	name := n.name(s, host.Name, down)
	sw.Rack = append(sw.Rack, Member{name, h})
	n.Ends[up], n.Ends[down] = End{h, -1, boot.Interface}, End{-1, s, name}
	n.Cables = append(n.Cables, boot.Cable{
		A: boot.CableEnd{Node: sw.Name, Interface: name, MAC: sw.MAC, Index: firstIndex + down},
		B: boot.CableEnd{Node: host.Name, Interface: boot.Interface, MAC: host.MAC}, MTU: l.MTU, Queue: queueLength,
	})
	return nil
}

// maxName is the most characters of an interface's name: IFNAMSIZ of linux/if.h, without its end.
const maxName = 15

// name is that of a switch's interface: of the node it leads to, if that will do, and else of the fabric's port.
func (n *Network) name(s int, peer string, port int) string {
	taken := func(name string) bool {
		sw := &n.Switches[s]
		return slices.ContainsFunc(sw.Ports, func(p Port) bool { return p.Interface == name }) ||
			slices.ContainsFunc(sw.Rack, func(m Member) bool { return m.Interface == name })
	}
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && !strings.ContainsRune(`/:%\`, r) }
	reserved := []string{"", ".", "..", "lo", "all", "default", Bridge}
	if len(peer) > maxName || slices.Contains(reserved, peer) || strings.HasPrefix(peer, "port") || tcnl.IsIFBName(peer) || taken(peer) ||
		strings.ContainsFunc(peer, func(r rune) bool { return !plain(r) }) {
		return fmt.Sprintf("port%d", port)
	}
	return peer
}

// neighbours has every host know those on its bridge.
func (n *Network) neighbours() {
	for s := range n.Switches {
		rack := n.Switches[s].Rack
		for _, m := range rack {
			for _, other := range rack {
				if h := &n.Hosts[other.Host]; other.Host != m.Host {
					n.Hosts[m.Host].Peers = append(n.Hosts[m.Host].Peers, boot.Peer{Addr: h.Addr, MAC: h.MAC})
				}
			}
		}
	}
}

// route plans how a switch forwards, from the tables of the modelled one.
func (n *Network) route(s int, c *fabric.SwitchConfig) error {
	sw := &n.Switches[s]
	ports := map[int32]int{}
	for i, p := range sw.Ports {
		ports[int32(p.Port)] = i
	}
	groups := map[int32]int{} // of those that lead to switches
	sw.Groups, sw.Routes = nil, nil
	for h, g := range c.Route[:min(len(c.Route), len(n.Hosts))] {
		if g < 0 || n.Hosts[h].Home == s {
			continue
		}
		index, known := groups[g]
		if !known {
			var ways []int
			for _, port := range c.Groups[g] {
				i, ok := ports[port]
				if !ok {
					return fmt.Errorf("switch %s sends what is for %s by port %d, which is not its own", sw.Name, n.Hosts[h].Name, port)
				}
				ways = append(ways, i)
			}
			index = len(sw.Groups)
			groups[g], sw.Groups = index, append(sw.Groups, ways)
		}
		sw.Routes = append(sw.Routes, Route{h, index})
	}
	return nil
}
