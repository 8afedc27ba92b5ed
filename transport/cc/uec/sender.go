package uec

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// adjustPackets is the number of packets after which increases are applied
// (_adjust_bytes_threshold).
const adjustPackets = 8

// Sender is NSCC for one connection. It implements cc.Controller. Sizes are bytes on the wire.
//
// The names in parentheses are members of UecSrc in uec.h and uec.cpp.
type Sender struct {
	params Params
	line   float64    // bits per second
	packet float64    // size of a full packet (_mtu)
	netRTT units.Time // of the network, idle (_network_rtt)
	target units.Time // _target_Qdelay
	high   units.Time // _qa_threshold
	alpha  float64    // increase of the window per byte acknowledged and ps below the target, times the window
	fair   float64    // likewise, per byte acknowledged (_fi)
	eta    float64    // bytes (_eta)
	fast   float64    // _fi_scale

	cwnd, maxWindow float64    // bytes (_cwnd, _maxwnd)
	baseRTT         units.Time // the smallest round trip so far (_base_rtt)
	average         float64    // average queueing delay in ps (_avg_delay)

	increase     float64    // what the increases add up to, times the window (_inc_bytes)
	received     float64    // bytes since they were applied (_received_bytes)
	adjusted     units.Time // when eta was last added (_last_adjust_time)
	decreased    units.Time // when the window was last decreased (_last_dec_time)
	calm         float64    // bytes acknowledged without queueing (_fi_count)
	accelerating bool       // fast increase is under way (_increase)

	// Quick adapt.
	achieved  float64    // bytes that arrived since the period began (_achieved_bytes)
	periodEnd units.Time // _qa_endtime; 0: no period has begun
	trimmed   bool       // a packet was trimmed (_trigger_qa)
	ignored   float64    // bytes that arrived or were trimmed since the last quick adapt (_bytes_ignored)
	toIgnore  float64    // marks say nothing new until ignored is this much (_bytes_to_ignore)
}

// NewSender returns a sender for a connection on path l. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	net := l.NetBaseRTT()
	s := &Sender{
		params: p, line: float64(l.Line), packet: float64(l.Packet), netRTT: net, baseRTT: net, target: p.target(l),
		decreased: never,
	}
	s.high = units.Time(p.QAHigh * float64(s.target))
	scale := s.bdp() / cc.ReferenceBDP                    // _scaling_factor_a
	delay := float64(s.target) / float64(cc.ReferenceRTT) // _scaling_factor_b
	mss := float64(l.MTU)                                 // _mss
	s.alpha = p.Alpha.On(l, s.target) * mss * scale * delay / float64(s.target)
	s.fair, s.eta, s.fast = p.Fair*mss*scale, p.Eta*mss*scale, p.Fast*scale
	s.bound()
	s.cwnd = s.maxWindow
	if p.CWND > 0 {
		s.cwnd = float64(p.CWND) * s.packet // not bounded before the first acknowledgement (initNscc)
	}
	return s
}

// never is an instant before all others.
const never units.Time = -1 << 62

// bdp returns the bandwidth-delay product of the smallest round trip (_bdp).
func (s *Sender) bdp() float64 { return s.line * s.baseRTT.Seconds() / 8 }

// bound sets the maximum window.
func (s *Sender) bound() { s.maxWindow = max(s.params.MaxCWND*s.bdp(), s.packet) }

// OnStart implements cc.Controller. Window and average stay as the last message left them; counts
// of a round trip begin again.
func (s *Sender) OnStart(now units.Time) {
	s.adjusted, s.achieved, s.periodEnd = now, 0, 0
}

// OnSent does nothing: the endpoint counts the bytes in flight.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnAck implements cc.Controller (processAck, updateCwndOnAck_NSCC). The answer to a probe tells
// what has arrived, but not how long data waits: probes are in the control class.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	size := float64(a.Size)
	s.achieved += size
	s.received += size
	s.ignored += size
	if a.Probe {
		return
	}
	s.shorten(a.RTT)
	delay := a.RTT - s.baseRTT
	s.average = s.averageWith(delay, a.Marked)
	if s.quickAdapt(now, false, a.Marked, delay, a.InFlight) {
		return
	}
	switch {
	case !a.Marked && delay >= s.target:
		s.increase += s.fair * size
	case !a.Marked:
		s.grow(size, delay)
	case delay >= s.target:
		s.decrease(now)
	}
	s.clamp()
	if s.received > adjustPackets*s.packet || now-s.adjusted > s.netRTT {
		s.fulfill(now)
		s.clamp()
	}
}

// OnLoss implements cc.Controller. A trimmed packet is a signal of congestion
// (updateCwndOnNack_NSCC). After a timeout the window shrinks by the lost packet
// (mark_packet_for_retransmission).
func (s *Sender) OnLoss(now units.Time, l cc.Loss) {
	size := float64(l.Size)
	if l.Kind != cc.Trimmed {
		s.cwnd = max(s.cwnd-size, s.packet)
		return
	}
	s.shorten(l.RTT)
	s.ignored += size
	s.average = s.averageWith(s.netRTT, true) // the delay at which packets are trimmed is that of a full queue
	s.trimmed = true
	if s.quickAdapt(now, true, true, 0, l.InFlight) {
		return
	}
	if s.params.CC == Both && l.LastHop {
		return // RCCC deals with it
	}
	s.cwnd -= size
	s.clamp()
}

