package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/nodeimg/boot"
	"weft/orchestrator/kernelpath"
	"weft/tc-shaping/qdisc"
)

// Kinds of operation of a lab on the kernel datapath.
const (
	StartSwitch Kind = "start-switch"
	PlugCable   Kind = "plug-cable"
	AddRoutes   Kind = "add-routes"
	MakeBridge  Kind = "make-bridge"
	ShapeLink   Kind = "shape-link"
	MeasureLink Kind = "measure-links"
)

// planKernel plans a lab whose switches are nodes, with veth pairs between them that tc shapes.
// links has the disciplines of each direction, by port. nil means that the dilation is not known.
func (b *builder) planKernel(links []qdisc.Tree) {
	spec, net := &b.setup.Spec, b.setup.Network
	started, plugged := map[string]int{}, map[string][]int{}
	for i := range spec.Switches {
		name := spec.Switches[i].Name
		started[name] = b.addProcess(StartSwitch, name, "a node that runs nothing,", "its interfaces")
	}
	hosts := map[string]*boot.NodeSpec{}
	for i := range spec.Nodes {
		name := spec.Nodes[i].Name
		hosts[name] = &spec.Nodes[i]
		started[name] = b.addProcess(StartNode, name, "a node, with a read-only root and no network,", withHost)
	}
	for i := range spec.Cables {
		c := &spec.Cables[i]
		id := b.addCable(c, hosts, started[c.A.Node], started[c.B.Node])
		plugged[c.A.Node], plugged[c.B.Node] = append(plugged[c.A.Node], id), append(plugged[c.B.Node], id)
	}
	ready := map[string]int{}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		ready[n.Name] = b.addHostRoutes(n, plugged[n.Name])
	}
	chosen := len(links) > 0 && links[0].Gate != nil
	for i := range net.Switches {
		sw := &net.Switches[i]
		ready[sw.Name] = b.addSwitchRoutes(sw, chosen, plugged[sw.Name])
	}
	var shaped []int
	for i := range spec.Cables {
		shaped = append(shaped, b.addShaping(2*i, links, ready))
	}
	const measure = "read every link back, and measure some of each kind: rate, delay, marks and loss"
	b.add(MeasureLink, "all", measure, "nothing is left", nil, shaped...)
}

// addCable plans a veth pair between two nodes. An end at a host has the host's queue length, which
// the host sets last.
func (b *builder) addCable(c *boot.Cable, hosts map[string]*boot.NodeSpec, after ...int) int {
	b.Resources.Cables++
	var makes []string
	for _, e := range []boot.CableEnd{c.A, c.B} {
		queue := c.Queue
		if host := hosts[e.Node]; host != nil {
			queue = boot.QueueLength
		}
		makes = append(makes, interfaceProperties(e.Node, e.Interface, "veth", fmt.Sprintf("mtu %d", c.MTU),
			fmt.Sprintf("link/ether %v", e.MAC), fmt.Sprintf("txqueuelen %d", queue))...)
	}
	do := fmt.Sprintf("make a veth pair from %s of %s to %s of %s, MTU %d, its offloads off",
		c.A.Interface, c.A.Node, c.B.Interface, c.B.Node, c.MTU)
	return b.add(PlugCable, c.A.Node, do, "goes with either end", makes, after...)
}

// addHostRoutes plans the address, neighbours and routes of a host.
func (b *builder) addHostRoutes(n *boot.NodeSpec, after []int) int {
	const eth = boot.Interface
	makes := []string{property(n.Name, "lo up"), property(n.Name, eth+" up"), property(n.Name, eth+" inet %v", n.Addr)}
	makes = append(makes, b.neighbours(n.Name, eth, n.Neighbours()...)...)
	for _, r := range n.Routes() {
		via := ""
		if r.Via.IsValid() {
			via = fmt.Sprintf(" via %v", r.Via)
		}
		makes = append(makes, property(n.Name, "%s route %v%s", eth, r.To, via))
	}
	do := fmt.Sprintf("give %s %v, %s of its rack, and a route to all others by %v",
		eth, n.Addr, plural.Count(len(n.Peers), "neighbour"), n.Gateway.Addr)
	return b.add(AddRoutes, n.Name, do+withTCP(n), gone, makes, after...)
}

