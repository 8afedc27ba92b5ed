package topology

import "weft/units"

// NodeID numbers the nodes of a graph from 0: hosts first, in order, then switches. A host's NodeID is its
// HostID in packages fabric and transport.
type NodeID int32

// Kind tells hosts from switches.
type Kind uint8

// Kinds of node.
const (
	Host Kind = iota + 1
	Switch
)

// Node is a host or a switch.
type Node struct {
	ID   NodeID
	Name string // unique in the lab: h0, edge0, agg1, core2, leaf3, spine0 ...
	Kind Kind
	Tier string // host, edge, agg, core, leaf, spine, switch
	Addr string // IPv4 address of a host, 10.x.y.z; empty for switches
}

// LinkID numbers the links of a graph from 0. A link is full duplex.
type LinkID int32

// Link joins two nodes. Its settings hold for both directions unless an end overrides them.
type Link struct {
	ID    LinkID
	A, B  NodeID
	Name  string // "edge0-agg1": the names of A and B
	Rate  units.Bandwidth
	Delay units.Time // propagation, one way
	Down  bool       // absent from the start: no route uses it
}

// Graph is an immutable network: what a lab's topology section means.
type Graph struct {
	Hosts int // nodes [0, Hosts) are hosts
	Nodes []Node
	Links []Link

	// Adjacent lists, per node, the links it has that are not down, by LinkID.
	Adjacent [][]LinkID
}
