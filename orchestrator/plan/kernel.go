package plan

import (
	"fmt"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/units"
)

// Kinds of operation of a lab that the machine's kernel switches.
const (
	StartSwitch Kind = "start-switch"
	PlugCable   Kind = "plug-cable"
	AddRoutes   Kind = "add-routes"
	MakeBridge  Kind = "make-bridge"
	ShapeLink   Kind = "shape-link"
	MeasureLink Kind = "measure-links"
)

// switchMemory is that of a process that holds a switch's namespaces and runs nothing. Ours.
const switchMemory = 12 * units.MiB

// kernel plans a lab whose switches are nodes, joined by cables that tc shapes.
func (p *Plan) kernel(g *topology.Graph, l *lab.Lab) {
	start, end := p.words()
	nodes := make([]int, len(g.Nodes))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind == topology.Switch {
			nodes[i] = p.add(StartSwitch, n.Name, "start a node "+start+" that runs nothing", end+" and its interfaces go with it")
			continue
		}
		nodes[i] = p.add(StartNode, n.Name, "start a node "+start+", with a read-only root and no network", end+" and "+device+" go with it")
	}
	wired := p.cables(g, nodes)
	ready := make([]int, len(g.Nodes))
	for i := range g.Nodes {
		if g.Nodes[i].Kind == topology.Host {
			h := topology.NodeID(i)
			ready[i] = p.add(AddRoutes, g.Nodes[i].Name, fmt.Sprintf("give %s %s/32, MTU %d, %v, the hosts of its rack, and all others by its switch",
				device, g.Nodes[i].Addr, p.NICMTU, topology.HostMAC(h)), "goes with "+device, wired[i]...)
		}
	}
	for i := range g.Nodes {
		if g.Nodes[i].Kind == topology.Switch {
			ready[i] = p.forwarding(g, topology.NodeID(i), wired[i])
		}
	}
	var shaped []int
	for k := range g.Links {
		a, b := g.Links[k].A, g.Links[k].B
		shaped = append(shaped, p.add(ShapeLink, g.Nodes[b].Name,
			fmt.Sprintf("shape both directions of %s: tbf, red and bfifo at the near end, netem behind it", g.Links[k].Name), "goes with the cable", ready[a], ready[b]))
	}
	p.add(MeasureLink, "all", "read every link back, and measure some of each kind: rate, delay, marks and loss", "nothing is left", shaped...)
	p.Resources = Resources{
		Processes: len(g.Nodes), Namespaces: len(g.Nodes) * namespaces, Cables: len(g.Links),
		Neighbours: p.Resources.Neighbours,
		Memory:     memory(g, l) - fabricMemory + units.Bytes(g.Switches())*switchMemory,
	}
}

// cables plans all cables, and returns by node what waits for its own.
func (p *Plan) cables(g *topology.Graph, nodes []int) [][]int {
	wired := make([][]int, len(g.Nodes))
	for k := range g.Links {
		a, b := g.Links[k].A, g.Links[k].B
		id := p.add(PlugCable, g.Nodes[b].Name, fmt.Sprintf("make the veth pair %s, one end in either node, its offloads off", g.Links[k].Name), "goes with either end", nodes[a], nodes[b])
		wired[a], wired[b] = append(wired[a], id), append(wired[b], id)
	}
	return wired
}

// forwarding plans what a switch does with packets.
func (p *Plan) forwarding(g *topology.Graph, id topology.NodeID, wired []int) int {
	sw := &g.Nodes[id]
	rack := 0
	for h := range g.Hosts {
		if g.Home(topology.NodeID(h)) == id {
			rack++
		}
	}
	if rack > 0 {
		wired = []int{p.add(MakeBridge, sw.Name, fmt.Sprintf("make the bridge rack of %s, which learns and floods nothing", plural(rack, "host")), "goes with the node", wired...)}
	}
	p.Resources.Neighbours += rack*(rack-1) + rack // hosts know each other and the switch
	p.Resources.Neighbours += len(g.Adjacent[id])  // and it knows whoever it has a cable to
	return p.add(AddRoutes, sw.Name, fmt.Sprintf("route to %s by groups of next hops, chosen by addresses and ports", plural(g.Hosts-rack, "host")), "goes with the node", wired...)
}
