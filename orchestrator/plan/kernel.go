package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"weft/nodeimg/boot"
	"weft/orchestrator/kernelpath"
	"weft/tc-shaping/qdisc"
)

// Kinds of operation of a lab whose packets the machine's kernel carries.
const (
	StartSwitch Kind = "start-switch"
	PlugCable   Kind = "plug-cable"
	AddRoutes   Kind = "add-routes"
	MakeBridge  Kind = "make-bridge"
	ShapeLink   Kind = "shape-link"
	MeasureLink Kind = "measure-links"
)

// switched plans a lab whose switches are nodes, joined by cables that tc shapes.
func (b *builder) switched(links []qdisc.Tree) {
	spec, net := &b.setup.Spec, b.setup.Network
	started, plugged := map[string]int{}, map[string][]int{}
	for i := range spec.Switches {
		name := spec.Switches[i].Name
		started[name] = b.start(StartSwitch, name, "a node that runs nothing,", ", and its interfaces go with it")
	}
	hosts := map[string]*boot.NodeSpec{}
	for i := range spec.Nodes {
		name := spec.Nodes[i].Name
		hosts[name] = &spec.Nodes[i]
		started[name] = b.start(StartNode, name, "a node, with a read-only root and no network,", withHost)
	}
	for i := range spec.Cables {
		c := &spec.Cables[i]
		id := b.cable(c, hosts, started[c.A.Node], started[c.B.Node])
		plugged[c.A.Node], plugged[c.B.Node] = append(plugged[c.A.Node], id), append(plugged[c.B.Node], id)
	}
	ready := map[string]int{}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		ready[n.Name] = b.wired(n, plugged[n.Name])
	}
	for i := range net.Switches {
		sw := &net.Switches[i]
		ready[sw.Name] = b.forwarding(sw, plugged[sw.Name])
	}
	var shaped []int
	for i := range spec.Cables {
		shaped = append(shaped, b.shape(2*i, links, ready))
	}
	b.add(MeasureLink, "all", "read every link back, and measure some of each kind: rate, delay, marks and loss", "nothing is left", nil, shaped...)
}

// cable plans a veth pair between two nodes. An end has the queue length that is set last: at a host the host's own.
func (b *builder) cable(c *boot.Cable, hosts map[string]*boot.NodeSpec, after ...int) int {
	b.Resources.Cables++
	var makes []string
	for _, e := range []boot.CableEnd{c.A, c.B} {
		queue := c.Queue
		if host := hosts[e.Node]; host != nil {
			queue = host.QueueLength()
		}
		makes = append(makes, line(e.Node, "%s veth", e.Interface), line(e.Node, "%s mtu %d", e.Interface, c.MTU),
			line(e.Node, "%s link/ether %v", e.Interface, e.MAC), line(e.Node, "%s txqueuelen %d", e.Interface, queue))
	}
	return b.add(PlugCable, c.A.Node, fmt.Sprintf("make a veth pair from %s of %s to %s of %s, MTU %d, its offloads off",
		c.A.Interface, c.A.Node, c.B.Interface, c.B.Node, c.MTU), "goes with either end", makes, after...)
}

// wired plans what a host does with its cable.
func (b *builder) wired(n *boot.NodeSpec, after []int) int {
	const eth = boot.Interface
	makes := []string{line(n.Name, "lo up"), line(n.Name, eth+" up"), line(n.Name, eth+" inet %v", n.Addr)}
	makes = append(makes, b.neighbours(n.Name, eth, n.Neighbours()...)...)
	for _, r := range n.Routes() {
		via := ""
		if r.Via.IsValid() {
			via = fmt.Sprintf(" via %v", r.Via)
		}
		makes = append(makes, line(n.Name, "%s route %v%s", eth, r.To, via))
	}
	return b.add(AddRoutes, n.Name, fmt.Sprintf("give %s %v, %s of its rack, and a route to all others by %v",
		eth, n.Addr, plural(len(n.Peers), "neighbour"), n.Gateway.Addr), gone, makes, after...)
}

