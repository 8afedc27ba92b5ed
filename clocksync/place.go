package clocksync

// Boundary says which hosts are boundary clocks: they follow a master and are followed by others.
type Boundary struct {
	Edge  bool     // the first host behind every switch but the reference's
	Hosts []string // names; each follows the nearest of the reference and those before it
}

// Some reports whether any host is one.
func (b *Boundary) Some() bool { return b.Edge || len(b.Hosts) > 0 }

// Place is the place of a node in a tree of boundary clocks. A node that has both a master and
// followers is a boundary clock.
type Place struct {
	Master    Node   // the node that it asks for the time; itself: it is the reference
	Followers []Node // the nodes that ask it
}

// Ports lists the neighbours behind each port of node self: one port toward its master, and one
// toward its followers.
func (p *Place) Ports(self Node) (ports [][]Node) {
	if p.Master != self {
		ports = append(ports, []Node{p.Master})
	}
	if len(p.Followers) > 0 {
		ports = append(ports, p.Followers)
	}
	return ports
}
