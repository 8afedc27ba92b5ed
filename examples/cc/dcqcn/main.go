// Command dcqcn is DCQCN as NVIDIA's NICs run it, as a module. It computes what package
// transport/cc/dcqcn computes in mode mellanox, in the same order, so that runs have the same data
// files. Receivers answer marks by notifications: transport.wasm.cnp_interval.
package main

import "weft/sdk/cc"

// Positions of the parameters.
const (
	clamp = iota
	g
	initialAlpha
	alphaInterval
	decreaseInterval
	firstRate
	minRate
	rpTimer
	stages
	rai
	rhai
)

const (
	nvidia = "NVIDIA DOCA, DCQCN parameters; mlxconfig defaults of ConnectX NICs"
	tick   = float64(100 * cc.Nanosecond)
	most   = float64(10 * cc.Second)
)

// Values of the parameter clamp.
const (
	always = iota
	afterIncrease
	afterBytes
)

var _ = cc.Serve(cc.Module{
	Name: "dcqcn", About: "DCQCN as NVIDIA's NICs run it.", ECN: true,
	Params: []cc.Param{
		clamp: {Name: "clamp", Kind: cc.Choice, Words: []string{"always", "after-increase", "after-bytes"},
			Default: "after-increase",
			Source:  nvidia, About: "When a cut lowers the target rate."},
		g: {Name: "g", Kind: cc.Gain, Default: "5/1024", Source: nvidia, About: "Gain of alpha."},
		initialAlpha: {Name: "initial_alpha", Kind: cc.Gain, Default: "1023/1024",
			Source: nvidia, About: "Alpha at the first CNP."},
		alphaInterval: {Name: "alpha_interval", Kind: cc.Delay, Min: tick, Max: most, Default: "1us",
			Source: nvidia, About: "Alpha decay period."},
		decreaseInterval: {Name: "decrease_interval", Kind: cc.Delay, Min: tick, Max: most, Default: "4us",
			Source: nvidia, About: "Minimum between cuts."},
		firstRate: {Name: "first_rate", Kind: cc.Share, Min: 0.001, Max: 1, Default: "1",
			Source: nvidia, About: "Rate left by the first CNP; 1: off."},
		minRate: {Name: "min_rate", Kind: cc.Rate, Default: "1Mbps", Source: nvidia, About: "Minimum rate."},
		rpTimer: {Name: "rp_timer", Kind: cc.Delay, Min: tick, Max: most, Default: "300us",
			Source: nvidia, About: "Period of a recovery stage."},
		stages: {Name: "f", Kind: cc.Integer, Min: 1, Max: 1000, Default: "1",
			Source: nvidia, About: "Fast recovery stages."},
		rai:  {Name: "rai", Kind: cc.Rate, Default: "5Mbps", Source: nvidia, About: "Additive increase."},
		rhai: {Name: "rhai", Kind: cc.Rate, Default: "50Mbps", Source: nvidia, About: "Hyper increase."},
	},
}, &sender{})

func main() {}

// sender is the reaction point of a connection.
type sender struct {
	clamp                           int
	g, firstRate                    float64
	alphaInterval, decreaseInterval cc.Time
	rpTimer                         cc.Time
	f                               int
	rai, rhai                       float64
	line, minRate                   float64 // b/s

	rate, target float64 // Rc and Rt in b/s
	alpha        float64 // α as of alphaAt
	notified     bool    // a notification has come, so the clocks run
	alphaAt      cc.Time
	timeStage    int     // stages since the last cut
	recovering   bool    // rate or target are below the line rate
	timer        cc.Time // when the next stage of the RP timer ends
	first        cc.Time // the first notification, the origin of both clocks
	alphaMark    bool    // a notification came in the α interval that begins at alphaAt
	cutPending   bool    // a notification came since the last tick of the decrease clock
	cutAt        cc.Time // the next tick, if cutPending
}

// maxStage is where stages stop counting.
const maxStage = 1 << 20

