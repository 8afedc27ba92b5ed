package dcqcn

import "weft/units"

// What the reaction point of NICs does of its own, after rdma-hw.cc of alibaba-edu/High-Precision-Congestion-Control
// ("Mellanox's version of DCQCN").

// notifyMellanox notes the notification; clocks that the first one starts turn it into a rise of α and a cut.
func (s *Sender) notifyMellanox(now units.Time) {
	if !s.notified {
		s.notified = true
		s.first, s.alphaAt = now, now
		s.rate = max(s.least, s.params.FirstRate*s.rate)
		s.target = s.rate
	} else {
		s.age(now)
		s.alphaMark = true
	}
	if !s.cutPending {
		s.cutPending = true
		s.cutAt = s.first + ((now-s.first)/s.params.DecreaseInterval+1)*s.params.DecreaseInterval
	}
}

// cutMellanox is a tick of the decrease clock after a notification. α's tick at the same instant comes before it.
func (s *Sender) cutMellanox() {
	s.cutPending = false
	s.age(s.cutAt)
	s.cut(s.cutAt, s.alpha)
}

// increaseMellanox is one stage.
func (s *Sender) increaseMellanox() {
	switch stage, f := s.timeStage, s.params.F; {
	case stage < f: // fast recovery
		s.raise(0)
	case stage == f: // active increase
		s.raise(float64(s.params.RAI.Rate))
	default: // hyper increase
		s.raise(float64(s.params.RHAI.Rate))
	}
}
