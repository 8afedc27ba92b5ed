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

// packets says in words what the network and its endpoints counted, without what nobody did.
func packets(s *record.Summary) string {
	var parts []string
	for _, n := range record.Select("packets", "ce_marks", "drops", "retransmits", "timeouts", "max_queue") {
		v, err := n.Get(s)
		if err != nil || s.ProgramsAlone() && record.OfEndpoints(n.Path) {
			continue
		}
		text, sampled := n.Format(v), s.LowerBound(n.Path) != ""
		switch {
		case !n.Count && sampled:
			text = "largest sampled queue " + text
		case !n.Count:
			text = n.Label + " " + text
		case sampled:
			text = "at least " + text + " " + n.Label
		default:
			text += " " + n.Label
		}
		parts = append(parts, text)
	}
	return known(len(parts) > 0, strings.Join(parts, ", "))
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
