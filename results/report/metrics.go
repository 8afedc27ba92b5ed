package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
}

// fields are the fields of summary.json that metrics come from and that may lack a value.
var fields = map[string]string{
	"round trip, mean": "rtt_us", "queueing, p99": "network.queue_delay_us", "largest queue": "network.max_queue_bytes",
	"CE marks": "network.ce_marks", "drops": "network.drops", "retransmits": "network.retransmits",
	"timeouts": "network.timeouts", "lost": "network.lost", "cut": "network.cut", "trims": "network.trims",
	"pauses": "network.pauses",
}

// metrics returns the metrics of a comparison, with the collectives of the given summary and what
// its programs printed.
func metrics(like *record.Summary) []metric {
	completed := func(v func(*record.Summary) float64) func(*record.Summary) float64 {
		return func(s *record.Summary) float64 {
			if s.Flows.Count <= s.Flows.Unfinished {
				return math.NaN()
			}
			return v(s)
		}
	}
	number := func(name, unit string, sign float64, get func(*record.Summary) float64) metric {
		return metric{name: name, unit: unit, sign: sign, get: get}
	}
	counter := func(name string, get func(*record.Summary) int64) metric {
		return metric{name: name, sign: 1, counter: true,
			get: func(s *record.Summary) float64 { return float64(get(s)) }}
	}
	out := []metric{
		number("flow completion, mean", "us", 1,
			completed(func(s *record.Summary) float64 { return s.Flows.FCT.Mean })),
		number("flow completion, p99", "us", 1,
			completed(func(s *record.Summary) float64 { return s.Flows.FCT.P99 })),
		number("slowdown, p99", "", 1, completed(func(s *record.Summary) float64 { return s.Flows.Slowdown.P99 })),
		number("round trip, mean", "us", 1, func(s *record.Summary) float64 { return s.RTT.Mean }),
		number("queueing, p99", "us", 1, func(s *record.Summary) float64 { return s.Network.QueueDelay.P99 }),
		number("largest queue", "B", 1, func(s *record.Summary) float64 { return float64(s.Network.MaxQueue) }),
		number("CE marks", "", 0, func(s *record.Summary) float64 { return float64(s.Network.CEMarks) }),
		counter("drops", func(s *record.Summary) int64 { return s.Network.Drops }),
		counter("retransmits", func(s *record.Summary) int64 { return s.Network.Retransmits }),
		counter("timeouts", func(s *record.Summary) int64 { return s.Network.Timeouts }),
		counter("lost", func(s *record.Summary) int64 { return s.Network.Lost }),
		counter("cut", func(s *record.Summary) int64 { return s.Network.Cut }),
		counter("trims", func(s *record.Summary) int64 { return s.Network.Trims }),
		counter("pauses", func(s *record.Summary) int64 { return s.Network.Pauses }),
		number("lab time", "us", 1, func(s *record.Summary) float64 { return s.LabTimeUS }),
	}
	for i := range out {
		get, path := out[i].get, fields[out[i].name]
		out[i].get = func(s *record.Summary) float64 {
			if s.Lacks(path) != "" {
				return math.NaN()
			}
			return get(s)
		}
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
			func(s *record.Summary, at int) float64 { return s.Collectives[at].BusBWGbps }))
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
// is NaN if the run does not have it.
func median(s *record.Summary, name, at string) float64 {
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Name != name {
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
		sign := map[string]float64{"us": 1, "Gb/s": -1}[unit]
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
			out = append(out, metric{name: label + ", median", unit: unit, sign: sign, get: get})
		}
	}
	return out
}
