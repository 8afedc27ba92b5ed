package pc4

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// minWindow is the least window, in packets (section III-C: "a lower bound of 0.0001 packets").
const minWindow = 0.0001

// Sender is Algorithm 2: it keeps the rate of one connection. It implements cc.Controller.
//
//	          base rate is new                        nothing back for an RTO
//	start ──────────────────────► at the base rate ◄───────────────┐
//	  │                               │ once per interval          │
//	  └──────────────────────────► tuning: d = 0  +hai ────────► cwnd·(1-max_mdf), base rate forgotten
//	                                       d < target +ai
//	                                       d ≥ target ·max(1-max_mdf, 1-β(d-target)/(d+baseline))
type Sender struct {
	// What every acknowledgement reads and writes comes first, in one line of the cache, and what it reads of the parameters next.
	txRate       float64         // bits per second
	baseRecorded units.Bandwidth // 0: none
	lastAdjust   units.Time

	rtt    units.Time // of line 12
	delay  units.Time // one-way delay of the packet acknowledged last
	cwnd   float64    // packets
	window units.Bytes
	pacing units.Bandwidth

	epsilon    units.Time // Params.Epsilon
	interval   units.Time // Params.AdjustInterval in lab time, 0: the rate is never adjusted
	pacedBelow float64    // Params.PacedBelow
	measured   bool       // Params.RTT is MeasuredRTT

	link    cc.Link
	params  Params
	planned units.Bandwidth // base rate before the first acknowledgement, 0: not known
}

// NewSender returns a sender on a path, starting as p.Initial says; planned is the base rate that the
// controller foresees for it, 0 if there is none. p must pass Check.
func NewSender(p Params, l cc.Link, planned units.Bandwidth) *Sender {
	s := &Sender{
		params: p, link: l, planned: planned, epsilon: p.Epsilon, pacedBelow: p.PacedBelow, measured: p.RTT == MeasuredRTT,
		interval: units.Time(p.AdjustInterval * float64(l.BaseRTT)),
	}
	s.OnStart(0)
	return s
}

// OnStart goes back to the initial rate: what was learnt before a pause says nothing of who sends now.
func (s *Sender) OnStart(now units.Time) {
	s.baseRecorded = 0
	s.lastAdjust = now
	s.rtt, s.delay = s.link.BaseRTT, 0
	s.setRate(s.initialRate())
}

// initialRate is the rate before the first acknowledgement, which the paper leaves open.
func (s *Sender) initialRate() float64 {
	switch {
	case s.params.Initial == AtWindow:
		return float64(8*s.params.InitialWindow) / s.link.BaseRTT.Seconds()
	case s.params.Initial == AtBaseRate && s.planned > 0:
		return float64(s.planned)
	default:
		return float64(s.link.Line)
	}
}

// OnSent does nothing: PC4 moves on acknowledgements and timeouts alone.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnAck is Algorithm 2, lines 2-16.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	s.delay = a.OneWay
	if s.delay <= s.epsilon {
		s.delay = 0
	}
	if s.measured {
		s.rtt = a.RTT
	}
	rate := s.txRate
	switch {
	case a.BaseRate != s.baseRecorded: // line 4
		s.baseRecorded = a.BaseRate // line 5
		if a.BaseRate != 0 {
			rate = float64(a.BaseRate) // line 6
		}
		s.lastAdjust = now // line 7
	case s.interval > 0 && now-s.lastAdjust >= s.interval: // line 9
		rate = s.computeRate()
		s.lastAdjust = now // line 11
	}
	if rate == s.txRate && !s.measured {
		s.pace() // the window is a function of what has not changed
		return
	}
	s.setRate(rate)
}

// OnLoss is Algorithm 2, lines 17-19, for a timeout. A request to go back needs no answer here: the paper leaves it to
// go-back-N, and the acknowledgements that follow carry the delay.
func (s *Sender) OnLoss(_ units.Time, l cc.Loss) {
	if l.Kind != cc.Timeout {
		return
	}
	s.baseRecorded = 0                          // line 19
	s.setRate(s.txRate * (1 - s.params.MaxMDF)) // line 18: the window is the rate times rtt
}

// computeRate is COMPUTE RATE, lines 20-29.
func (s *Sender) computeRate() float64 {
	target := s.target()
	switch {
	case s.delay == 0: // line 21
		return s.txRate + float64(s.params.HAI*s.unit())
	case s.delay < target: // line 23
		return s.txRate + float64(s.params.AI*s.unit())
	default: // lines 26-27
		over := float64(s.delay-target) / float64(s.delay+s.link.Baseline)
		return s.txRate * max(1-s.params.MaxMDF, 1-float64(s.params.Beta*over))
	}
}

