package strack

import "weft/units"

// Average returns avg_delay, the average queueing delay.
func (s *Sender) Average() units.Time { return units.Time(s.average) }

// Achieved returns achievedBDP. ok is false before the first count ends.
func (s *Sender) Achieved() (b units.Bytes, ok bool) { return s.achieved, s.achieved != unknown }
