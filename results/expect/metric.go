package expect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/results/record"
)

var errNoMetric = errors.New("no line that a program printed has it")

// metricFields lists the fields of a metric. Instead of one, metric.NAME.3 is its fourth value.
func metricFields() []string { return []string{"count", "max", "mean", "min", "p50"} }

// parseMetric parses metric.NAME.FIELD.
func parseMetric(name string) (metric, field string, ok bool) {
	rest, ok := strings.CutPrefix(name, "metric.")
	metric, field, both := strings.Cut(rest, ".")
	if !ok || !both || metric == "" {
		return "", "", false
	}
	for _, known := range metricFields() {
		if field == known {
			return metric, field, true
		}
	}
	i, err := strconv.Atoi(field)
	return metric, field, err == nil && i >= 0 && digit(field[0])
}

// UsesMetric reports whether the expression is about a metric in the output of programs.
func (e *Expr) UsesMetric(metric string) bool {
	return slices.ContainsFunc(e.names(), func(n *node) bool {
		of, _, ok := parseMetric(n.name)
		return ok && of == metric
	})
}

// metricEntry returns the entry of a name such as metric.time_us.p50, or metric.time_us.3.
func metricEntry(name string) (entry, bool) {
	metric, field, ok := parseMetric(name)
	t, scale := plain, 1.0
	if field != "count" {
		var unit string
		switch unit, scale = record.MetricUnit(metric); unit {
		case "us":
			t = duration
		case "B":
			t = size
		case "Gb/s":
			t, scale = rate, scale*gbps
		}
	}
	return entry{name, t, func(s *record.Summary) (float64, error) {
		v, err := metricNumber(s, metric, field)
		return scale * v, err
	}}, ok
}

// metricNumber returns a field of a metric.
func metricNumber(s *record.Summary, name, field string) (float64, error) {
	for i := range s.Metrics {
		m := &s.Metrics[i]
		if m.Name != name {
			continue
		}
		if n, err := strconv.Atoi(field); err == nil && n < len(m.Values) && m.NonFinite == 0 {
			return m.Values[n], nil
		}
		if m.Unkept > 0 {
			return 0, fmt.Errorf("%d further matches were not kept, which may be anything", m.Unkept)
		}
		if field == "count" {
			return float64(m.Count), nil
		}
		if m.NonFinite > 0 {
			return 0, fmt.Errorf("%d lines have an infinite value or none (nan)", m.NonFinite)
		}
		switch field {
		case "max":
			return m.Max, nil
		case "mean":
			return m.Mean, nil
		case "min":
			return m.Min, nil
		case "p50":
			return m.P50, nil
		}
		return 0, fmt.Errorf("the summary has %d values of it, the first is .0", len(m.Values))
	}
	if field == "count" {
		return 0, nil
	}
	return 0, errNoMetric
}
