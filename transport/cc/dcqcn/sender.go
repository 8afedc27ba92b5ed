package dcqcn

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// unlimited is the window: DCQCN limits the rate alone.
const unlimited units.Bytes = math.MaxInt64

// Sender is the reaction point of one connection. It implements cc.Timed.
//
//	            first cut                              stage
//	at the line ─────────► recovering: fast recovery   below F     halfway to the target
//	     ▲                             additive        in between  target + RAI, halfway
//	     │                             hyper           beyond      target + RHAI or a multiple, halfway
//	     └── rate and target are the line's            a cut: target clamped, rate·(1-α/2), stage 0
type Sender struct {
	params Params
	line   float64 // b/s
	least  float64 // b/s

	rate, target float64 // Rc, Rt; b/s
	alpha        float64
	notified     bool       // a notification has come: the clocks run
	alphaAt      units.Time // up to which alpha is computed

	timeStage, byteStage int // since the last cut
	counted              units.Bytes
	recovering           bool // rate or target are below the line's
	timer                units.Time

	// Mellanox.
	first      units.Time // first notification: origin of both clocks
	alphaMark  bool       // a notification came in the α interval that alphaAt begins
	cutPending bool       // a notification came since the last tick of the decrease clock
	cutAt      units.Time // the next tick, when cutPending
}

// NewSender returns a sender on a path, at line rate. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	p, line := p.on(l.Line), float64(l.Line)
	return &Sender{
		params: p, line: line, least: min(float64(p.MinRate.Rate), line), rate: line, target: line, alpha: p.InitialAlpha,
	}
}

// OnStart does nothing: a NIC keeps the state of a queue pair between messages, and its timers run on.
func (s *Sender) OnStart(units.Time) {}

// OnSent counts bytes towards the byte stage.
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

// OnAck does nothing: congestion comes as notifications.
func (s *Sender) OnAck(units.Time, cc.Ack) {}

// OnLoss does nothing: DCQCN presumes a lossless fabric, and loss recovery is go-back-N's.
func (s *Sender) OnLoss(units.Time, cc.Loss) {}

// OnCNP takes in a congestion notification packet.
func (s *Sender) OnCNP(now units.Time) {
	if s.params.Mode == Mellanox {
		s.notifyMellanox(now)
		return
	}
	s.notifyPaper(now)
}

// Deadline returns the next cut or the next stage of the timer. α needs none: it is computed when it is used.
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

// Advance makes the cut and the stages that are due, each at its own instant however late it is called. Where both
// are due at once the cut comes first, and restarts the timer.
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

// timeout is an expiry of the RP timer.
func (s *Sender) timeout() {
	if s.params.Mode == Mellanox {
		s.increaseMellanox() // compared before it is counted
		s.timeStage = min(s.timeStage+1, maxStage)
		return
	}
	s.timeStage = min(s.timeStage+1, maxStage)
	s.increasePaper()
}

// cut lowers the rate by α/2 and starts recovery anew.
func (s *Sender) cut(now units.Time, alpha float64) {
	if s.clamps() {
		s.target = s.rate
	}
	s.rate = max(s.least, s.rate*(1-alpha/2))
	s.timeStage, s.byteStage, s.counted = 0, 0, 0
	s.recovering = true
	s.timer = now + s.params.RPTimer
	s.settle()
}

// clamps says whether a cut brings the target down to the rate (Params.Clamp).
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

// raise adds to the target and moves the rate halfway to it. Capping the target at the line is ours in the paper's
// mode, whose authors' simulator lets it grow without bound behind a rate that stands at the line.
func (s *Sender) raise(by float64) {
	s.target = min(s.target+by, s.line)
	s.rate = min((s.rate+s.target)/2, s.line)
	s.settle()
}

// settle ends recovery at the line, where another stage would change nothing: an idle connection must not
// keep its host awake. Stages stay as they are, for the next cut asks whether there were any.
func (s *Sender) settle() {
	if s.rate >= s.line-1 && s.target >= s.line-1 {
		s.rate, s.target, s.recovering = s.line, s.line, false
	}
}

// decay multiplies α by 1-G for each of n intervals.
func (s *Sender) decay(n int64) {
	for f := 1 - s.params.G; n > 0; n >>= 1 { // by squaring: a pause may be millions of intervals long
		if n&1 == 1 {
			s.alpha *= f
		}
		f *= f
	}
}

// Window is unlimited.
func (s *Sender) Window() units.Bytes { return unlimited }

// PacingRate returns the current rate.
func (s *Sender) PacingRate() units.Bandwidth { return max(units.Bandwidth(s.rate), 1) }

// Target returns the rate that recovery aims at.
func (s *Sender) Target() units.Bandwidth { return units.Bandwidth(s.target) }

// Alpha returns α as of now.
func (s *Sender) Alpha(now units.Time) float64 {
	s.age(now)
	return s.alpha
}

// age lets α's clock run up to now.
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

// Resolved returns what the parameters came to on the line.
func (s *Sender) Resolved() []cc.Value {
	const line = "on the line of the sender"
	return []cc.Value{
		{Key: "min_rate", Value: units.Bandwidth(s.least).String(), Why: line},
		{Key: "rai", Value: s.params.RAI.String(), Why: line},
		{Key: "rhai", Value: s.params.RHAI.String(), Why: line},
	}
}
