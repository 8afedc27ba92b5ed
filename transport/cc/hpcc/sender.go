package hpcc

import (
	"cmp"
	"math"

	"weft/transport/cc"
	"weft/units"
)

// Sender is Algorithm 1: it controls the window of one connection. It implements cc.Controller.
//
//	first telemetry: stored
//	each ACK after that:
//	  U ≥ η or incStage ≥ maxStage     W = Wc·η/U + W_AI   incStage = 0
//	  otherwise                        W = Wc + W_AI       incStage + 1
//
// Once per round trip of packets (lastUpdate) Wc becomes W. In between, W follows U, but Wc and
// incStage stay.
type Sender struct {
	params    Params
	line      units.Bandwidth
	t         units.Time // T
	winit     float64    // initial and maximum window in bytes
	minWindow float64    // bytes
	increase  float64    // W_AI in bytes

	window float64 // W in bytes
	base   float64 // Wc in bytes
	u      float64 // U, the utilization of the busiest link
	stage  int     // incStage

	acked      units.Bytes // bytes acknowledged so far
	lastUpdate units.Bytes // bytes sent at the last update of Wc

	hops  []cc.Hop // L, the last telemetry; empty if there is none
	route uint16   // the path that it came from
}

// NewSender returns a sender for a connection on path l, at line rate. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	t := cmp.Or(p.BaseRTT, l.NetBaseRTT())
	winit := initialWindow(l.Line, t)
	return &Sender{
		params: p, line: l.Line, t: t, winit: winit, increase: p.increase(winit, l.Packet),
		minWindow: min(initialWindow(p.MinRate.At(l.Line), t), winit),
		window:    winit, base: winit, u: 1,
	}
}

// OnStart implements cc.Controller. It keeps the window but drops the telemetry, because a rate
// measured across an idle period would be too low.
func (s *Sender) OnStart(units.Time) { s.hops = s.hops[:0] }

// OnSent does nothing: the bytes sent follow from those acknowledged and in flight.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnLoss does nothing: HPCC assumes a lossless fabric, and go-back-N recovers losses.
func (s *Sender) OnLoss(units.Time, cc.Loss) {}

// OnAck implements cc.Controller (Algorithm 1, NewAck).
func (s *Sender) OnAck(_ units.Time, a cc.Ack) {
	s.acked += a.Size
	sent := s.acked + a.InFlight // snd_nxt
	if !s.comparable(a) {
		if len(a.INT) > 0 {
			s.hops, s.route = append(s.hops[:0], a.INT...), a.Path
			s.lastUpdate = sent
		}
		return
	}
	full := s.acked > s.lastUpdate
	if s.measure(a.INT) {
		s.update(full)
	}
	if full {
		s.lastUpdate = sent
	}
}

// comparable reports whether the telemetry of an ACK comes from the same ports as the last one. If
// not, it is only stored, like the first one.
func (s *Sender) comparable(a cc.Ack) bool {
	if len(a.INT) == 0 || len(a.INT) != len(s.hops) || a.Path != s.route {
		return false
	}
	for i := range a.INT {
		if a.INT[i].Rate != s.hops[i].Rate {
			return false
		}
	}
	return true
}

// measure is MeasureInflight: it updates U with the utilization of the busiest hop, and stores the
// telemetry. It returns false if no hop has new telemetry, as in a duplicate or overtaken ACK.
func (s *Sender) measure(hops []cc.Hop) bool {
	most, tau := 0.0, units.Time(0)
	for i := range hops {
		h, last := &hops[i], &s.hops[i]
		d := h.At - last.At
		if d <= 0 {
			continue
		}
		if u := s.utilization(h, last, d); u > most || tau == 0 {
			most, tau = u, d
		}
		*last = *h
	}
	if tau == 0 {
		return false
	}
	weight := float64(min(tau, s.t)) / float64(s.t)
	s.u = float64((1-weight)*s.u) + float64(weight*most)
	return true
}

// utilization returns u' of a hop: the bytes that its queue and its rate put in flight, as a ratio
// of the link's bandwidth-delay product. d is the time between the two measurements.
func (s *Sender) utilization(h, last *cc.Hop, d units.Time) float64 {
	rate := float64(h.Rate)
	queue := 8 * float64(min(h.Queued, last.Queued)) / (rate * s.t.Seconds())
	return queue + float64(8*float64(max(h.Sent-last.Sent, 0))/d.Seconds())/rate
}

// update is ComputeWind: it sets W, and once per round trip (full) Wc and incStage.
func (s *Sender) update(full bool) {
	k := s.u / s.params.Eta
	window, stage := s.base+s.increase, s.stage+1
	if k >= 1 || s.stage >= s.params.MaxStage {
		window, stage = s.winit, 0
		if k > 0 {
			window = s.base/k + s.increase
		}
	}
	s.window = min(max(window, s.minWindow), s.winit)
	if full {
		s.base, s.stage = s.window, stage
	}
}

// Window implements cc.Controller. It returns W, rounded up.
func (s *Sender) Window() units.Bytes { return units.Bytes(math.Ceil(s.window)) }

// PacingRate implements cc.Controller. It returns R = W/T, at most the line rate.
func (s *Sender) PacingRate() units.Bandwidth {
	return units.Bandwidth(min(math.Ceil(8*s.window/s.t.Seconds()), float64(s.line)))
}

// Resolved implements cc.Resolved.
func (s *Sender) Resolved() []cc.Value {
	return []cc.Value{
		{Key: "t", Value: s.t.String(), Why: "the base RTT of the network, unless it is written"},
		{Key: "wai", Value: units.Bytes(s.increase).String(),
			Why: "unless it is written, the first window times 1 - eta, over flows; a 16th of a packet on paths of " +
				"few"},
		{Key: "min_rate", Value: units.Bytes(s.minWindow).String(), Why: "the least window, over t"},
	}
}