// unit is what ai and hai are shares of: the base rate, so that the sum over all flows of a receiver does not
// depend on how many they are; without one, a packet per base RTT.
func (s *Sender) unit() float64 {
	if s.baseRecorded > 0 {
		return float64(s.baseRecorded)
	}
	return float64(8*s.link.Packet) / s.link.BaseRTT.Seconds()
}

// target is TARGET_DELAY(), line 3, which the paper describes in words (section III-C): proportional to the baseline
// and to 1/N. N is line rate over base rate.
func (s *Sender) target() units.Time {
	if s.params.TargetQtime != Scaled {
		return s.params.TargetQtime
	}
	n := 1.0
	if s.baseRecorded > 0 {
		n = float64(s.link.Line) / float64(s.baseRecorded)
	}
	return max(units.Time(targetBaselines*float64(s.link.Baseline)/n), minTarget)
}

// Constants of the scaled target; ours.
const (
	targetBaselines = 4
	minTarget       = units.Microsecond
)

// setRate takes a rate within its limits and derives the window and the pacing from it, lines 12-16.
//
// Bytes on the wire stand for both: tx_rate·rtt/8 of them may be in flight, and cwnd is that in packets.
// The endpoint lets the last packet overshoot the window, so a window that is no whole number of packets would
// act as the next one; pacing gives it its fraction. The paper paces below one packet; we pace below
// PacedBelow packets, where rounding up would cost more than a fifth of the rate (docs/adr/0010).
func (s *Sender) setRate(rate float64) {
	rtt := s.rtt.Seconds()
	rate = max(rate, minWindow*float64(8*s.link.MTU)/rtt, 1)
	s.txRate = min(rate, float64(s.link.Line)) // ours: the paper has no upper limit
	bytes := s.txRate * rtt / 8
	s.cwnd = bytes / float64(s.link.MTU) // line 12
	s.window = units.Bytes(math.Ceil(bytes))
	s.pace()
}

// pace is lines 13-16.
func (s *Sender) pace() {
	s.pacing = 0
	if s.paced() {
		rate := math.Ceil(s.txRate * float64(s.rtt) / float64(s.pacingRTT()))
		s.pacing = min(units.Bandwidth(rate), s.link.Line) // the quotient may round above txRate
	}
}

func (s *Sender) paced() bool {
	// A window that grows with the round trip would feed on its own queue; the rate alone does not.
	return s.cwnd < s.pacedBelow || s.measured
}

// pacingRTT is the rtt of line 14. With that of line 12 it would cancel, and a flow would answer to a queue at its next
// adjustment only, while a window slows down at once as the round trip grows. So the queue of the last packet
// counts here as well: as far as there should be one, for at most one base RTT, and below one packet only by that
// fraction, since a flow that sends a packet in a hundred round trips must not wait out each queue a hundred times.
func (s *Sender) pacingRTT() units.Time {
	if s.measured {
		return s.rtt
	}
	queue := min(s.delay, s.target(), s.rtt)
	return s.rtt + units.Time(float64(queue)*min(s.cwnd, 1))
}

// Window returns the bytes that may be in flight, of which the last packet may overshoot.
func (s *Sender) Window() units.Bytes { return s.window }

// PacingRate returns the rate at which packets are spaced, or 0 when the window alone rules.
func (s *Sender) PacingRate() units.Bandwidth { return s.pacing }

// CWND returns cwnd in packets.
func (s *Sender) CWND() float64 { return s.cwnd }

// Rate returns tx_rate.
func (s *Sender) Rate() units.Bandwidth { return units.Bandwidth(s.txRate) }

// Resolved returns what the parameters came to on the path.
func (s *Sender) Resolved() []cc.Value {
	all := []cc.Value{{Key: "adjust_interval", Value: s.interval.String(), Why: "base RTTs of the connection"}}
	if s.planned > 0 {
		share := func(of float64) string { return units.Bandwidth(of * float64(s.planned)).String() }
		why := "a share of the base rate, " + s.planned.String()
		all = append(all, cc.Value{Key: "ai", Value: share(s.params.AI), Why: why}, cc.Value{Key: "hai", Value: share(s.params.HAI), Why: why})
	}
	return all
}
