package strack

import (
	"math"
	"strconv"

	"weft/transport/cc"
	"weft/units"
)

// Table 1 scales what it recommends for 100 Gb/s and 12 us to other networks.
const (
	scaleBDP   = 150_000 // bytes: 100 Gb/s times 12 us
	scaleDelay = 12 * units.Microsecond
)

// minWindow is the least window in packets, and nothing is paced below it: with 128 senders to one the ideal is 1.3 packets and
// "the inflight packets tend to vary between 1 or 2" (section 4.2).
const minWindow = 1

// Sender keeps the window of one connection. It implements cc.Controller.
//
//	                delay < target        target to high          > high
//	not marked      +α(target-delay)      as marked, or hold      +β        per window acknowledged
//	marked          hold                  ×(1-γ·over)             ×(1-γ·over), or what was achieved
//
// Decreases want the average above the target as well, and one base RTT between two of them. η is added once per base RTT.
type Sender struct {
	params           Params
	packet           float64 // bytes on the wire
	alpha, beta, eta float64 // scaled: packets per ps of delay, packets, packets
	target, high     units.Time
	most             float64 // packets

	cwnd      float64 // packets
	baseRTT   units.Time
	average   float64    // avg_delay, ps
	decreased units.Time // last_decrease_ts
	shuffled  units.Time // last_selfai_ts

	// Algorithm 2.
	count    units.Bytes // rx_count
	cleared  units.Time  // rxcount_clear_ts
	achieved units.Bytes // achievedBDP; unknown until the first count is closed
}

// unknown as achieved is more than any window: it never counts as little.
const unknown units.Bytes = math.MaxInt64

// NewSender returns a sender on a path. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	net := l.NetRTT
	if net == 0 {
		net = l.BaseRTT
	}
	bdp := float64(l.Line) * net.Seconds() / 8
	sf := bdp / scaleBDP
	s := &Sender{
		params: p, packet: float64(l.Packet), target: p.Target, baseRTT: l.BaseRTT, decreased: never,
		// α = 4·bdp_sf·delay_sf/base_rtt, of which delay_sf/base_rtt is 1/12 us whatever the path.
		alpha: p.Alpha * sf / float64(scaleDelay), beta: p.Beta * sf, eta: p.Eta * sf,
	}
	if s.target == 0 {
		s.target = net
	}
	s.high = units.Time(p.High * float64(s.target))
	s.most = max(p.MaxCWND*bdp/s.packet, minWindow)
	s.cwnd = s.most // "STrack would not interfere as long as the congestion window is at the maximum value"
	s.OnStart(0)
	return s
}

// never is long before any instant.
const never units.Time = -1 << 62

// OnStart keeps the window: what was learnt on the connection holds for its next message. What was achieved before a pause says
// nothing.
func (s *Sender) OnStart(now units.Time) {
	s.count, s.cleared, s.achieved = 0, now, unknown
	s.shuffled = now
}

// OnSent does nothing: the endpoint counts what is in flight.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnLoss does nothing: a queue that overflows has said so by its delay before (Algorithm 1 and section 3.3 only
// retransmit).
func (s *Sender) OnLoss(units.Time, cc.Loss) {}

// OnAck is Algorithm 1 as far as the window goes.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	s.baseRTT = min(s.baseRTT, a.RTT) // line 6 as measured_rtt; "measured_delay" is a slip
	s.achieve(now, a)                 // line 13, and not a second time in Algorithm 4
	s.adjust(now, a.Marked, a.RTT-s.baseRTT, float64(a.Size)/s.packet)
}

// achieve is Algorithm 2: what is acknowledged in a window of base RTT + target.
func (s *Sender) achieve(now units.Time, a cc.Ack) {
	if !a.Probe {
		s.count += a.Size
	}
	if now-s.cleared > s.baseRTT+s.target {
		s.achieved, s.count, s.cleared = s.count, 0, now
	}
}

// adjust is Algorithm 4 for an acknowledgement of so many packets: with every packet acknowledged on its own, the
// increases of lines 7 and 9 would come once for each.
func (s *Sender) adjust(now units.Time, marked bool, delay units.Time, packets float64) {
	weight := s.params.EWMA
	s.average = float64(s.average*(1-weight)) + float64(weight*float64(delay)) // line 5
	target := float64(s.target)
	switch {
	case !marked && delay > s.high: // line 6
		s.cwnd += s.beta * packets / s.cwnd
	case !marked && delay < s.target: // line 8
		s.cwnd += s.alpha * float64(s.target-delay) * packets / s.cwnd
	case !marked && s.params.MDRequiresECN:
	case now-s.decreased > s.baseRTT && s.average > target: // line 10
		switch {
		case delay > s.high && float64(s.achieved) < s.most*s.packet/8: // line 11
			s.cwnd, s.decreased = float64(s.achieved)/s.packet, now
		case delay > s.target: // line 14
			over := (s.average - target) / s.average
			s.cwnd *= max(1-float64(s.params.Gamma*over), 1-s.params.MaxMDF)
			s.decreased = now
		}
	}
	if now-s.shuffled > s.baseRTT { // line 19
		s.cwnd += s.eta
		s.shuffled = now
	}
	s.cwnd = min(max(s.cwnd, minWindow), s.most)
}

// Window returns the bytes that may be in flight. The endpoint lets the last packet overshoot, and "the inflight should always
// be smaller than the congestion window" (section 3.3.2), so it is that of the whole packets in the window.
func (s *Sender) Window() units.Bytes { return units.Bytes(math.Floor(s.cwnd) * s.packet) }

// PacingRate is 0: windows alone rule.
func (s *Sender) PacingRate() units.Bandwidth { return 0 }

// CWND returns cwnd in packets.
func (s *Sender) CWND() float64 { return s.cwnd }

// MaxWindow returns the greatest window in packets.
func (s *Sender) MaxWindow() float64 { return s.most }

// Average returns avg_delay.
func (s *Sender) Average() units.Time { return units.Time(s.average) }

// Achieved returns achievedBDP; ok is false before a first count is closed.
func (s *Sender) Achieved() (b units.Bytes, ok bool) { return s.achieved, s.achieved != unknown }

// Resolved returns what the parameters came to on the path.
func (s *Sender) Resolved() []cc.Value {
	const scaled = "in packets, scaled from 100Gbps and 12us to the network"
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return []cc.Value{
		{Key: "target", Value: s.target.String(), Why: "the base RTT of the network, unless it is written"},
		{Key: "high", Value: s.high.String(), Why: "targets"},
		{Key: "alpha", Value: number(s.alpha * float64(s.target)), Why: scaled + ", for a delay of a target"},
		{Key: "beta", Value: number(s.beta), Why: scaled},
		{Key: "eta", Value: number(s.eta), Why: scaled},
		{Key: "max_cwnd", Value: units.Bytes(s.most * s.packet).String(), Why: "bandwidth-delay products of the network"},
	}
}
