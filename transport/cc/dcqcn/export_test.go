package dcqcn

import "weft/units"

// At is a sender that was cut at an instant and now recovers: its rate and its target.
func (s *Sender) At(now units.Time, rate, target units.Bandwidth) {
	s.rate, s.target = float64(rate), float64(target)
	s.recovering, s.timer = true, now+s.params.RPTimer
	s.timeStage, s.byteStage = 0, 0
}
