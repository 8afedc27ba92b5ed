package pc4

import (
	"fmt"
	"math"

	"weft/params"
	"weft/transport/cc"
	"weft/units"
)

// minWindow is the smallest window, in packets (section III-C: "a lower bound of 0.0001 packets").
const minWindow = 0.0001

// Sender is Algorithm 2: it controls the rate of one connection. It implements cc.Controller.
//
//	         ACK with a new base rate
//	start ─────────────────────────────► at the base rate ◄─────────┐
//	  │                                     │      ▲                │ next ACK with
//	  │ ACKs without     every              ▼      │ ACK with a     │ a base rate
//	  │ base rate        adjust_interval    │      │ new base rate  │
//	  └────────────────────────────────► adjusting ──────────────► rate · (1 - max_mdf),
//	                                                    RTO        base rate forgotten
//
// Adjusting depends on d, the one-way queueing delay of the packet acknowledged last:
//
//	d = 0        rate + hai
//	d < target   rate + ai
//	d ≥ target   rate · max(1 - max_mdf, 1 - β (d - target) / (d + baseline))
//	d < 0        as 0; with NegativeLiteral as d ≥ target, which makes the rate grow
//
// OnStart returns to start. Only txRate decides; cwnd, window and pacing follow from it in setRate.
type Sender struct {
	_ struct{} `state:"-"` // OnStart forgets everything

	// The fields that every ACK reads and writes come first, in one cache line. The parameters that
	// it reads come next.
	txRate       float64         // tx_rate in bits per second, within minWindow and the line rate
	baseRecorded units.Bandwidth // base_recorded: base rate of the last ACK, 0 if none
	lastAdjust   units.Time      // t_last_adjust

	rtt    units.Time      // rtt of line 12: the base RTT, or the last measured one
	delay  units.Time      // one-way queueing delay of the last ACK, 0 within epsilon; see literal
	cwnd   float64         // window in packets
	window units.Bytes     // cwnd in bytes, rounded up
	pacing units.Bandwidth // pacing rate, 0 if unpaced

	epsilon    units.Time // Params.Epsilon
	interval   units.Time // Params.AdjustInterval in lab time, 0 if the rate is never adjusted
	pacedBelow float64    // Params.PacedBelow
	measured   bool       // whether Params.RTT is MeasuredRTT
	literal    bool       // whether Params.NegativeDelay is NegativeLiteral

	link    cc.Link
	params  Params
	planned units.Bandwidth // base rate before the first ACK, 0 if unknown
}

// NewSender returns a sender for a connection on path l that starts as p.Initial says. planned is
// the base rate that the controller expects for the connection, or 0. p must pass Check.
func NewSender(p Params, l cc.Link, planned units.Bandwidth) *Sender {
	s := &Sender{
		params: p, link: l, planned: planned,
		epsilon: p.Epsilon, pacedBelow: p.PacedBelow, measured: p.RTT == MeasuredRTT,
		literal:  p.NegativeDelay == NegativeLiteral,
		interval: units.Time(p.AdjustInterval * float64(l.BaseRTT)),
	}
	s.OnStart(0)
	return s
}

// OnStart resets the sender to its initial rate. State from before an idle period is useless: it
// says nothing about the flows that share the receiver now. The paper does not cover this.
func (s *Sender) OnStart(now units.Time) {
	s.baseRecorded = 0
	s.lastAdjust = now
	s.rtt, s.delay = s.link.BaseRTT, 0
	s.setRate(s.initialRate())
}

// Rest implements cc.Resting. OnStart forgets everything.
func (s *Sender) Rest(now units.Time) { s.OnStart(now) }

// initialRate returns the rate before the first ACK in bits per second. The paper leaves it open.
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

// OnSent does nothing: PC4 acts on ACKs and timeouts only.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnAck is Algorithm 2, lines 2-16. A base rate that differs from the last one is adopted at once;
// otherwise the rate is adjusted if the interval is over.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	s.delay = a.OneWay
	if s.delay <= s.epsilon && (!s.literal || s.delay >= -s.epsilon) {
		s.delay = 0
	}
	if s.measured {
		s.rtt = a.RTT
	}
	rate := s.txRate
	switch {
	case !a.Probe && a.BaseRate != s.baseRecorded: // line 4; what answers a probe carries no base rate
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
		s.pace() // rate and rtt, and so the window, have not changed; the delay may have
		return
	}
	s.setRate(rate)
}

// OnLoss is Algorithm 2, lines 17-19, for a timeout. Other losses do not change the rate: the paper
// leaves them to go-back-N, and the ACKs that follow carry the delay. Forgetting the base rate
// makes the next ACK with one count as new, which ends the reduction (section III-D).
func (s *Sender) OnLoss(_ units.Time, l cc.Loss) {
	if l.Kind != cc.Timeout {
		return
	}
	s.baseRecorded = 0                          // line 19
	s.setRate(s.txRate * (1 - s.params.MaxMDF)) // line 18 cuts cwnd, which is proportional
}

