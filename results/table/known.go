package table

import "weft/results/record"

// Of a run that did not do everything, some of the summary's numbers are of nothing.

// ended reports whether any flow was completed, so that there are completion times.
func ended(s *record.Summary) bool { return s.Flows.Count > s.Flows.Unfinished }

// answered reports whether any packet was acknowledged, so that there are round trips: no round trip takes no time.
func answered(s *record.Summary) bool { return s.RTT.Max > 0 }

// delivered reports whether any packet came through the switches, so that there are queueing delays, which may be 0.
func delivered(s *record.Summary) bool { return s.Network.Delivered > 0 }
