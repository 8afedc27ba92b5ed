package report

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shown formats a number for a page: four significant digits, without an exponent, and commas
// between thousands.
func shown(v float64) string { return commas(number(v)) }

// whole formats a count with commas between thousands.
func whole(n int64) string { return commas(strconv.FormatInt(n, 10)) }

// commas puts commas between the thousands of a number's whole part, if that has five digits or
// more.
func commas(text string) string {
	digits, rest := text, ""
	if i := strings.IndexAny(text, ".eE"); i >= 0 {
		digits, rest = text[:i], text[i:]
	}
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if len(digits) < 5 || strings.Trim(digits, "0123456789") != "" {
		return text
	}
	var out []byte
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return sign + string(out) + rest
}

// A scale is a unit of a page and the number of the record's units in it.
type scale struct {
	name string
	of   float64
}

// scales are the units of a page by the unit of a record, in rising order.
var scales = map[string][]scale{
	"us":   {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}},
	"ns":   {{"ps", 1e-3}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}},
	"B":    {{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}},
	"Gb/s": {{"Mb/s", 1e-3}, {"Gb/s", 1}, {"Tb/s", 1e3}},
}

// scaleOf returns the unit that suits values in a unit of a record: the largest in which the
// largest value is at least 1.
func scaleOf(unit string, values ...float64) scale {
	all := scales[unit]
	if len(all) == 0 {
		return scale{unit, 1}
	}
	largest := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			largest = max(largest, math.Abs(v))
		}
	}
	if largest == 0 {
		return scale{unit, 1}
	}
	best := all[0]
	for _, s := range all {
		if largest >= s.of*0.99995 { // 999.95 would be shown as 1000
			best = s
		}
	}
	return best
}

// quantity formats a value in the unit that suits it: 8.283 ms.
func quantity(v float64, unit string) string {
	s := scaleOf(unit, v)
	return strings.TrimSpace(shown(v/s.of) + " " + s.name)
}

// unspaced matches a value with its unit, as terminals show it.
var unspaced = regexp.MustCompile(`\b(\d+(?:\.\d+)?)(ps|ns|us|ms|s|B|KB|MB|GB|TB|[kMGT]?bps)\b`)

// Spaced writes the values of a text for a terminal as pages do: 300 us for 300us.
func Spaced(text string) string { return unspaced.ReplaceAllString(text, "$1 $2") }

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
