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

// Bridge is the name of the bridge that a switch's hosts are attached to. It also has the switch's
// address.
const Bridge = "rack"

// Lab describes the network to build.
type Lab struct {
	Fabric   *fabric.Config // ports 2l and 2l+1 are the two directions of link l
	Hosts    []string       // names, by host
	Addrs    []netip.Addr   // IPv4, by host
	Switches []netip.Addr   // IPv4, by switch
	Net      netip.Prefix   // contains all addresses
	MTU      units.Bytes    // largest IP packet
}

// Network describes the contents of the nodes' namespaces.
type Network struct {
	Hosts    []Host
	Switches []Switch
	Cables   []boot.Cable
	Ends     []End // by fabric port: the interface with the port's queue
}

// Host describes how a host is attached.
type Host struct {
	Name  string
	Addr  netip.Addr
	MAC   boot.MAC
	Home  int // its switch
	Peers []boot.Peer
}

// Switch describes the namespace of a switch.
type Switch struct {
	Name    string
	Addr    netip.Addr
	MAC     boot.MAC       // of the bridge and of every port
	Seed    uint64         // of the choice among equal paths
	Balance fabric.Balance // how it is made
	Rack    []Member       // hosts on its bridge
	Ports   []Port         // ports to other switches
	Groups  [][]int        // equal paths, as indices in Ports
	Routes  []Route        // by destination
	// Detours are, by host, the ports to switches as far from it as this one, as indices in Ports
	Detours map[int][]int
}

// Member is a host on a bridge.
type Member struct {
	Interface string
	Host      int
	Port      int // fabric port
}

// Port is a switch's interface to another switch.
type Port struct {
	Interface string
	Peer      int        // the other switch
	Via       netip.Addr // address of the other switch
	Port      int        // fabric port
}

// Route is the route to a host, or with CCM to a switch.
type Route struct {
	To    int // the host, or the number of hosts plus that of the switch
	Group int // index in Groups
}

// End is an interface whose queue is that of one direction of a link.
type End struct {
	Host, Switch int    // one of them is -1
	Interface    string // name in its namespace
}

// Plan returns the network to build for a lab.
func Plan(l *Lab) (*Network, error) {
	cfg := l.Fabric
	n := &Network{Ends: make([]End, len(cfg.Ports)), Hosts: make([]Host, cfg.Hosts), Switches: make([]Switch,
		len(cfg.Switches))}
	if len(cfg.Ports)%2 != 0 || len(l.Switches) != len(cfg.Switches) || len(l.Addrs) != cfg.Hosts ||
		len(l.Hosts) != cfg.Hosts {
		return nil, fmt.Errorf("%d ports, %d addresses of %d switches, %d addresses and %d names of %d hosts",
			len(cfg.Ports), len(l.Switches), len(cfg.Switches), len(l.Addrs), len(l.Hosts), cfg.Hosts)
	}
	for h := range n.Hosts {
		n.Hosts[h] = Host{Name: l.Hosts[h], Addr: l.Addrs[h], MAC: boot.MACOf(l.Addrs[h]), Home: -1}
	}
	for s := range n.Switches {
		c := &cfg.Switches[s]
		n.Switches[s] = Switch{Name: c.Name, Addr: l.Switches[s], MAC: boot.MACOf(l.Switches[s]), Seed: c.Seed,
			Balance: c.Balance}
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
	if b < hosts { // the switch creates a host's cable
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
		A: boot.CableEnd{Node: n.Switches[s].Name, Interface: from, MAC: n.Switches[s].MAC, Queue: queueLength,
			Index: firstIndex + i},
		B:   boot.CableEnd{Node: n.Switches[t].Name, Interface: to, MAC: n.Switches[t].MAC, Queue: queueLength},
		MTU: l.MTU,
	})
	return nil
}

// source returns the only permitted sender on a fabric port: its host, or nil at a switch.
func (n *Network) source(port int) *qdisc.Source {
	if h := n.Ends[port].Host; h >= 0 {
		return &qdisc.Source{MAC: n.Hosts[h].MAC, Addr: n.Hosts[h].Addr}
	}
	return nil
}

// queueLength is the txqueuelen in frames of interfaces whose qdisc has a limit of its own.
const queueLength = 1000

