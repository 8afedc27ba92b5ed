package strack

import (
	"math"
	"strconv"

	"weft/transport/cc"
	"weft/units"
)

// minWindow is the smallest window in packets. Nothing is paced below it: with 128 senders to one
// the ideal window is 1.3 packets, and "the inflight packets tend to vary between 1 or 2" (section
// 4.2).
const minWindow = 1

// Sender controls the window of one connection. It implements cc.Controller.
//
//	                delay < target        target to high      > high
//	not marked      + α(target - delay)   as marked, or hold  + β, per window acknowledged
//	marked          hold                  · (1 - γ·over)      · (1 - γ·over), or what was achieved
//
// Here over is the excess of the average delay over the target, as a ratio of the average. A
// decrease also needs an average above the target, and one base RTT since the last one. η is added
// once per base RTT.
type Sender struct {
	ewma, gamma, mdf float64 // Params: EWMA, Gamma, and what MaxMDF leaves of a window
	md               bool    // Params.MDRequiresECN
	packet           float64 // size of a full packet in bytes on the wire
	alpha, beta, eta float64 // scaled: packets per ps of delay, packets, packets
	maxWindow        float64 // packets

	// Lengths of time; baseRTT is the smallest RTT measured.
	target, high, baseRTT units.Time `state:"span"`

	cwnd         float64    // packets
	average      float64    // avg_delay in ps
	lastDecrease units.Time // last_decrease_ts
	lastSelfAI   units.Time // last_selfai_ts

	// Algorithm 2.
	rxCount      units.Bytes // rx_count
	rxCountClear units.Time  // rxcount_clear_ts
	achieved     units.Bytes // achievedBDP, or unknown until the first count ends
}

// unknown is the value of achieved before the first count. It is larger than any window, so it
// never reduces one.
const unknown units.Bytes = math.MaxInt64

// NewSender returns a sender for a connection on path l. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	net := l.NetBaseRTT()
	bdp := float64(l.Line) * net.Seconds() / 8
	sf := bdp / cc.ReferenceBDP
	target := p.DelayTarget(l)
	s := &Sender{
		ewma: p.EWMA, gamma: p.Gamma, mdf: 1 - p.MaxMDF, md: p.MDRequiresECN, packet: float64(l.Packet),
		target: target, baseRTT: l.BaseRTT, lastDecrease: units.LongAgo,
		// α = 4·bdp_sf·delay_sf/base_rtt, where delay_sf/base_rtt is 1/12 us on every path.
		alpha: p.Alpha.On(l, target) * sf / float64(cc.ReferenceRTT), beta: p.Beta * sf, eta: p.Eta * sf,
	}
	s.high = units.Time(p.High * float64(s.target))
	s.maxWindow = max(p.MaxCWND*bdp/s.packet, minWindow)
	s.cwnd = s.maxWindow // "STrack would not interfere as long as the congestion window is at the maximum value"
	s.OnStart(0)
	return s
}

// OnStart implements cc.Controller. It keeps the window for the next message, but resets the
// achieved rate, which is meaningless after an idle period.
func (s *Sender) OnStart(now units.Time) {
	s.rxCount, s.rxCountClear, s.achieved = 0, now, unknown
	s.lastSelfAI = now
}

// Rest implements cc.Resting. A decrease a base RTT ago is none: base RTTs only get shorter. What
// OnStart resets may be reset now.
func (s *Sender) Rest(now units.Time) {
	if now-s.lastDecrease > s.baseRTT {
		s.lastDecrease = units.LongAgo
	}
	s.OnStart(now)
}

// OnSent does nothing: the endpoint counts the bytes in flight.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnLoss does nothing: before a queue overflows, its delay shows it (Algorithm 1 and section 3.3
// only retransmit).
func (s *Sender) OnLoss(units.Time, cc.Loss) {}

// OnAck implements cc.Controller: the part of Algorithm 1 that concerns the window.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	s.baseRTT = min(s.baseRTT, a.RTT) // line 6 as measured_rtt; "measured_delay" is a slip
	s.achieve(now, a)                 // line 13, and not a second time in Algorithm 4
	s.adjust(now, a.Marked, a.RTT-s.baseRTT, float64(a.Size)/s.packet)
}

// achieve is Algorithm 2: it counts the bytes acknowledged in each period of base RTT + target.
func (s *Sender) achieve(now units.Time, a cc.Ack) {
	if !a.Probe {
		s.rxCount += a.Size
	}
	if now-s.rxCountClear > s.baseRTT+s.target {
		s.achieved, s.rxCount, s.rxCountClear = s.rxCount, 0, now
	}
}

// adjust is Algorithm 4 for an acknowledgement of a number of packets. The increases of lines 7 and
// 9 are multiplied by that number, because they are per acknowledged packet.
func (s *Sender) adjust(now units.Time, marked bool, delay units.Time, packets float64) {
	weight := s.ewma
	s.average = float64(s.average*(1-weight)) + float64(weight*float64(delay)) // line 5
	target := float64(s.target)
	switch {
	case !marked && delay > s.high: // line 6
		s.cwnd += s.beta * packets / s.cwnd
	case !marked && delay < s.target: // line 8
		s.cwnd += s.alpha * float64(s.target-delay) * packets / s.cwnd
	case !marked && s.md:
	case now-s.lastDecrease > s.baseRTT && s.average > target: // line 10
		switch {
		case delay > s.high && float64(s.achieved) < s.maxWindow*s.packet/8: // line 11
			s.cwnd, s.lastDecrease = float64(s.achieved)/s.packet, now
		case delay > s.target: // line 14
			over := (s.average - target) / s.average
			s.cwnd *= max(1-float64(s.gamma*over), s.mdf)
			s.lastDecrease = now
		}
	}
	if now-s.lastSelfAI > s.baseRTT { // line 19
		s.cwnd += s.eta
		s.lastSelfAI = now
	}
	s.cwnd = min(max(s.cwnd, minWindow), s.maxWindow)
}

// Window implements cc.Controller. The endpoint lets the last packet overshoot the window, but "the
// inflight should always be smaller than the congestion window" (section 3.3.2). So it is the size
// of the whole packets in the window.
func (s *Sender) Window() units.Bytes { return units.Bytes(math.Floor(s.cwnd) * s.packet) }

// PacingRate implements cc.Controller. It is 0: packets are not paced.
func (s *Sender) PacingRate() units.Bandwidth { return 0 }

// CWND returns the congestion window in packets, which may be a fraction.
func (s *Sender) CWND() float64 { return s.cwnd }

// MaxWindow returns the largest window in packets.
func (s *Sender) MaxWindow() float64 { return s.maxWindow }

// Resolved implements cc.Resolved.
func (s *Sender) Resolved() []cc.Value {
	const scaled = "in packets, scaled from 100Gbps and 12us to the network"
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return []cc.Value{
		{Key: "target", Value: s.target.String(), Why: "the base RTT of the network, unless it is written"},
		{Key: "high", Value: s.high.String(), Why: "targets"},
		{Key: "alpha", Value: number(s.alpha * float64(s.target)), Why: scaled +
			", for a delay of a target; auto: 4, or what adds 1/32 to 1/2 of a bandwidth-delay product"},
		{Key: "beta", Value: number(s.beta), Why: scaled},
		{Key: "eta", Value: number(s.eta), Why: scaled},
		{Key: "max_cwnd", Value: units.Bytes(s.maxWindow * s.packet).String(),
			Why: "bandwidth-delay products of the network"},
	}
}
