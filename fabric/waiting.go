package fabric

import (
	"fmt"
	"strings"

	"weft/units"
)

// Stuck tells whether packets wait in a port because their class is paused, and since when at the earliest. In a
// network in which nothing else moves, or after a long time, that is a deadlock.
func (n *Network) Stuck() (since units.Time, stuck bool) {
	since = units.Never
	for i := range n.ports {
		o := &n.ports[i]
		for c := range o.classes {
			if o.held>>c&1 != 0 && o.classes[c].n > 0 {
				since = min(since, n.tallies[i].since[c])
			}
		}
	}
	return since, since != units.Never
}

// Waiting says who waits for whom, a line for each port that is paused: since when, by which switch, what of the
// port's packets waits there and for which ports, and what waits in the port itself. Hosts go by the names given, as
// far as they reach, and by their numbers. Ports that are not paused but hold packets follow.
func (n *Network) Waiting(hosts []string) []string {
	var paused, others []string
	for i := range n.ports {
		o := &n.ports[i]
		for class := range uint8(Classes) {
			if o.held>>class&1 != 0 {
				paused = append(paused, n.describePause(hosts, o, class))
			}
		}
		if o.held == 0 && o.waiting > 0 {
			others = append(others, fmt.Sprintf("%s: %d packets of %d bytes wait, the line is busy until %.3f µs",
				n.describe(hosts, o), o.waiting, o.queued(), o.freeAt.Microseconds()))
		}
	}
	return append(paused, others...)
}

func (n *Network) describePause(hosts []string, o *port, class uint8) string {
	var b strings.Builder
	k := &o.classes[class]
	fmt.Fprintf(&b, "%s: class %d paused since %.3f µs, %d packets of %d bytes wait; %s holds",
		n.describe(hosts, o), class, n.tallies[o.index].since[class].Microseconds(), k.n, k.bytes, n.name(hosts, o.to))
	separator := " "
	for i := range n.ports {
		if n.tallies[i].from != o.to {
			continue
		}
		var size units.Bytes
		r := &n.ports[i].classes[class].ring
		for j := range r.n {
			if e := r.nth(j); e.next == o.index {
				size += units.Bytes(e.size)
			}
		}
		if size > 0 {
			fmt.Fprintf(&b, "%s%d bytes for %s (port %d)", separator, size, n.name(hosts, n.ports[i].to), i)
			separator = ", "
		}
	}
	if separator == " " {
		b.WriteString(" none of its bytes")
	}
	return b.String()
}

// describe names a port.
func (n *Network) describe(hosts []string, o *port) string {
	return fmt.Sprintf("%s to %s (port %d)", n.name(hosts, n.tallies[o.index].from), n.name(hosts, o.to), o.index)
}

// name returns the name of a node.
func (n *Network) name(hosts []string, id NodeID) string {
	if h := int(id); h < len(n.nics) {
		if h < len(hosts) {
			return hosts[h]
		}
		return fmt.Sprintf("host %d", h)
	}
	s := int(id) - len(n.nics)
	if name := n.names[s]; name != "" {
		return name
	}
	return fmt.Sprintf("switch %d", s)
}
