package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"weft/results/record"
	"weft/results/table"
)

// A metric is a number of a summary that is compared.
type metric struct {
	record.Number
	item    string // what it is of, if two can have one name
	printed bool   // by programs
	lines   bool   // it counts what programs printed
}

// quiet reports whether the values of both sides tell nothing: all are 0, or a count is the same
// everywhere.
func (m *metric) quiet(a, b []float64) bool {
	first := 0.0
	if m.lines {
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

// compared are the numbers of a run that are compared, beside those of its collectives and what its
// programs printed.
var compared = []string{
	"fct.mean", "fct.p99", "fct_slowdown.p99", "rtt.mean", "queue_delay.p99", "max_queue", "ce_marks", "drops",
	"retransmits", "timeouts", "lost", "cut", "unreceived", "trims", "pauses", "lab_time", "goodput", "flow_rate.min",
	"jain", "plateau.worst.goodput", "plateau.worst.jain", "clock_error.mean", "clock_error.p99", "clock_error.max",
	"clock_bound.p99", "clock_coverage", "clock_converged", "clock_reference.p99", "clock_stability.max",
	"clock_resets", "clock_refused", "clock_falsetickers", "clock_no_majority", "ccm.refused", "ccm.bad_tags",
}

// metrics returns the metrics of a comparison, with the collectives of the given summary and what
// its programs printed.
func metrics(like *record.Summary) []metric {
	var out []metric
	for _, n := range record.Select(compared...) {
		out = append(out, metric{Number: n})
	}
	names := like.CollectiveNames()
	for i, item := range items(like) {
		if _, is := table.JobTime(like); i == 0 && is {
			time := record.Select("collective.0.time")[0]
			time.Label, time.Of = names[i]+", time", func(s *record.Summary) (float64, error) {
				if v, is := table.JobTime(s); is && items(s)[0] == item {
					return v, nil
				}
				return 0, errNoItem
			}
			out = append(out, metric{Number: time, item: item})
		}
		busbw := record.Select(fmt.Sprintf("collective.%d.busbw", i))[0]
		busbw.Label, busbw.Path, busbw.Of = names[i]+", busbw", "", func(s *record.Summary) (float64, error) {
			at := slices.Index(items(s), item)
			if at < 0 {
				return 0, errNoItem
			}
			n, _ := record.Named(fmt.Sprintf("collective.%d.busbw", at))
			return n.Get(s)
		}
		out = append(out, metric{Number: busbw, item: item})
	}
	return append(out, printed(like)...)
}

var errNoItem = errors.New("the run has no such item")

// is reports whether o is the same metric.
func (m metric) is(o metric) bool { return m.Label == o.Label && m.item == o.item }

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
		groups := like.Metrics[i].Groups
		if len(groups) == 0 {
			groups = []record.MetricGroup{{}}
		}
		for _, g := range groups {
			n := record.Number{Label: name, Unit: record.Unit(unit), Worse: int(record.MetricSign(name))}
			if g.At != "" {
				n.Label += ", " + g.At
			}
			n.Label += ", median"
			n.Of = func(s *record.Summary) (float64, error) { return scale * median(s, name, g.At), nil }
			out = append(out, metric{Number: n, printed: true})
		}
		// Fewer values are worse: nothing is known of the others.
		count := record.Select("metric." + name + ".count")[0]
		of := count.Of
		count.Label, count.Worse, count.Of = name+", values", -1, func(s *record.Summary) (float64, error) {
			if len(s.Programs)+len(s.Metrics) == 0 {
				return 0, errNoItem
			}
			return of(s)
		}
		out = append(out, metric{Number: count, lines: true})
	}
	return out
}
