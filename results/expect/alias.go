package expect

import (
	"slices"
	"strings"
)

// tableWords maps the words of tables and reports, in lower case and with _ for blanks, to the
// names of expectations if they differ. The rest of a name stays: queue.p99 is queue_delay.p99. A
// test of package table checks that every word of a table has a name.
var tableWords = map[string]string{
	"flow_completion": "fct", "slowdown": "fct_slowdown", "round_trip": "rtt",
	"queue": "queue_delay", "switch_queues": "queue_delay", "queues": "queue_delay",
	"queue_events": "queue_event_delay", "largest_queue": "max_queue",
	"marks": "ce_marks", "ecn": "ce_marks", "done": "unfinished",
	"busbw": "collective.0.busbw", "algbw": "collective.0.algbw", "time": "collective.0.time",
	"size":  "collective.0.bytes",
	"wrong": "collective.0.wrong", "checked": "collective.0.checked",
	"error": "clock_error", "converged": "clock_converged", "bound": "clock_bound", "holds": "clock_coverage",
	"cost": "clock_share",
}

// tableAlias returns the name of a number that tables show under another word; empty for other
// words.
func tableAlias(name string) string {
	name = strings.ToLower(name)
	word, part, parts := strings.Cut(name, ".")
	if is := tableWords[word]; is != "" {
		word = is
	}
	if parts {
		word += "." + part
	} else if _, ok := findEntry(word); !ok {
		word += ".p99" // of a distribution
	}
	if !slices.Contains(Names(), strings.Replace(word, "collective.0.", "collective.N.", 1)) {
		return ""
	}
	return word
}