// computeRate returns the adjusted rate in bits per second (COMPUTE_RATE, lines 20-29). A negative
// delay matches neither line 21 nor line 23, so lines 26 and 27 raise the rate; at -baseline, where
// they divide by zero, to the line rate.
//
// A float64() around a product keeps the compiler from fusing it with the sum that follows: a fused
// operation rounds differently, and results would depend on the machine.
func (s *Sender) computeRate() float64 {
	target := s.target()
	switch {
	case s.delay == 0: // line 21
		return s.txRate + float64(s.params.HAI*s.unit())
	case 0 < s.delay && s.delay < target: // line 23
		return s.txRate + float64(s.params.AI*s.unit())
	default: // lines 26-27
		over := float64(s.delay-target) / float64(s.delay+s.link.Baseline)
		return s.txRate * max(1-s.params.MaxMDF, 1-float64(s.params.Beta*over))
	}
}

// unit returns the rate of which ai and hai are ratios, in bits per second. It is the base rate, so
// that the sum of the increases over all flows of a receiver does not depend on their number; at
// most the rate of the path's slowest link, which a base rate knows nothing of. Without a base rate
// it is one packet per base RTT.
func (s *Sender) unit() float64 {
	if s.baseRecorded > 0 {
		return float64(min(s.baseRecorded, s.link.Narrowest()))
	}
	return float64(8*s.link.Packet) / s.link.BaseRTT.Seconds()
}

// target returns the target of the one-way queueing delay (TARGET_DELAY, line 3). The paper gives
// no formula for a scaled target, only words (section III-C): proportional to the baseline and to
// 1/N. N is the line rate divided by the base rate, or 1 without a base rate.
func (s *Sender) target() units.Time {
	return s.params.target(s.link, s.baseRecorded)
}

// target returns the target on a path, with the given base rate or, if that is 0, without one.
func (p *Params) target(l cc.Link, base units.Bandwidth) units.Time {
	switch p.TargetQtime {
	case Scaled:
	case Auto:
		return max(autoTarget, l.Narrowest().TransmitTime(l.Packet))
	default:
		return p.TargetQtime
	}
	n := 1.0
	if base > 0 {
		n = float64(l.Line) / float64(base)
	}
	return max(units.Time(targetBaselines*float64(l.Baseline)/n), minTarget)
}

// DelayTarget returns the one-way queueing delay above which the rate falls, with the planned base
// rate; 0 if the rate is not adjusted.
func (p Params) DelayTarget(l cc.Link, base units.Bandwidth) units.Time {
	if p.AdjustInterval == 0 {
		return 0
	}
	return p.target(l, base)
}

// longRegain is the number of base RTTs from which on the time to regain half of a rate is warned
// of: four flows without base rates have 88 % of the line at 1,000, and 82 % at 10,000. Ours.
const longRegain = 1000

// Misfits implements cc.Conditional: a target below the time of one packet, and rates that rise by
// too little.
func (p Params) Misfits(n cc.Network) []cc.Misfit {
	if p.AdjustInterval == 0 {
		return nil
	}
	return append(p.below(n), p.slow(n)...)
}

// slow returns a misfit if half of a rate is regained too slowly.
func (p Params) slow(n cc.Network) []cc.Misfit {
	half, unit := 0.5, "the base rate" // in units of hai
	if p.BaseRate == Off {
		half, unit = float64(n.Narrowest().BytesIn(n.BaseRTT))/float64(n.Packet)/2, "a packet per base RTT"
	}
	least := half * p.AdjustInterval / longRegain
	if p.HAI >= least {
		return nil
	}
	expected := "base rates, as base_rate: observed has without a controller"
	if least <= 1 {
		expected = fmt.Sprintf("at least %v%%, or %s", math.Ceil(1000*least)/10, expected)
	}
	regains := "never"
	if p.HAI > 0 {
		regains = fmt.Sprintf("in %.0f base RTTs of %v", half*p.AdjustInterval/p.HAI, n.BaseRTT.Rounded())
	}
	return []cc.Misfit{{Key: "hai", What: fmt.Sprintf("a rate rises by %s of %s every %s base RTTs, so that half of "+
		"what the path carries is regained %s; expected %s", units.FormatPercent(p.HAI), unit,
		params.ShowDecimal(p.AdjustInterval), regains, expected)}}
}

