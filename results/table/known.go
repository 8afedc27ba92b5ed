package table

import (
	"weft/results/record"
	"weft/units"
)

// Some fields of a summary are meaningless for incomplete runs.

// complete reports whether the run reached its end with every flow finished. Otherwise its
// completion times are those of the fastest flows and compare with nothing.
func complete(s *record.Summary) bool {
	return s.Complete() && s.Flows.Count > 0 && s.Flows.Unfinished == 0
}

// done says how many flows finished: "3 of 4".
func done(s *record.Summary) string {
	return units.Count(s.Flows.Count-s.Flows.Unfinished) + " of " + units.Count(s.Flows.Count)
}

// ended reports whether any flow finished, so that there are completion times.
func ended(s *record.Summary) bool { return s.Flows.Count > s.Flows.Unfinished }

// answered reports whether any packet was acknowledged, so that there are round trips.
func answered(s *record.Summary) bool { return s.RTT.Max > 0 }

// delivered reports whether switches delivered any packet whose queueing delay is known, and may be
// 0: it is not of packets of programs.
func delivered(s *record.Summary) bool { return s.Network.Delivered > 0 && !s.ProgramsAlone() }
