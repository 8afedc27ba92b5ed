package swift

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// Sender is Algorithm 1: it keeps the window of one connection. It implements cc.Controller.
//
// Where Params.BoltCompat is set it behaves as Bolt's simulator does (bolt.go and target.scaling).
type Sender struct {
	params Params
	target target
	line   units.Bandwidth
	packet float64 // bytes on the wire
	least  float64 // packets
	most   float64 // packets

	cwnd      float64 // packets
	rtt       units.Time
	sampled   bool // rtt was measured
	decreased units.Time
	anyDrop   bool // decreased says when
	timeouts  int  // in a row
	inFlight  units.Bytes
	bolt      bolt
}

// NewSender returns a sender on a path. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	packet := float64(l.Packet)
	most, initial := float64(p.MaxWindow), float64(p.InitialWindow)
	bdp := max(float64(l.Line)*l.BaseRTT.Seconds()/8, float64(p.MinWindow))
	if !p.BoltCompat {
		bdp = math.Ceil(bdp/packet) * packet // less would not fill the path
	}
	if p.MaxWindow == 0 {
		most = bdp
	}
	if p.InitialWindow == 0 {
		initial = bdp
	}
	s := &Sender{
		params: p, target: newTarget(p, l.Hops), line: l.Line, packet: packet,
		least: float64(p.MinWindow) / packet, most: most / packet, cwnd: initial / packet, rtt: l.BaseRTT,
	}
	s.clamp()
	return s
}

// OnStart keeps the window: as in Bolt's simulator, what was learnt on the connection holds for its next message.
func (s *Sender) OnStart(units.Time) { s.inFlight = 0 }

// OnSent notes what is in flight.
func (s *Sender) OnSent(now units.Time, p cc.Sent) {
	fits := s.left() >= s.packet
	s.inFlight = p.InFlight
	if s.params.BoltCompat {
		s.boltSent(now, fits)
	}
}

// OnAck is Algorithm 1, "On Receiving ACK".
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	s.inFlight = a.InFlight
	s.rtt, s.sampled = a.RTT, true
	s.timeouts = 0
	switch t := s.target.delay(s.cwnd); {
	case a.RTT < t:
		s.increase(float64(a.Size) / s.packet)
	case s.mayDecrease(now):
		over := float64(a.RTT-t) / float64(a.RTT)
		s.decrease(now, max(1-float64(s.params.Beta*over), 1-s.params.MaxMDF))
	}
	s.clamp()
	s.boltDecide(now)
}

// increase adds AI packets per window acknowledged; below one packet, per packet acknowledged.
func (s *Sender) increase(acked float64) {
	if s.cwnd >= 1 {
		s.cwnd += s.params.AI * acked / s.cwnd
		return
	}
	s.cwnd += float64(s.params.AI * acked)
}

// mayDecrease says that the last decrease is a round trip ago: its effect would show.
func (s *Sender) mayDecrease(now units.Time) bool {
	return !s.anyDrop || now-s.decreased >= s.rtt
}

func (s *Sender) decrease(now units.Time, factor float64) {
	if factor < 1 {
		s.decreased, s.anyDrop = now, true
	}
	s.cwnd *= factor
}

// OnLoss is Algorithm 1, "On Retransmit Timeout" and "On Fast Recovery".
func (s *Sender) OnLoss(now units.Time, l cc.Loss) {
	s.inFlight = 0 // go-back-N gives up all of it
	if l.Kind == cc.Timeout {
		s.timeouts++
	} else {
		s.timeouts = 0
	}
	switch {
	case s.timeouts >= s.params.RetxReset:
		s.cwnd = s.least
		s.decreased, s.anyDrop = now, true
	case s.mayDecrease(now):
		s.decrease(now, 1-s.params.MaxMDF)
	}
	s.clamp()
	s.boltDecide(now)
}

func (s *Sender) clamp() { s.cwnd = min(max(s.cwnd, s.least), s.most) }

// Window returns the bytes that may be in flight, of which the endpoint lets the last packet overshoot: so it is
// that of the whole packets in the window, and a packet that does not fit waits. Below one packet it is a byte: one packet at
// a time, paced.
func (s *Sender) Window() units.Bytes {
	if s.params.BoltCompat {
		return units.Bytes(math.Ceil(s.cwnd * s.packet))
	}
	return max(units.Bytes(math.Floor(s.cwnd)*s.packet), 1)
}

// PacingRate spaces packets by rtt/cwnd while the window is below one packet, and does not otherwise.
func (s *Sender) PacingRate() units.Bandwidth {
	if s.cwnd >= 1 || s.params.BoltCompat {
		return 0
	}
	return units.Bandwidth(min(math.Ceil(8*s.cwnd*s.packet/s.rtt.Seconds()), float64(s.line)))
}

// CWND returns cwnd in packets.
func (s *Sender) CWND() float64 { return s.cwnd }

// Target returns the delay that the window aims at now.
func (s *Sender) Target() units.Time { return s.target.delay(s.cwnd) }

// Resolved returns what the parameters came to on the path.
func (s *Sender) Resolved() []cc.Value {
	return []cc.Value{
		{Key: "target", Value: s.target.delay(s.cwnd).String(), Why: "the target of the path at the first window, hops and flow scaling included"},
		{Key: "max_window", Value: units.Bytes(s.most * s.packet).String(), Why: "unless it is written, the bandwidth-delay product of the path in whole packets"},
	}
}