// below returns a misfit if the target is below the time of one packet.
func (p Params) below(n cc.Network) []cc.Misfit {
	packet := n.Narrowest().TransmitTime(n.Packet)
	if p.TargetQtime == Scaled || p.target(n.Link, 0) >= packet {
		return nil
	}
	return []cc.Misfit{{Key: "target_qtime", What: fmt.Sprintf("%v is less than a packet takes at %v, %v, so that a "+
		"packet that waits for one other slows its sender down; expected at least that, or auto", p.TargetQtime,
		n.Narrowest(), packet.Rounded())}}
}

// Constants of the scaled target. They are ours: the paper gives none.
const (
	targetBaselines = 4 // target of a single flow, in baselines
	minTarget       = units.Microsecond
)

// setRate clamps rate and sets the window and the pacing rate from it (lines 12-16).
//
// The window is tx_rate · rtt / 8 bytes on the wire. cwnd is the window in packets of link.MTU
// bytes: its thresholds, minWindow and PacedBelow, are about data, not about our headers. unit
// counts headers, because it is a rate on the wire. The endpoint lets the last packet overshoot
// the window, so without pacing a fractional window would act as the next whole number of packets.
// Pacing enforces the fraction. The paper paces below one packet; we pace below PacedBelow
// packets, where rounding up would distort the rate by more than a fifth (docs/adr/0010).
func (s *Sender) setRate(rate float64) {
	rtt := s.rtt.Seconds()
	rate = max(rate, minWindow*float64(8*s.link.MTU)/rtt, 1)
	s.txRate = min(rate, float64(s.link.Narrowest())) // the paper has no upper limit: docs/adr/0231
	bytes := s.txRate * rtt / 8
	s.cwnd = bytes / float64(s.link.MTU) // line 12
	s.window = units.Bytes(math.Ceil(bytes))
	s.pace()
}

// pace sets the pacing rate (lines 13-16).
func (s *Sender) pace() {
	s.pacing = 0
	if s.paced() {
		rate := math.Ceil(s.txRate * float64(s.rtt) / float64(s.pacingRTT()))
		s.pacing = min(units.Bandwidth(rate), s.link.Line) // the quotient may round above txRate
	}
}

// paced reports whether packets are paced. With a measured RTT they always are: the window grows
// with the RTT, so without pacing it would feed on the queue that it builds.
func (s *Sender) paced() bool {
	return s.cwnd < s.pacedBelow || s.measured
}

// pacingRTT returns the rtt of line 14 (docs/adr/0010, point 4). Using the rtt of line 12 would
// cancel it out: pacing would not react to a queue until the next adjustment, whereas a window
// slows down as soon as the RTT grows. So the queueing delay of the last packet is added, up to the
// target and up to one base RTT. Below one packet only that fraction of it is added: a flow that
// sends one packet in a hundred RTTs must not wait for the same queue a hundred times.
func (s *Sender) pacingRTT() units.Time {
	if s.measured {
		return s.rtt
	}
	queue := max(0, min(s.delay, s.target(), s.rtt))
	return s.rtt + units.Time(float64(queue)*min(s.cwnd, 1))
}

// Window implements cc.Controller. It returns the window in bytes, at least 1; the last packet may
// overshoot it.
func (s *Sender) Window() units.Bytes { return s.window }

// PacingRate implements cc.Controller. It returns the rate at which packets are spaced, or 0 if
// only the window limits the sender.
func (s *Sender) PacingRate() units.Bandwidth { return s.pacing }

// CWND returns the congestion window in packets, which may be a fraction.
func (s *Sender) CWND() float64 { return s.cwnd }

// Rate returns tx_rate, rounded down to 1 bit/s.
func (s *Sender) Rate() units.Bandwidth { return units.Bandwidth(s.txRate) }

// Resolved implements cc.Resolved. It returns the parameters that depend on the path, in lab units:
// the adjust interval, the RTT that converts rates to windows, and with a planned base rate the
// increases.
func (s *Sender) Resolved() []cc.Value {
	rtt := "of the idle path"
	if s.measured {
		rtt = "of the idle path at first, then of the packet acknowledged last"
	}
	all := []cc.Value{
		{Key: "adjust_interval", Value: s.interval.String(), Why: "base RTTs of the connection"},
		{Key: "rtt", Value: s.rtt.String(), Why: rtt},
	}
	if s.params.TargetQtime == Auto && s.params.AdjustInterval > 0 {
		all = append(all, cc.Value{
			Key: "target_qtime", Value: s.target().String(),
			Why: "auto is 2us, at least the time of a packet on the slowest link",
		})
	}
	if s.planned > 0 {
		share := func(of float64) string { return units.Bandwidth(of * float64(s.planned)).String() }
		why := "a share of the base rate, " + s.planned.String()
		all = append(all, cc.Value{Key: "ai", Value: share(s.params.AI), Why: why},
			cc.Value{Key: "hai", Value: share(s.params.HAI), Why: why})
	}
	return all
}
