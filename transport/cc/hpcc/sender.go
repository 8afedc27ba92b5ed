package hpcc

import (
	"cmp"
	"math"

	"weft/transport/cc"
	"weft/units"
)

// Sender is Algorithm 1: it keeps the window of one connection. It implements cc.Controller.
//
//	first telemetry ──► stored
//	then, each acknowledgement:
//	  U ≥ η or incStage ≥ maxStage     W = Wc·η/U + W_AI   incStage = 0
//	  otherwise                        W = Wc + W_AI       incStage + 1
//	once per round trip of packets (lastUpdate): Wc = W; between, W follows U but Wc and incStage stay
type Sender struct {
	params   Params
	line     units.Bandwidth
	t        units.Time // T
	winit    float64    // bytes, and the most
	least    float64    // bytes
	increase float64    // W_AI, bytes

	window float64 // W, bytes
	base   float64 // Wc, bytes
	u      float64 // U, utilization of the busiest link
	stage  int     // incStage

	acked      units.Bytes // since the connection began
	lastUpdate units.Bytes // what had been sent at the last update of Wc

	hops  []cc.Hop // L: the last telemetry; empty: none yet
	route uint16   // the path it came by
}

// NewSender returns a sender on a path, at line rate. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	t := cmp.Or(p.BaseRTT, l.NetRTT, l.BaseRTT)
	winit := initialWindow(l.Line, t)
	return &Sender{
		params: p, line: l.Line, t: t, winit: winit, least: min(initialWindow(p.MinRate.At(l.Line), t), winit), increase: p.increase(winit),
		window: winit, base: winit, u: 1,
	}
}

// OnStart keeps the window but forgets the telemetry: measured across a pause it would speak of the pause.
func (s *Sender) OnStart(units.Time) { s.hops = s.hops[:0] }

// OnSent does nothing: what was sent is known from what is acknowledged and in flight.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnLoss does nothing: HPCC presumes a lossless fabric, and loss recovery is go-back-N's.
func (s *Sender) OnLoss(units.Time, cc.Loss) {}

// OnAck is Algorithm 1, NewAck.
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

// comparable says whether the acknowledgement's telemetry comes from the same ports as the last one. If not, it is
// stored as the first one was.
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

// measure is MeasureInflight: it moves U by the hop with the most in flight relative to its link, and stores the
// telemetry. It returns false when no hop has news, as in the copy of an acknowledgement or in one overtaken.
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

// utilization is u' of one hop: what its queue and its rate put in flight, over the link's bandwidth-delay product.
func (s *Sender) utilization(h, last *cc.Hop, d units.Time) float64 {
	rate := float64(h.Rate)
	queue := 8 * float64(min(h.Queued, last.Queued)) / (rate * s.t.Seconds())
	return queue + float64(8*float64(max(h.Sent-last.Sent, 0))/d.Seconds())/rate
}

// update is ComputeWind.
func (s *Sender) update(full bool) {
	k := s.u / s.params.Eta
	window, stage := s.base+s.increase, s.stage+1
	if k >= 1 || s.stage >= s.params.MaxStage {
		window, stage = s.winit, 0
		if k > 0 {
			window = s.base/k + s.increase
		}
	}
	s.window = min(max(window, s.least), s.winit)
	if full {
		s.base, s.stage = s.window, stage
	}
}

// Window returns W.
func (s *Sender) Window() units.Bytes { return units.Bytes(math.Ceil(s.window)) }

// PacingRate returns R = W/T.
func (s *Sender) PacingRate() units.Bandwidth {
	return units.Bandwidth(min(math.Ceil(8*s.window/s.t.Seconds()), float64(s.line)))
}

// Utilization returns U.
func (s *Sender) Utilization() float64 { return s.u }

// Resolved returns what the parameters came to on the path.
func (s *Sender) Resolved() []cc.Value {
	return []cc.Value{
		{Key: "t", Value: s.t.String(), Why: "the base RTT of the network, unless it is written"},
		{Key: "wai", Value: units.Bytes(s.increase).String(), Why: "unless it is written, the first window times 1 - eta, over flows"},
		{Key: "min_rate", Value: units.Bytes(s.least).String(), Why: "the least window, over t"},
	}
}
