package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weft/results/expect"
	"weft/results/record"
	"weft/results/table"
)

// A metric is a number of a summary that is compared.
type metric struct {
	name, unit string
	sign       float64                       // of a change for the worse; 0: neither direction is worse
	get        func(*record.Summary) float64 // NaN if not measured
	counter    bool                          // see Difference
	of         string                        // what it is of, if two can have one name
	printed    bool                          // by programs
	count      bool                          // of what programs printed
}

// quiet reports whether the values of both sides tell nothing: all are 0, or a count is the same
// everywhere.
func (m *metric) quiet(a, b []float64) bool {
	first := 0.0
	if m.count {
		first = a[0]
	}
	other := func(v float64) bool { return v != first }
	return !slices.ContainsFunc(a, other) && !slices.ContainsFunc(b, other)
}

// metricsOf returns the metrics of the runs of two sides, each once: those of the first run, and
// what only others have.
func metricsOf(a, b Side) (all []metric) {
	runs := slices.Concat(a, b)
	for n, r := range runs {
		for _, m := range metrics(r.Summary) {
			if !slices.ContainsFunc(all, m.is) && len(runs[:n].with(m)) == 0 {
				all = append(all, m)
			}
		}
	}
	return all
}

// A comparedNumber is a number that every summary can have.
type comparedNumber struct {
	name, unit string
	sign       float64 // as in metric
	counter    bool
	number     string // see expect.Names
}

// compared are the numbers of a run that are compared.
var compared = []comparedNumber{
	{"flow completion, mean", "us", 1, false, "fct.mean"},
	{"flow completion, p99", "us", 1, false, "fct.p99"},
	{"slowdown, p99", "", 1, false, "fct_slowdown.p99"},
	{"round trip, mean", "us", 1, false, "rtt.mean"},
	{"queueing, p99", "us", 1, false, "queue_delay.p99"},
	{"largest queue", "B", 1, false, "max_queue"},
	{"CE marks", "", 0, false, "ce_marks"},
	{"drops", "", 1, true, "drops"},
	{"retransmits", "", 1, true, "retransmits"},
	{"timeouts", "", 1, true, "timeouts"},
	{"lost", "", 1, true, "lost"},
	{"cut", "", 1, true, "cut"},
	{"at stopped hosts", "", 1, true, "unreceived"},
	{"trims", "", 1, true, "trims"},
	{"pauses", "", 1, true, "pauses"},
	{"lab time", "us", 1, false, "lab_time"},
	{"goodput", "Gb/s", -1, false, "goodput"},
	{"slowest flow", "Gb/s", -1, false, "flow_rate.min"},
	{"fairness (Jain)", "", -1, false, "jain"},
	{"goodput of the worst plateau", "Gb/s", -1, false, "plateau.worst.goodput"},
	{"fairness of the worst plateau", "", -1, false, "plateau.worst.jain"},
	{"clock error, mean", "us", 1, false, "clock_error.mean"},
	{"clock error, p99", "us", 1, false, "clock_error.p99"},
	{"clock error, largest", "us", 1, false, "clock_error.max"},
	{"clock bound, p99", "us", 1, false, "clock_bound.p99"},
	{"clock bounds that hold", "", -1, false, "clock_coverage"},
	{"clocks converged after", "us", 1, false, "clock_converged"},
	{"clock error to the reference, p99", "us", 1, false, "clock_reference.p99"},
	{"clock error to the reference, largest", "us", 1, false, "clock_stability.max"},
	{"clock resets", "", 1, true, "clock_resets"},
	{"clock messages refused", "", 1, true, "clock_refused"},
	{"clock servers outvoted", "", 0, false, "clock_falsetickers"},
	{"clocks without a majority", "", 1, true, "clock_no_majority"},
	{"telemetry refused", "", 1, true, "ccm.refused"},
	{"telemetry with a bad tag", "", 1, true, "ccm.bad_tags"},
}

// metrics returns the metrics of a comparison, with the collectives of the given summary and what
// its programs printed.
func metrics(like *record.Summary) []metric {
	number := func(name, unit string, sign float64, get func(*record.Summary) float64) metric {
		return metric{name: name, unit: unit, sign: sign, get: get}
	}
	var out []metric
	for _, c := range compared {
		m := number(c.name, c.unit, c.sign, func(s *record.Summary) float64 { return expect.Number(s, c.number) })
		m.counter = c.counter
		out = append(out, m)
	}
	names := like.CollectiveNames()
	for i, of := range items(like) {
		name := names[i]
		value := func(name, unit string, sign float64, get func(s *record.Summary, at int) float64) metric {
			m := number(name, unit, sign, func(s *record.Summary) float64 {
				at := slices.Index(items(s), of)
				if at < 0 {
					return math.NaN()
				}
				return get(s, at)
			})
			m.of = of
			return m
		}
		if _, is := table.JobTime(like); i == 0 && is {
			out = append(out, value(name+", time", "us", 1, func(s *record.Summary, at int) float64 {
				if v, is := table.JobTime(s); is && at == 0 {
					return v
				}
				return math.NaN()
			}))
		}
		out = append(out, value(name+", busbw", "Gb/s", -1,
			func(s *record.Summary, at int) float64 {
				if v := s.Collectives[at].BusBWGbps; v > 0 {
					return v
				}
				return math.NaN()
			}))
	}
	return append(out, printed(like)...)
}

// is reports whether o is the same metric.
func (m metric) is(o metric) bool { return m.name == o.name && m.of == o.of }

// items returns what each item of a run is: its name, and how many of that name are before it. The
// bandwidths of an all-reduce and of an all-gather are two quantities, even if each is the first.
func items(s *record.Summary) []string {
	all, before := make([]string, len(s.Collectives)), map[string]int{}
	for i := range all {
		name := cmp.Or(s.Collectives[i].Label, s.Collectives[i].Name)
		all[i] = fmt.Sprint(name, " ", before[name])
		before[name]++
	}
	return all
}

// median returns the median of a metric in lines with the given sizes; "": of one without sizes. It
// is NaN if the run does not have it, or printed no number in some line: the others do not speak
// for that one.
func median(s *record.Summary, name, at string) float64 {
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Name != name || m.NonFinite > 0 {
			continue
		}
		if at == "" && len(m.Groups) == 0 {
			return m.P50
		}
		for k := range m.Groups {
			if m.Groups[k].At == at {
				return m.Groups[k].P50
			}
		}
	}
	return math.NaN()
}

// printed returns the metrics that programs printed in the run of the given summary, each by the
// sizes of its lines.
func printed(like *record.Summary) []metric {
	var out []metric
	for i := range like.Metrics {
		name := like.Metrics[i].Name
		unit, scale := record.MetricUnit(name)
		sign := record.MetricSign(name)
		groups := like.Metrics[i].Groups
		if len(groups) == 0 {
			groups = []record.MetricGroup{{}}
		}
		for _, g := range groups {
			label := name
			if g.At != "" {
				label += ", " + g.At
			}
			get := func(s *record.Summary) float64 { return scale * median(s, name, g.At) }
			out = append(out, metric{name: label + ", median", unit: unit, sign: sign, get: get, printed: true})
		}
		// Fewer values are worse: nothing is known of the others.
		out = append(out, metric{name: name + ", values", sign: -1, count: true, get: func(s *record.Summary) float64 {
			if len(s.Programs)+len(s.Metrics) == 0 {
				return math.NaN()
			}
			return expect.Number(s, "metric."+name+".count")
		}})
	}
	return out
}