// forwarding plans what a switch does with packets.
func (b *builder) forwarding(sw *kernelpath.Switch, after []int) int {
	const bridge = kernelpath.Bridge
	hosts := b.setup.Network.Hosts
	makes := []string{line(sw.Name, "lo up")}
	if len(sw.Rack) == 0 {
		makes = append(makes, line(sw.Name, "lo inet %v/32", sw.Addr))
	} else {
		makes = append(makes,
			line(sw.Name, bridge+" bridge"), line(sw.Name, bridge+" mtu %d", b.NICMTU),
			line(sw.Name, bridge+" link/ether %v", sw.MAC), line(sw.Name, bridge+" inet %v/32", sw.Addr), line(sw.Name, bridge+" up"))
		for _, m := range sw.Rack {
			h := &hosts[m.Host]
			makes = append(makes, line(sw.Name, "%s master %s", m.Interface, bridge), line(sw.Name, "%s up", m.Interface), line(sw.Name, bridge+" route %v/32", h.Addr))
			makes = append(makes, b.neighbours(sw.Name, bridge, boot.Peer{Addr: h.Addr, MAC: h.MAC})...)
		}
		after = []int{b.add(MakeBridge, sw.Name, fmt.Sprintf("make the bridge %s of %s, which learns and floods nothing", bridge, plural(len(sw.Rack), "host")), "goes with the node", makes, after...)}
		if makes = nil; len(sw.Ports) == 0 {
			return after[0]
		}
	}
	for _, p := range sw.Ports {
		makes = append(makes, line(sw.Name, "%s up", p.Interface))
		makes = append(makes, b.neighbours(sw.Name, p.Interface, boot.Peer{Addr: p.Via, MAC: b.setup.Network.Switches[p.Peer].MAC})...)
	}
	for _, r := range sw.Routes {
		makes = append(makes, line(sw.Name, "%s", routeBy(sw, hosts[r.Host].Addr, sw.Groups[r.Group])))
	}
	return b.add(AddRoutes, sw.Name, fmt.Sprintf("route to %s by groups of next hops, chosen by addresses and ports", plural(len(sw.Routes), "host")), "goes with the node", makes, after...)
}

// routeBy is a route to a host by equally good next hops, with how many shares each has: "route 10.0.0.3/32 by 16 of s1, 16 of s2".
func routeBy(sw *kernelpath.Switch, to netip.Addr, ways []int) string {
	if len(ways) == 1 {
		p := &sw.Ports[ways[0]]
		return fmt.Sprintf("%s route %v/32 via %v", p.Interface, to, p.Via)
	}
	count := map[int]int{}
	for _, w := range sw.Shares(ways) {
		count[w]++
	}
	all := make([]string, len(ways))
	for i, w := range ways {
		all[i] = fmt.Sprintf("%d of %s", count[w], sw.Ports[w].Interface)
	}
	return fmt.Sprintf("route %v/32 by %s", to, strings.Join(all, ", "))
}

// shape plans both directions of the link whose ports are p and p+1.
func (b *builder) shape(p int, links []qdisc.Tree, ready map[string]int) int {
	there, thereOn := b.end(p)
	back, backOn := b.end(p + 1)
	do := "at the dilation that is measured first, tbf, red where it marks, and bfifo at the near end, netem behind them"
	var makes []string
	if links != nil {
		do = fmt.Sprintf("%s from %s, %s from %s, netem behind them", kinds(links[p].Near), there, kinds(links[p+1].Near), back)
		for _, d := range []struct {
			tree               qdisc.Tree
			from, on, to, into string
		}{{links[p], there, thereOn, back, backOn}, {links[p+1], back, backOn, there, thereOn}} {
			for _, q := range d.tree.Near {
				makes = append(makes, line(d.from, "%s out %v", d.on, q))
			}
			for _, q := range d.tree.Far {
				makes = append(makes, line(d.to, "%s in %v", d.into, q))
			}
			if d.tree.Source != nil {
				makes = append(makes, line(d.to, "%s in %v", d.into, d.tree.Source))
			}
		}
	}
	return b.add(ShapeLink, there, fmt.Sprintf("shape the link from %s to %s: %s", there, back, do), "goes with the cable", makes, ready[there], ready[back])
}

// end is the node and the interface that packets of a port leave by.
func (b *builder) end(port int) (node, device string) {
	e, net := b.setup.Network.Ends[port], b.setup.Network
	if e.Host >= 0 {
		return net.Hosts[e.Host].Name, e.Interface
	}
	return net.Switches[e.Switch].Name, e.Interface
}

// kinds names disciplines: "tbf, bfifo".
func kinds(row []qdisc.Qdisc) string {
	all := make([]string, len(row))
	for i, q := range row {
		all[i] = q.Options.Kind()
	}
	return strings.Join(all, ", ")
}
