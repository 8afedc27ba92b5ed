package topology

import "weft/units"

// PairRTT returns the idle round-trip time between hosts a and b along Path: a data packet there,
// an acknowledgement back. Sizes are bytes on the wire. It is the same from b to a.
func (g *Graph) PairRTT(a, b NodeID, data, ack units.Bytes) units.Time {
	hops := g.Path(a, b)
	return g.Delay(hops, data) + g.Delay(hops, ack)
}

// NextHops returns the links on which sw may send towards host, or nil if no path leads there.
func (r *Routes) NextHops(sw, host NodeID) []LinkID {
	i := r.Group(sw, host)
	if i < 0 {
		return nil
	}
	return r.Groups(sw)[i]
}
