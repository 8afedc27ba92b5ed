package dcqcn

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// unlimited is the window: DCQCN limits only the rate.
const unlimited units.Bytes = math.MaxInt64

// Sender is the reaction point of one connection. It implements cc.Timed.
//
//	              first cut
//	at line rate ───────────► recovering ◄──┐ a cut: target clamped, rate · (1-α/2), stage 0
//	     ▲                        │    └────┘
//	     └── rate and target ─────┘
//	         at line rate
//
// Each stage of recovering raises the target and moves the rate halfway to it:
//
//	fast recovery    stage below F   target unchanged
//	additive         in between      target + RAI
//	hyper            beyond          target + RHAI, or a multiple
type Sender struct {
	params  Params  `state:"span"`
	line    float64 // line rate in b/s
	minRate float64 // b/s

	rate, target float64    // Rc and Rt in b/s
	alpha        float64    // α as of alphaAt
	notified     bool       // a notification has come, so the clocks run
	alphaAt      units.Time // the instant up to which alpha is computed

	timeStage, byteStage int         // stages since the last cut
	counted              units.Bytes // bytes of the current byte stage
	recovering           bool        // rate or target are below the line rate
	timer                units.Time  // when the next stage of the RP timer ends

	// Mellanox only.
	first      units.Time // the first notification, the origin of both clocks
	alphaMark  bool       // a notification came in the α interval that begins at alphaAt
	cutPending bool       // a notification came since the last tick of the decrease clock
	cutAt      units.Time // the next tick, if cutPending
}

// NewSender returns a sender for a connection on path l, at line rate. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	p, line := p.on(l.Line), float64(l.Line)
	return &Sender{
		params: p, line: line, minRate: min(float64(p.MinRate.Rate), line),
		rate: line, target: line, alpha: p.InitialAlpha, alphaAt: units.LongAgo, first: units.LongAgo,
	}
}

// OnStart does nothing: a NIC keeps the state of a queue pair between messages, and its timers
// continue.
func (s *Sender) OnStart(units.Time) {}

// OnSent implements cc.Controller. It counts bytes for the byte stage.
func (s *Sender) OnSent(_ units.Time, p cc.Sent) {
	b := s.params.ByteCounter
	if b == 0 || !s.recovering {
		return
	}
	for s.counted += p.Size; s.counted >= b && s.recovering; s.counted -= b {
		s.byteStage = min(s.byteStage+1, maxStage)
		s.increasePaper()
	}
}

// OnAck does nothing: only notifications signal congestion.
func (s *Sender) OnAck(units.Time, cc.Ack) {}

// OnLoss does nothing: DCQCN assumes a lossless fabric, and go-back-N recovers losses.
func (s *Sender) OnLoss(units.Time, cc.Loss) {}

// OnCNP implements cc.Notified.
func (s *Sender) OnCNP(now units.Time) {
	if s.params.Mode == Mellanox {
		s.notifyMellanox(now)
		return
	}
	s.notifyPaper(now)
}

// Rest implements cc.Resting. Clocks that do not run have no instants.
func (s *Sender) Rest(units.Time) {
	if !s.recovering {
		s.timer = units.LongAgo
	}
	if !s.cutPending {
		s.cutAt = units.LongAgo
	}
}

// Deadline implements cc.Timed: the next cut or the next stage of the timer. α needs no deadline,
// since it is computed when it is used.
func (s *Sender) Deadline() (units.Time, bool) {
	at, ok := units.Never, false
	if s.recovering {
		at, ok = s.timer, true
	}
	if s.cutPending {
		at, ok = min(at, s.cutAt), true
	}
	return at, ok
}

// Advance implements cc.Timed. It performs the cuts and stages that are due, each as of its own
// instant however late it is called. If both are due at once, the cut comes first and restarts the
// timer.
func (s *Sender) Advance(now units.Time) {
	for {
		at, ok := s.Deadline()
		if !ok || at > now {
			return
		}
		if s.cutPending && s.cutAt == at {
			s.cutMellanox()
			continue
		}
		s.timer = at + s.params.RPTimer
		s.timeout()
	}
}

// timeout handles an expiry of the RP timer.
func (s *Sender) timeout() {
	if s.params.Mode == Mellanox {
		s.increaseMellanox() // compared before it is counted
		s.timeStage = min(s.timeStage+1, maxStage)
		return
	}
	s.timeStage = min(s.timeStage+1, maxStage)
	s.increasePaper()
}

// cut lowers the rate by α/2 and restarts recovery.
func (s *Sender) cut(now units.Time, alpha float64) {
	if s.clamps() {
		s.target = s.rate
	}
	s.rate = max(s.minRate, s.rate*(1-alpha/2))
	s.timeStage, s.byteStage, s.counted = 0, 0, 0
	s.recovering = true
	s.timer = now + s.params.RPTimer
	s.settle()
}

// clamps reports whether a cut lowers the target to the rate (Params.Clamp).
func (s *Sender) clamps() bool {
	switch s.params.Clamp {
	case ClampAlways:
		return true
	case ClampAfterIncrease:
		return s.timeStage > 0 || s.byteStage > 0
	default:
		return s.byteStage > 0
	}
}

// raise adds to the target and moves the rate halfway to it. In the paper's mode the limit of the
// target at the line rate is ours: the authors' simulator lets it grow without bound while the rate
// is at the line rate.
func (s *Sender) raise(by float64) {
	s.target = min(s.target+by, s.line)
	s.rate = min((s.rate+s.target)/2, s.line)
	s.settle()
}

// settle ends recovery at the line rate, where further stages change nothing: an idle connection
// must not keep its timer running. The stages are kept, because the next cut depends on them.
func (s *Sender) settle() {
	if s.rate >= s.line-1 && s.target >= s.line-1 {
		s.rate, s.target, s.recovering = s.line, s.line, false
	}
}

// decay multiplies α by 1-G once for each of n intervals.
func (s *Sender) decay(n int64) {
	for f := 1 - s.params.G; n > 0; n >>= 1 { // by squaring: a pause may be millions of intervals long
		if n&1 == 1 {
			s.alpha *= f
		}
		f *= f
	}
}

// Window implements cc.Controller. It is unlimited.
func (s *Sender) Window() units.Bytes { return unlimited }

// PacingRate implements cc.Controller. It returns the current rate.
func (s *Sender) PacingRate() units.Bandwidth { return max(units.Bandwidth(s.rate), 1) }

// Target returns the target rate of recovery.
func (s *Sender) Target() units.Bandwidth { return units.Bandwidth(s.target) }

// Alpha returns α as of now.
func (s *Sender) Alpha(now units.Time) float64 {
	s.age(now)
	return s.alpha
}

// age updates α to now.
func (s *Sender) age(now units.Time) {
	n := int64((now - s.alphaAt) / s.params.AlphaInterval)
	if !s.notified || n <= 0 {
		return
	}
	s.alphaAt += units.Time(n) * s.params.AlphaInterval
	if s.alphaMark {
		s.alpha = float64((1-s.params.G)*s.alpha) + s.params.G
		s.alphaMark = false
		n--
	}
	s.decay(n)
}

// Resolved implements cc.Resolved.
func (s *Sender) Resolved() []cc.Value {
	const line = "on the line of the sender"
	return []cc.Value{
		{Key: "min_rate", Value: units.Bandwidth(s.minRate).String(), Why: line},
		{Key: "rai", Value: s.params.RAI.String(), Why: line},
		{Key: "rhai", Value: s.params.RHAI.String(), Why: line},
	}
}