// shorten takes a round trip shorter than all before as the idle one (update_base_rtt). It bounds
// the window at once, although quick_adapt may keep the rest of the acknowledgement from doing so.
func (s *Sender) shorten(rtt units.Time) {
	if rtt > 0 && rtt < s.baseRTT {
		s.baseRTT = rtt
		s.bound()
		s.clamp()
	}
}

// averageWith returns the average delay after a sample. A long delay without a mark is old news:
// the queue behind the packet was short again (update_delay).
func (s *Sender) averageWith(delay units.Time, marked bool) float64 {
	sample := float64(delay)
	if !marked && delay > s.target {
		sample = float64(s.baseRTT) / 4
	}
	w := s.params.EWMA
	return float64(w*sample) + float64((1-w)*s.average)
}

// quickAdapt sets the window to what has arrived in the last period if that is little, and reports
// whether nothing else is to be done (quick_adapt).
func (s *Sender) quickAdapt(now units.Time, lost, marked bool, delay units.Time, inFlight units.Bytes) bool {
	done := false
	switch {
	case s.ignored < s.toIgnore && marked:
		done = true
	case now > s.periodEnd:
		if s.periodEnd != 0 && (s.trimmed || lost || delay > s.high) &&
			s.achieved < s.maxWindow/float64(uint64(1)<<s.params.QAGate) {
			s.cwnd = max(s.achieved, s.packet)
			s.toIgnore, s.ignored, s.trimmed = float64(inFlight), 0, false
			done = true
		}
		s.achieved, s.periodEnd = 0, now+s.baseRTT+s.target
	}
	if done {
		s.increase, s.received = 0, 0
	}
	return done
}

// grow increases the window after an unmarked acknowledgement with a delay below the target
// (proportional_increase, fast_increase).
func (s *Sender) grow(size float64, delay units.Time) {
	if delay < s.params.FastBelow {
		s.calm += size
		if s.calm > s.cwnd || s.accelerating {
			s.cwnd += size * s.fast
			s.accelerating = true
			return
		}
	} else {
		s.calm = 0
	}
	s.accelerating = false
	s.increase += s.alpha * size * float64(s.target-delay)
}

// decrease cuts the window at most once per round trip (multiplicative_decrease).
func (s *Sender) decrease(now units.Time) {
	s.accelerating, s.calm = false, 0
	target := float64(s.target)
	if s.average > target && now-s.decreased > s.baseRTT {
		over := (s.average - target) / s.average
		s.cwnd *= max(1-float64(s.params.Gamma*over), 1-s.params.MaxMDF)
		s.decreased = now
	}
}

// fulfill applies the increases (fulfill_adjustment).
func (s *Sender) fulfill(now units.Time) {
	s.cwnd += s.increase / s.cwnd
	if now-s.adjusted >= s.netRTT {
		s.cwnd += s.eta
		s.adjusted = now
	}
	s.increase, s.received = 0, 0
}

// clamp bounds the window (set_cwnd_bounds).
func (s *Sender) clamp() { s.cwnd = min(max(s.cwnd, s.packet), s.maxWindow) }

// Window implements cc.Controller. A full packet must fit into the window (can_send_NSCC), but the
// endpoint lets the last packet overshoot.
func (s *Sender) Window() units.Bytes { return units.Bytes(math.Floor(s.cwnd-s.packet)) + 1 }

// Resolved implements cc.Resolved.
func (s *Sender) Resolved() []cc.Value {
	const scaled = "scaled from 100Gbps and 12us to the network"
	size := func(v float64) string { return units.Bytes(v).String() }
	return []cc.Value{
		{Key: "target", Value: s.target.String(), Why: "target_rtt times the base RTT, unless it is written"},
		{Key: "qa_high", Value: s.high.String(), Why: "targets"},
		{Key: "alpha", Value: size(s.alpha * float64(s.target)), Why: scaled +
			", for a delay of 0; auto: 4 packets, or what adds 1/32 to 1/2 of a bandwidth-delay product"},
		{Key: "fair", Value: size(s.fair), Why: scaled},
		{Key: "eta", Value: size(s.eta), Why: scaled},
		{Key: "max_cwnd", Value: size(s.maxWindow), Why: "bandwidth-delay products of the network"},
		{Key: "cwnd", Value: size(s.cwnd), Why: "at the start; max_cwnd, unless it is written"},
	}
}

// PacingRate implements cc.Controller. It is 0: packets are not paced.
func (s *Sender) PacingRate() units.Bandwidth { return 0 }

// CWND returns the congestion window in bytes.
func (s *Sender) CWND() float64 { return s.cwnd }

// MaxWindow returns the maximum window in bytes.
func (s *Sender) MaxWindow() float64 { return s.maxWindow }

// Average returns the average queueing delay.
func (s *Sender) Average() units.Time { return units.Time(s.average) }

// Unlimited is the controller of a sender under RCCC alone: credits decide.
type Unlimited struct{}

// OnStart does nothing.
func (Unlimited) OnStart(units.Time) {}

// OnSent does nothing.
func (Unlimited) OnSent(units.Time, cc.Sent) {}

// OnAck does nothing.
func (Unlimited) OnAck(units.Time, cc.Ack) {}

// OnLoss does nothing.
func (Unlimited) OnLoss(units.Time, cc.Loss) {}

// Window implements cc.Controller: there is none.
func (Unlimited) Window() units.Bytes { return math.MaxInt64 }

// PacingRate implements cc.Controller. It is 0: packets are not paced.
func (Unlimited) PacingRate() units.Bandwidth { return 0 }
