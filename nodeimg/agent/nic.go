package agent

import "weft/units"

// nic is the host's modelled network card as the node sees it: a line that one packet occupies at a time.
type nic struct {
	line  units.Line
	free  units.Time // when the last packet given to it will have left
	ahead units.Time // how long before that the next one may be given to it
}

// slot returns the instant at which a packet given to the card at now leaves, and whether it may be given
// already.
func (n *nic) slot(now units.Time) (departure units.Time, ok bool) {
	departure = max(now, n.free)
	return departure, departure-now <= n.ahead
}

// sent notes that a packet of size bytes on the wire leaves at departure.
func (n *nic) sent(departure units.Time, size units.Bytes) {
	n.free = departure + n.line.Transmit(size)
}

// opens returns the instant from which slot says yes.
func (n *nic) opens() units.Time { return n.free - n.ahead }
