package experiment

import (
	"weft/transport"
	"weft/units"
)

// Ideal is the completion time of a message of size bytes alone on the idle network: from its first bit leaving
// the sender to the acknowledgement of its last packet, every packet sent back to back. It is the denominator
// of FCT slowdown (PC4, section IV-A, footnote 1). A message that is split over queue pairs counts as if it were not:
// it may have a few more packets that are not full.
//
// Store and forward: the last packet trails the first by the time its predecessors occupy the slowest link.
func (x *Experiment) Ideal(c transport.ConnID, size units.Bytes) units.Time {
	s := &x.Conns[c]
	mtu := x.Lab.Topology.MTU
	full := int64((size - 1) / mtu) // packets before the last
	last := size - units.Bytes(full)*mtu
	more := beside(s)
	back := s.Reverse.Delay(replyWire(s))
	if full == 0 {
		return s.Forward.Delay(dataWire(last)+more) + back
	}
	slowest := s.Forward.Rates[0]
	for _, r := range s.Forward.Rates {
		slowest = min(slowest, r)
	}
	return s.Forward.Delay(dataWire(mtu)+more) + units.Time(full-1)*slowest.TransmitTime(dataWire(mtu)+more) +
		slowest.TransmitTime(dataWire(last)+more) + back
}