// firstIndex is the smallest interface index that cables are created with. Our own value: it keeps
// them apart from the indices of the other ends, which are the next free ones of their namespaces.
// If both ends of a veth pair have the same index, the kernel takes a second to see that the device
// is up (dev/link_watch.c treats it as unpaired).
const firstIndex = 1 << 16

// attach plans the cable of a host, which sends through port up and receives through port down.
func (n *Network) attach(l *Lab, h, s, up, down int) error {
	host, sw := &n.Hosts[h], &n.Switches[s]
	if host.Home >= 0 {
		return fmt.Errorf("host %s has more than one link", host.Name)
	}
	host.Home = s
	name := n.name(s, host.Name, down)
	sw.Rack = append(sw.Rack, Member{name, h, down})
	n.Ends[up], n.Ends[down] = End{h, -1, boot.Interface}, End{-1, s, name}
	n.Cables = append(n.Cables, boot.Cable{
		A:   boot.CableEnd{Node: sw.Name, Interface: name, MAC: sw.MAC, Queue: queueLength, Index: firstIndex + down},
		B:   boot.CableEnd{Node: host.Name, Interface: boot.Interface, MAC: host.MAC, Queue: boot.QueueLength},
		MTU: l.MTU,
	})
	return nil
}

// maxName is the largest length of an interface name: IFNAMSIZ of linux/if.h without the final
// zero.
const maxName = 15

// name returns the name of a switch's interface: the peer's name if possible, otherwise one with
// the number of the fabric port.
func (n *Network) name(s int, peer string, port int) string {
	taken := func(name string) bool {
		sw := &n.Switches[s]
		return slices.ContainsFunc(sw.Ports, func(p Port) bool { return p.Interface == name }) ||
			slices.ContainsFunc(sw.Rack, func(m Member) bool { return m.Interface == name })
	}
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && !strings.ContainsRune(`/:%\`, r) }
	reserved := []string{"", ".", "..", "lo", "all", "default", Bridge}
	if len(peer) > maxName || slices.Contains(reserved, peer) || strings.HasPrefix(peer, "port") ||
		tcnl.IsIFBName(peer) || taken(peer) ||
		strings.ContainsFunc(peer, func(r rune) bool { return !plain(r) }) {
		return fmt.Sprintf("port%d", port)
	}
	return peer
}

// neighbours gives every host permanent neighbour entries for the other hosts on its bridge.
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

// route plans how a switch forwards, from the tables of its modelled counterpart.
func (n *Network) route(s int, c *fabric.SwitchConfig) error {
	sw := &n.Switches[s]
	ports := map[int32]int{}
	for i, p := range sw.Ports {
		ports[int32(p.Port)] = i
	}
	groups := map[int32]int{} // index of each group of ports to switches
	sw.Groups, sw.Routes = nil, nil
	path := func(to int, port int32) (int, error) {
		i, ok := ports[port]
		if !ok {
			return 0, fmt.Errorf("switch %s sends what is for %s by port %d, which is not its own", sw.Name,
				n.nameOf(to), port)
		}
		return i, nil
	}
	sw.Detours = map[int][]int{}
	for h, g := range c.Aside {
		if g < 0 {
			continue
		}
		for _, port := range c.Groups[g] {
			i, err := path(h, port)
			if err != nil {
				return err
			}
			sw.Detours[h] = append(sw.Detours[h], i)
		}
	}
	for to, g := range c.Route {
		if g < 0 || to < len(n.Hosts) && n.Hosts[to].Home == s {
			continue
		}
		index, known := groups[g]
		if !known {
			var paths []int
			for _, port := range c.Groups[g] {
				i, err := path(to, port)
				if err != nil {
					return err
				}
				paths = append(paths, i)
			}
			index = len(sw.Groups)
			groups[g], sw.Groups = index, append(sw.Groups, paths)
		}
		sw.Routes = append(sw.Routes, Route{to, index})
	}
	return nil
}

// nameOf returns the name of a destination: see Route.To.
func (n *Network) nameOf(to int) string {
	if s := to - len(n.Hosts); s >= 0 {
		return n.Switches[s].Name
	}
	return n.Hosts[to].Name
}

// AddrOf returns the address of a destination: see Route.To.
func (n *Network) AddrOf(to int) netip.Addr {
	if s := to - len(n.Hosts); s >= 0 {
		return n.Switches[s].Addr
	}
	return n.Hosts[to].Addr
}