// addSwitchRoutes plans the bridge and the routes of a switch. chosen says that BPF programs choose
// among its ports.
func (b *builder) addSwitchRoutes(sw *kernelpath.Switch, chosen bool, after []int) int {
	const bridge = kernelpath.Bridge
	hosts := b.setup.Network.Hosts
	makes := []string{property(sw.Name, "lo up")}
	if len(sw.Rack) == 0 {
		makes = append(makes, property(sw.Name, "lo inet %v/32", sw.Addr))
	} else {
		makes = append(makes, interfaceProperties(sw.Name, bridge, "bridge", fmt.Sprintf("mtu %d", b.NICMTU),
			fmt.Sprintf("link/ether %v", sw.MAC), fmt.Sprintf("inet %v/32", sw.Addr), "up")...)
		for _, m := range sw.Rack {
			h := &hosts[m.Host]
			makes = append(makes, property(sw.Name, "%s master %s", m.Interface, bridge),
				property(sw.Name, "%s up", m.Interface), property(sw.Name, bridge+" route %v/32", h.Addr))
			makes = append(makes, b.neighbours(sw.Name, bridge, boot.Peer{Addr: h.Addr, MAC: h.MAC})...)
		}
		do := fmt.Sprintf("make the bridge %s of %s, which learns and floods nothing",
			bridge, plural.Count(len(sw.Rack), "host"))
		made := b.add(MakeBridge, sw.Name, do, "goes with the node", makes, after...)
		if len(sw.Ports) == 0 {
			return made
		}
		makes, after = nil, []int{made}
	}
	for _, p := range sw.Ports {
		makes = append(makes, property(sw.Name, "%s up", p.Interface))
		peer := boot.Peer{Addr: p.Via, MAC: b.setup.Network.Switches[p.Peer].MAC}
		makes = append(makes, b.neighbours(sw.Name, p.Interface, peer)...)
	}
	for _, r := range sw.Routes {
		to := routeTo(sw, b.setup.Network.AddrOf(r.To), sw.Groups[r.Group], chosen)
		makes = append(makes, property(sw.Name, "%s", to))
	}
	to := plural.Count(len(sw.Routes), "host")
	if slices.ContainsFunc(sw.Routes, func(r kernelpath.Route) bool { return r.To >= len(hosts) }) {
		to = plural.Count(len(sw.Routes), "node")
	}
	do := fmt.Sprintf("route to %s by groups of next hops, chosen by addresses and ports", to)
	if chosen {
		do += fmt.Sprintf("; for BPF programs, which choose as the simulator does, route by the marks of %s",
			plural.Count(len(sw.Ports), "port"))
	}
	return b.add(AddRoutes, sw.Name, do, "goes with the node", makes, after...)
}

// routeTo describes the route to a host over equally good next hops, with the number of shares of
// each: "route 10.0.0.3/32 by 16 of s1, 16 of s2". hops are indices of the switch's ports.
func routeTo(sw *kernelpath.Switch, to netip.Addr, hops []int, chosen bool) string {
	if len(hops) == 1 {
		p := &sw.Ports[hops[0]]
		return fmt.Sprintf("%s route %v/32 via %v", p.Interface, to, p.Via)
	}
	count := map[int]int{}
	for _, hop := range sw.Shares(hops, chosen) {
		count[hop]++
	}
	all := make([]string, len(hops))
	for i, hop := range hops {
		all[i] = fmt.Sprintf("%d of %s", count[hop], sw.Ports[hop].Interface)
	}
	return fmt.Sprintf("route %v/32 by %s", to, strings.Join(all, ", "))
}

// addShaping plans both directions of the link whose ports are p and p+1.
func (b *builder) addShaping(p int, links []qdisc.Tree, ready map[string]int) int {
	there, thereOn := b.portEnd(p)
	back, backOn := b.portEnd(p + 1)
	do := "at the dilation that is measured first, htb, red where it marks, and bfifo at the near end, " +
		"netem behind them, BPF programs at both ends"
	var makes []string
	if links != nil {
		do = fmt.Sprintf("%s from %s, %s from %s%s",
			kindNames(links[p].Near), there, kindNames(links[p+1].Near), back, behind(&links[p]))
		for i, d := range []struct {
			tree               qdisc.Tree
			from, on, to, into string
		}{{links[p], there, thereOn, back, backOn}, {links[p+1], back, backOn, there, thereOn}} {
			for _, q := range d.tree.Near {
				makes = append(makes, property(d.from, "%s out %v", d.on, q))
			}
			for _, q := range d.tree.Far {
				makes = append(makes, property(d.to, "%s in %v", d.into, q))
			}
			if d.tree.Gate != nil { // which admits senders, too
				enter, leave := qdisc.GateNames(p + i)
				makes = append(makes, property(d.from, "%s out bpf %s", d.on, enter),
					property(d.to, "%s in bpf %s", d.into, leave))
			} else if d.tree.Source != nil {
				makes = append(makes, property(d.to, "%s in %v", d.into, d.tree.Source))
			}
		}
	}
	do = fmt.Sprintf("shape the link from %s to %s: %s", there, back, do)
	return b.add(ShapeLink, there, do, "goes with the cable", makes, ready[there], ready[back])
}

// behind says what is behind the queue of a direction.
func behind(t *qdisc.Tree) (words string) {
	if len(t.Far) > 0 {
		words = ", netem behind them"
	}
	if t.Gate != nil {
		words += ", BPF programs at both ends"
	}
	return words
}

// portEnd returns the node and the interface that send the packets of a port.
func (b *builder) portEnd(port int) (node, device string) {
	e, net := b.setup.Network.Ends[port], b.setup.Network
	if e.Host >= 0 {
		return net.Hosts[e.Host].Name, e.Interface
	}
	return net.Switches[e.Switch].Name, e.Interface
}

// kindNames returns the kinds of disciplines: "htb, bfifo".
func kindNames(row []qdisc.Qdisc) string {
	all := make([]string, len(row))
	for i, q := range row {
		all[i] = q.Options.Kind()
	}
	return strings.Join(all, ", ")
}
