package dcqcn

import "weft/units"

// This file has the parts of the reaction point that are specific to NICs, after rdma-hw.cc of
// alibaba-edu/High-Precision-Congestion-Control ("Mellanox's version of DCQCN").

// notifyMellanox records a notification. The next ticks of two clocks, which the first notification
// starts, raise α and cut the rate.
func (s *Sender) notifyMellanox(now units.Time) {
	if !s.notified {
		s.notified = true
		s.first, s.alphaAt = now, now
		s.rate = max(s.minRate, s.params.FirstRate*s.rate)
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

// cutMellanox is the tick of the decrease clock after a notification. A tick of α at the same
// instant comes first.
func (s *Sender) cutMellanox() {
	s.cutPending = false
	s.age(s.cutAt)
	s.cut(s.cutAt, s.alpha)
}

// increaseMellanox is the increase of one stage.
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
