package table

import (
	"strings"

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
func answered(s *record.Summary) bool { return s.RTT.Max > 0 && s.Lacks("rtt_us") == "" }

// delivered reports whether switches delivered any packet whose queueing delay is known, and may be
// 0: it is not of packets of programs.
func delivered(s *record.Summary) bool {
	return s.Network.Delivered > 0 && !s.ProgramsAlone() && s.Lacks("network.queue_delay_us") == ""
}

// Value returns the text of a field of summary.json, such as rtt_us.max: a dash if the field has no
// value, and with "at least" if the value is a lower bound.
func Value(s *record.Summary, path, text string) string {
	switch {
	case s.Lacks(path) != "":
		return known(false, text)
	case s.LowerBound(path) != "":
		return "at least " + text
	}
	return text
}

// Packets says in words what the network and its endpoints counted, without what nobody did.
func Packets(s *record.Summary) string {
	n, parts := &s.Network, []string(nil)
	add := func(path, text string) {
		if s.Lacks("network."+path) == "" {
			parts = append(parts, text)
		}
	}
	count := func(path string, n int64, what string) {
		add(path, Value(s, "network."+path, units.Count(n)+" "+what))
	}
	count("packets", n.Packets, "packets")
	count("ce_marks", n.CEMarks, "CE marks")
	count("drops", n.Drops, "drops")
	if !s.ProgramsAlone() {
		count("retransmits", n.Retransmits, "retransmits")
		count("timeouts", n.Timeouts, "timeouts")
	}
	add("max_queue_bytes", LargestQueue(s)+" "+size(n.MaxQueue))
	return known(len(parts) > 0, strings.Join(parts, ", "))
}

// LargestQueue returns the words for network.max_queue_bytes of a run.
func LargestQueue(s *record.Summary) string {
	if s.LowerBound("network.max_queue_bytes") != "" {
		return "largest sampled queue"
	}
	return "largest queue"
}

// Checked says how many elements were compared with the reference, and how many of them were not
// compared again because an identical step had been.
func Checked(checked, alike int64) string {
	text := known(checked > 0, units.Count(checked-alike))
	if alike > 0 {
		text += " (" + units.Count(alike) + " more in identical steps)"
	}
	return text
}
