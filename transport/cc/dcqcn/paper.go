package dcqcn

import "weft/units"

// This file has the parts of the reaction point that are specific to the paper (SIGCOMM 2015,
// section 3.2, Fig. 7; 802.1Qau for the stages).

// notifyPaper cuts at once. The text cuts with the old α and then raises it; the authors' simulator
// raises it first (Params.AlphaFirst).
func (s *Sender) notifyPaper(now units.Time) {
	s.age(now)
	s.notified, s.alphaAt = true, now // the α timer restarts
	before := s.alpha
	s.alpha = float64((1-s.params.G)*s.alpha) + s.params.G
	if s.params.AlphaFirst {
		before = s.alpha
	}
	s.cut(now, before)
}

// increasePaper is the increase of one stage. The stage is counted before it is compared, so an F
// of 5 gives four steps of fast recovery.
func (s *Sender) increasePaper() {
	t, b, f := s.timeStage, s.byteStage, s.params.F
	switch {
	case max(t, b) < f: // fast recovery
		s.raise(0)
	case min(t, b) >= f: // hyper increase
		s.raise(float64(min(t, b)-f+1) * float64(s.params.RHAI.Rate))
	default: // additive increase
		s.raise(float64(s.params.RAI.Rate))
	}
}
