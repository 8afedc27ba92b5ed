package fabric

import (
	"fmt"
	"strings"

	"weft/units"
)

// Stuck reports whether packets wait in a port because their class is paused, and the earliest
// instant since which a class with waiting packets has been paused. In a network where nothing else
// moves, or after a long time, that is a deadlock.
func (n *Network) Stuck() (since units.Time, stuck bool) {
	since = units.Never
	for i := range n.ports {
		o := &n.ports[i]
		for c := range o.classes {
			if o.paused(uint8(c)) && !o.classes[c].empty() {
				since = min(since, n.cold[i].since[c])
			}
		}
	}
	return since, since != units.Never
}

// Waiting describes what keeps packets from moving. It returns a sentence for each paused port:
// when and by which switch it was paused, how many of its bytes wait in that switch and for which
// ports, and what waits in the port itself. Ports that hold packets without being paused follow.
// hosts has the names of hosts by number; a host without a name is described by its number.
func (n *Network) Waiting(hosts []string) []string { return diagnosis{n, hosts}.waiting() }

// diagnosis finds what keeps the packets of a network from moving.
type diagnosis struct {
	*Network
	hosts []string // by host; may be short, see Waiting
}

func (n diagnosis) waiting() []string {
	var paused, others []string
	shares := n.shares()
	for i := range n.ports {
		o := &n.ports[i]
		for class := range uint8(Classes) {
			if o.paused(class) {
				paused = append(paused, n.describePause(o, class, shares[i*Classes+int(class)]))
			}
		}
		if o.held == 0 && o.waiting > 0 {
			others = append(others, fmt.Sprintf("%s: %d packets of %d bytes wait, the link is busy until %.3f us",
				n.describe(o), o.waiting, o.queued(), o.freeAt.Microseconds()))
		}
	}
	return append(paused, others...)
}

// share is the bytes in one port's queue that arrived by another port.
type share struct {
	port *port
	size units.Bytes
}

// shares returns for each port and class where the bytes that arrived by it wait.
func (n diagnosis) shares() [][]share {
	all := make([][]share, len(n.ports)*Classes)
	for i := range n.ports {
		o := &n.ports[i]
		for c := range o.classes {
			// Only accounted ports know by which port a packet arrived.
			for e := o.classes[c].first; e != nil && o.is(accounted); e = e.behind {
				list := &all[int(e.ingress)*Classes+c]
				if last := len(*list) - 1; last < 0 || (*list)[last].port != o {
					*list = append(*list, share{port: o})
				}
				(*list)[len(*list)-1].size += e.Size
			}
		}
	}
	return all
}

func (n diagnosis) describePause(o *port, class uint8, shares []share) string {
	var b strings.Builder
	k := &o.classes[class]
	packets, _ := k.sum()
	fmt.Fprintf(&b, "%s: class %d paused since %.3f us, %d packets of %d bytes wait; %s holds",
		n.describe(o), class, n.cold[o.index].since[class].Microseconds(), packets, k.bytes, n.name(o.to))
	if len(shares) == 0 {
		b.WriteString(" none of its bytes")
	}
	for i, s := range shares {
		separator := " "
		if i > 0 {
			separator = ", "
		}
		fmt.Fprintf(&b, "%s%d bytes for %s (port %d)", separator, s.size, n.name(s.port.to), s.port.index)
	}
	return b.String()
}

// describe returns the ends and the index of a port.
func (n diagnosis) describe(o *port) string {
	return fmt.Sprintf("%s to %s (port %d)", n.name(n.cold[o.index].from), n.name(o.to), o.index)
}

// name returns the name of a node.
func (n diagnosis) name(id NodeID) string {
	if h := int(id); h < n.Network.hosts() {
		if h < len(n.hosts) && n.hosts[h] != "" {
			return n.hosts[h]
		}
		return fmt.Sprintf("host %d", h)
	}
	s := n.switchAt(id)
	if name := n.names[s]; name != "" {
		return name
	}
	return fmt.Sprintf("switch %d", s)
}
