package topology

import (
	"fmt"
	"strings"

	"weft/fabric"
	"weft/units"
)

// NodeID numbers the nodes of a graph from 0: hosts first, in order, then switches. The NodeID of a
// host is its HostID in packages fabric and transport.
type NodeID int32

// NodeKind tells hosts from switches.
type NodeKind uint8

// Kinds of node.
const (
	Host NodeKind = iota + 1
	Switch
)

// String returns "host" or "switch".
func (k NodeKind) String() string {
	switch k {
	case Host:
		return "host"
	case Switch:
		return "switch"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Node is a host or a switch.
type Node struct {
	ID   NodeID
	Name string // unique in the lab: h0, edge0, agg1, core2, leaf3, spine0 ...
	Kind NodeKind
	Tier string // host, edge, agg, core, leaf, spine, switch
	Addr string // IPv4 address of a host, 10.x.y.z; empty for switches

	// Group is the rack or group of a switch of a clos or dragonfly-plus: "computing rack 1",
	// "switching rack 2", "group 3". Hosts are in that of their switch.
	Group string
}

// LinkID numbers the links of a graph from 0. A link is full duplex.
type LinkID int32

// Link joins two nodes. Its settings hold for both directions unless an end overrides them.
type Link struct {
	ID   LinkID
	A, B NodeID // A is the end nearer to the hosts; between equals, the one named first
	Name string // "edge0-agg1": the names of A and B; a second link between them is "edge0-agg1#2"
	Tier string // of its settings: host, edge, core, leaf ...; switch in a custom topology
	Down bool   // absent from the start: no route uses it
	fabric.Link
}

// Other returns the end of the link that is not n, which must be one of its ends.
func (l *Link) Other(n NodeID) NodeID {
	if n == l.A {
		return l.B
	}
	return l.A
}

// Graph is an immutable network, as a lab's topology section describes it. Build makes it; it is
// safe for concurrent use.
type Graph struct {
	Title string // "fat-tree, k=4"
	Hosts int    // nodes [0, Hosts) are hosts
	Nodes []Node
	Links []Link
	Grid  []int // of a torus: switches along each dimension, the last changing fastest; nil for others

	// Adjacent lists the links of each node that are not down, by LinkID.
	Adjacent [][]LinkID

	reference units.Bytes // packet size that decides between equally short paths
	nodes     map[string]NodeID
	links     map[string]LinkID
	routes    *Routes
	searched  bool // Deadlock searches this graph: its shape gives no reason why that is not needed
}

// Switches returns the number of switches: nodes [Hosts, Hosts+Switches()).
func (g *Graph) Switches() int { return len(g.Nodes) - g.Hosts }

// NodeNamed returns the node with a name.
func (g *Graph) NodeNamed(name string) (NodeID, bool) {
	id, ok := g.nodes[name]
	return id, ok
}

// LinkNamed returns the link with a name, whichever end is written first.
func (g *Graph) LinkNamed(name string) (LinkID, bool) {
	if id, ok := g.links[name]; ok {
		return id, true
	}
	ends, number := name, ""
	if i := strings.LastIndexByte(name, '#'); i >= 0 {
		ends, number = name[:i], name[i:]
	}
	for i := range ends { // spine3-leaf0 for leaf0-spine3; a custom name may itself hold a dash
		if ends[i] != '-' {
			continue
		}
		if id, ok := g.links[ends[i+1:]+"-"+ends[:i]+number]; ok {
			return id, true
		}
	}
	return 0, false
}

// Ports returns the number of transmitting ends in the network: two for every link, absent ones
// included.
func (g *Graph) Ports() int { return 2 * len(g.Links) }

// Port numbers the transmitting end of link l at node from: 2l at A, 2l+1 at B. from must be an end
// of l.
func (g *Graph) Port(l LinkID, from NodeID) int {
	if g.Links[l].A == from {
		return 2 * int(l)
	}
	return 2*int(l) + 1
}

// Uplink returns the one link of a host.
func (g *Graph) Uplink(h NodeID) LinkID { return g.routes.uplink[h] }

// Home returns the switch that a host is attached to.
func (g *Graph) Home(h NodeID) NodeID { return g.routes.homes[g.routes.home[h]] }