// Init begins at line rate.
func (s *sender) Init(l *cc.Link, p *cc.Values) {
	s.clamp, s.g, s.alpha, s.firstRate = int(p.Int(clamp)), p[g], p[initialAlpha], p[firstRate]
	s.alphaInterval, s.decreaseInterval, s.rpTimer = p.Time(alphaInterval), p.Time(decreaseInterval), p.Time(rpTimer)
	s.f, s.rai, s.rhai = int(p.Int(stages)), p[rai], p[rhai]
	s.line, s.minRate, s.rate, s.target = l.Line, min(p[minRate], l.Line), l.Line, l.Line
}

// Ack does nothing: only notifications signal congestion.
func (s *sender) Ack(cc.Time, *cc.Ack) {}

// Loss does nothing: DCQCN assumes a lossless network.
func (s *sender) Loss(cc.Time, *cc.Loss) {}

// Notify records a notification. The next ticks of two clocks, which the first one starts, raise α
// and cut the rate.
func (s *sender) Notify(now cc.Time) {
	if !s.notified {
		s.notified = true
		s.first, s.alphaAt = now, now
		s.rate = max(s.minRate, s.firstRate*s.rate)
		s.target = s.rate
	} else {
		s.age(now)
		s.alphaMark = true
	}
	if !s.cutPending {
		s.cutPending = true
		s.cutAt = s.first + ((now-s.first)/s.decreaseInterval+1)*s.decreaseInterval
	}
}

// Timer is the next cut or the next stage. α needs none, since it is computed when it is used.
func (s *sender) Timer() cc.Time {
	at := cc.Never
	if s.recovering {
		at = s.timer
	}
	if s.cutPending {
		at = min(at, s.cutAt)
	}
	return at
}

// Expire performs the cuts and stages that are due, each as of its own instant. If both are due at
// once, the cut comes first and restarts the timer.
func (s *sender) Expire(now cc.Time) {
	for at := s.Timer(); at <= now; at = s.Timer() {
		if s.cutPending && s.cutAt == at {
			s.cutPending = false
			s.age(s.cutAt)
			s.cut(s.cutAt)
			continue
		}
		s.timer = at + s.rpTimer
		s.increase()
		s.timeStage = min(s.timeStage+1, maxStage)
	}
}

// increase is the increase of one stage.
func (s *sender) increase() {
	by := s.rhai
	switch {
	case s.timeStage < s.f: // fast recovery
		by = 0
	case s.timeStage == s.f: // active increase
		by = s.rai
	}
	s.target = min(s.target+by, s.line)
	s.rate = min((s.rate+s.target)/2, s.line)
	s.settle()
}

// cut lowers the rate by α/2 and restarts recovery.
func (s *sender) cut(now cc.Time) {
	if s.clamp == always || s.clamp == afterIncrease && s.timeStage > 0 {
		s.target = s.rate
	}
	s.rate = max(s.minRate, s.rate*(1-s.alpha/2))
	s.timeStage = 0
	s.recovering = true
	s.timer = now + s.rpTimer
	s.settle()
}

// settle ends recovery at the line rate, where further stages change nothing.
func (s *sender) settle() {
	if s.rate >= s.line-1 && s.target >= s.line-1 {
		s.rate, s.target, s.recovering = s.line, s.line, false
	}
}

// age updates α to now.
func (s *sender) age(now cc.Time) {
	n := int64((now - s.alphaAt) / s.alphaInterval)
	if !s.notified || n <= 0 {
		return
	}
	s.alphaAt += cc.Time(n) * s.alphaInterval
	if s.alphaMark {
		s.alpha = float64((1-s.g)*s.alpha) + s.g
		s.alphaMark = false
		n--
	}
	for f := 1 - s.g; n > 0; n >>= 1 { // by squaring: a pause may be millions of intervals long
		if n&1 == 1 {
			s.alpha *= f
		}
		f *= f
	}
}

// Window returns no limit: DCQCN has a rate only.
func (s *sender) Window() float64 { return cc.Unlimited }

// Rate returns the current rate.
func (s *sender) Rate() float64 { return max(s.rate, 1) }
