package table

import (
	"fmt"

	"weft/results/record"
)

// Some fields of a summary are meaningless for incomplete runs.

// complete reports whether the run went to its end and every flow was completed. Otherwise its completion times are those of
// the flows that happened to end, which are the fastest, and compare with nothing.
func complete(s *record.Summary) bool {
	return s.Complete() && s.Flows.Count > 0 && s.Flows.Unfinished == 0
}

// done is how many flows were completed of how many: "3 of 4".
func done(s *record.Summary) string {
	return fmt.Sprintf("%d of %d", s.Flows.Count-s.Flows.Unfinished, s.Flows.Count)
}

// ended reports whether any flow was completed, so that there are completion times.
func ended(s *record.Summary) bool { return s.Flows.Count > s.Flows.Unfinished }

// answered reports whether any packet was acknowledged, so that there are round trips: no round trip takes no time.
func answered(s *record.Summary) bool { return s.RTT.Max > 0 }

// delivered reports whether any packet came through the switches, so that there are queueing delays, which may be 0.
func delivered(s *record.Summary) bool { return s.Network.Delivered > 0 }
