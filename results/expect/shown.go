package expect

import (
	"slices"
	"strings"
)

// shown are the words of tables and reports, in lower case and with _ for blanks, whose numbers have another name in expectations.
// What follows a word stays: queue.p99 is queue_delay.p99. Tables have the words, and a test of theirs that each has a name here.
var shown = map[string]string{
	"flow_completion": "fct", "slowdown": "fct_slowdown", "round_trip": "rtt",
	"queue": "queue_delay", "switch_queues": "queue_delay", "queues": "queue_delay", "queue_events": "queue_event_delay", "largest_queue": "max_queue",
	"marks": "ce_marks", "ecn": "ce_marks", "done": "unfinished",
	"busbw": "collective.0.busbw", "algbw": "collective.0.algbw", "time": "collective.0.time", "size": "collective.0.bytes",
	"wrong": "collective.0.wrong", "checked": "collective.0.checked",
	"error": "clock_error", "converged": "clock_converged", "bound": "clock_bound", "holds": "clock_coverage", "cost": "clock_share",
}

// inTables is the name of the number that tables show under another word; "" for what they do not show.
func inTables(name string) string {
	name = strings.ToLower(name)
	word, part, parts := strings.Cut(name, ".")
	if is := shown[word]; is != "" {
		word = is
	}
	if parts {
		word += "." + part
	} else if _, ok := find(word); !ok {
		word += ".p99" // of what has a distribution
	}
	if !slices.Contains(Names(), strings.Replace(word, "collective.0.", "collective.N.", 1)) {
		return ""
	}
	return word
}
