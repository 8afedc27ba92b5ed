package swift

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// Sender is Algorithm 1: it controls the window of one connection. It implements cc.Controller, and
// cc.Held for Params.BoltCompat.
type Sender struct {
	params    Params `state:"span"`
	target    target `state:"span"`
	line      units.Bandwidth
	hops      int     // links of the path
	packet    float64 // size of a full packet in bytes on the wire
	minWindow float64 // packets
	maxWindow float64 // packets

	cwnd      float64    // packets
	rtt       units.Time `state:"span"` // last measured RTT, or the base RTT
	sampled   bool       // rtt was measured
	decreased units.Time // when the window was last decreased
	anyDrop   bool       // decreased is valid
	timeouts  int        // timeouts in a row
	inFlight  units.Bytes
	bolt      bolt
}

// NewSender returns a sender for a connection on path l. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	packet := float64(l.Packet)
	maxWindow, initial := float64(p.MaxWindow), float64(p.InitialWindow)
	bdp := max(float64(l.Line)*l.BaseRTT.Seconds()/8, float64(p.MinWindow))
	if !p.BoltCompat {
		bdp = math.Ceil(bdp/packet) * packet // a partial packet would not fill the path
	}
	if p.MaxWindow == 0 {
		maxWindow = bdp
	}
	if p.InitialWindow == 0 {
		initial = bdp
	}
	s := &Sender{
		params: p, target: newTarget(p, l), line: l.Line, hops: l.Hops, packet: packet,
		minWindow: float64(p.MinWindow) / packet, maxWindow: maxWindow / packet, cwnd: initial / packet, rtt: l.BaseRTT,
	}
	s.clamp()
	return s
}

// OnStart implements cc.Controller. As in Bolt's simulator, the window is kept for the next
// message.
func (s *Sender) OnStart(units.Time) { s.inFlight = 0 }

// Rest implements cc.Resting. A decrease an RTT ago is none, and neither is a wait that is over. An
// RTT that is measured later is shorter than the time since then.
func (s *Sender) Rest(now units.Time) {
	if !s.anyDrop || now-s.decreased >= s.rtt {
		s.anyDrop, s.decreased = false, units.LongAgo
	}
	if s.bolt.until <= now {
		s.bolt.until = units.LongAgo
	}
	s.inFlight = 0
}

// OnSent implements cc.Controller.
func (s *Sender) OnSent(now units.Time, p cc.Sent) {
	fits := s.left() >= s.packet
	s.inFlight = p.InFlight
	if s.params.BoltCompat {
		s.boltSent(now, fits)
	}
}

// OnAck implements cc.Controller (Algorithm 1, "On Receiving ACK").
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

// increase adds AI packets per acknowledged window, or per acknowledged packet if the window is
// below one.
func (s *Sender) increase(acked float64) {
	if s.cwnd >= 1 {
		s.cwnd += s.params.AI * acked / s.cwnd
		return
	}
	s.cwnd += float64(s.params.AI * acked)
}

// mayDecrease reports whether the last decrease is an RTT ago, so that its effect shows.
func (s *Sender) mayDecrease(now units.Time) bool {
	return !s.anyDrop || now-s.decreased >= s.rtt
}

// decrease multiplies the window by factor.
func (s *Sender) decrease(now units.Time, factor float64) {
	if factor < 1 {
		s.decreased, s.anyDrop = now, true
	}
	s.cwnd *= factor
}

// OnLoss implements cc.Controller (Algorithm 1, "On Retransmit Timeout" and "On Fast Recovery").
func (s *Sender) OnLoss(now units.Time, l cc.Loss) {
	s.inFlight = 0 // go-back-N retransmits all of it
	if l.Kind == cc.Timeout {
		s.timeouts++
	} else {
		s.timeouts = 0
	}
	switch {
	case s.timeouts >= s.params.RetxReset:
		s.cwnd = s.minWindow
		s.decreased, s.anyDrop = now, true
	case s.mayDecrease(now):
		s.decrease(now, 1-s.params.MaxMDF)
	}
	s.clamp()
	s.boltDecide(now)
}

// clamp limits the window to its range.
func (s *Sender) clamp() { s.cwnd = min(max(s.cwnd, s.minWindow), s.maxWindow) }

// Window implements cc.Controller. The endpoint lets the last packet overshoot the window, so this
// is the size of the whole packets in the window, and a packet that does not fit waits. Below one
// packet it is one byte: one packet at a time, paced.
func (s *Sender) Window() units.Bytes {
	if s.params.BoltCompat {
		return units.Bytes(math.Ceil(s.cwnd * s.packet))
	}
	return max(units.Bytes(math.Floor(s.cwnd)*s.packet), 1)
}

// PacingRate implements cc.Controller. While the window is below one packet, packets are rtt/cwnd
// apart. Otherwise they are not paced.
func (s *Sender) PacingRate() units.Bandwidth {
	if s.cwnd >= 1 || s.params.BoltCompat {
		return 0
	}
	return units.Bandwidth(min(math.Ceil(8*s.cwnd*s.packet/s.rtt.Seconds()), float64(s.line)))
}

// CWND returns the congestion window in packets, which may be a fraction.
func (s *Sender) CWND() float64 { return s.cwnd }

// Target returns the target delay for the current window.
func (s *Sender) Target() units.Time { return s.target.delay(s.cwnd) }

// Resolved implements cc.Resolved.
func (s *Sender) Resolved() []cc.Value {
	return []cc.Value{
		{Key: "base_target", Value: (s.target.fixed - units.Time(s.hops)*s.params.PerHop).Rounded().String(),
			Why: "auto is 10us; on a longer path it is what lets a window that fills the path stay above its base RTT"},
		{Key: "target", Value: s.target.delay(s.cwnd).String(),
			Why: "the target of the path at the first window, hops and flow scaling included"},
		{Key: "max_window", Value: units.Bytes(s.maxWindow * s.packet).String(),
			Why: "unless it is written, the bandwidth-delay product of the path in whole packets"},
		{Key: "initial_window", Value: units.Bytes(s.cwnd * s.packet).String(),
			Why: "unless it is written, the bandwidth-delay product of the path in whole packets; at most max_window"},
	}
}
