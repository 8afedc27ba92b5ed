package report

import (
	"slices"
	"strings"
)

// chartNames are the charts about the values that an expectation can name, longest first where one
// is the beginning of another.
var chartNames = []struct{ value, chart string }{
	{"busbw", "busbw"}, {"algbw", "busbw"}, {"collective", "busbw"}, {"fct_slowdown", "slowdown"},
	{"slowdown", "slowdown"}, {"fct", "fct"}, {"rtt", "rtt"}, {"queue_delay", "queueing"}, {"max_queue", "queues"},
	{"queue_event_delay", "queues"},
	{"clock_error", "clocks"}, {"jain", "rates"}, {"goodput", "rates"}, {"flow_rate", "rates"}, {"plateau", "rates"},
	{"acks", "acks"},
}

// named returns the names of charts in the order in which a lab's expectations name their values:
// what a lab without a report key is about.
func named(expectations []string) []string {
	var out []string
	for _, text := range expectations {
		type hit struct {
			at    int
			chart string
		}
		var hits []hit
		for _, c := range chartNames {
			if i := strings.Index(text, c.value); i >= 0 {
				hits = append(hits, hit{i, c.chart})
			}
		}
		slices.SortStableFunc(hits, func(a, b hit) int { return a.at - b.at })
		for _, h := range hits {
			if !slices.Contains(out, h.chart) {
				out = append(out, h.chart)
			}
		}
	}
	return out
}

// lead sorts charts, or numbers: those in first, in its order, come before the others. name returns
// the name of a chart.
func lead[T any](charts []T, first []string, name func(T) string) {
	rank := func(c T) int {
		chart, _, _ := strings.Cut(name(c), "-") // fct-cdf goes with fct
		if i := slices.Index(first, chart); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(charts, func(a, b T) int { return rank(a) - rank(b) })
}
