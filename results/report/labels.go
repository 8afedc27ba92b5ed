package report

import (
	"strings"

	"weft/results/names"
	"weft/results/plot"
	"weft/transport"
)

// Paint gives lines the colours of the transports that their labels name, so that each has one in
// all charts. If two name the same transport, or one names none, all keep the colours of their
// positions.
func Paint(series []plot.Series) {
	colors, taken := make([]int, len(series)), map[int]bool{0: true}
	for i, s := range series {
		for _, part := range strings.FieldsFunc(s.Name, func(r rune) bool { return strings.ContainsRune(",: ", r) }) {
			colors[i] = max(colors[i], transport.FactsOf(part).Color)
		}
		if taken[colors[i]] {
			return
		}
		taken[colors[i]] = true
	}
	for i := range series {
		series[i].Color = colors[i]
	}
}

// transportColors returns the colours of the transports that labels name, as Paint does; nil unless
// all name one of their own.
func transportColors(labels []string) (colors []int) {
	series := make([]plot.Series, len(labels))
	for i, l := range labels {
		series[i].Name = l
	}
	Paint(series)
	for _, s := range series {
		if s.Color == 0 {
			return nil
		}
		colors = append(colors, s.Color)
	}
	return colors
}

// pathWords returns the axis label of a path: ranks, or ai of pc4.
func pathWords(path string) string {
	p := strings.Split(path, ".")
	switch last := names.Last(path); {
	case len(p) == 1:
		return last
	case last == "kind":
		return p[len(p)-2]
	case p[0] == "workload" && p[1] == "0":
		return last
	case p[0] == "workload":
		return last + " of item " + p[1]
	case p[0] == "topology":
		return strings.Join(p[1:], " ")
	default:
		return last + " of " + strings.Join(p[max(0, len(p)-2):len(p)-1], " ")
	}
}

// valueNames are the axis labels of the values of a run that are not distributions.
var valueNames = map[string]string{
	"jain": "Jain's index", "goodput": "throughput of all connections", "drops": "dropped packets",
	"lab_time":  "time until the last flow ends",
	"max_queue": "largest queue", "flow_rate.min": "slowest connection",
	"flow_rate.mean": "mean throughput of a connection", "flow_rate.max": "fastest connection",
	"plateau.worst.jain":    "lowest Jain's index of a plateau",
	"plateau.worst.settled": "longest settling time of a plateau",
	"plateau.worst.goodput": "lowest throughput of a plateau", "ce_marks": "marked packets", "paused": "time paused",
}

// distributionNames are the axis labels of distributions, before the quantile.
var distributionNames = map[string]string{
	"fct": "flow completion time", "fct_slowdown": "slowdown", "rtt": "round trip",
	"queue_delay":       "time in switch queues",
	"queue_event_delay": "queueing delay at queue events", "clock_error": "clock error",
}

var quantileNames = map[string]string{"mean": "mean", "p50": "median", "p99": "99th percentile", "max": "largest"}

// valueWords returns the axis label of a value of a run, of which one says whether it has one
// collective at most. An expression is its own label.
func valueWords(y string, one bool) string {
	if name, ok := valueNames[y]; ok {
		return name
	}
	if i := strings.LastIndex(y, "."); i > 0 {
		if d, q := distributionNames[y[:i]], quantileNames[y[i+1:]]; d != "" && q != "" {
			return d + ", " + q
		}
	}
	if p := strings.Split(y, "."); len(p) == 3 && p[0] == "collective" {
		field := map[string]string{"busbw": "bus bandwidth", "algbw": "bandwidth", "time": "time",
			"fastest": "time of the fastest group"}[p[2]]
		switch {
		case field != "" && one:
			return field
		case field != "":
			return field + " of collective " + p[1]
		}
	}
	return y
}
