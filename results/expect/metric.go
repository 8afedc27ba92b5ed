package expect

import (
	"errors"
	"strconv"
	"strings"

	"weft/results/record"
)

var errNoMetric = errors.New("no program printed it")

// metricFields lists the fields of a metric. Instead of one, metric.NAME.3 is its fourth value.
func metricFields() []string { return []string{"count", "max", "mean", "min", "p50"} }

// metricUnits are the ends of names of metrics that are quantities, and how many microseconds,
// bytes or bytes per microsecond one of them is.
var metricUnits = []struct {
	suffix string
	typ    typ
	scale  float64
}{
	{"_ns", duration, 1e-3}, {"_us", duration, 1}, {"_ms", duration, 1e3}, {"_s", duration, 1e6},
	{"_bytes", size, 1}, {"_mbps", rate, gbps / 1e3}, {"_gbps", rate, gbps},
}

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

// metricEntry returns the entry of a name such as metric.time_us.p50, or metric.time_us.3.
func metricEntry(name string) (entry, bool) {
	metric, field, ok := parseMetric(name)
	t, scale := plain, 1.0
	for _, u := range metricUnits {
		if strings.HasSuffix(metric, u.suffix) && field != "count" {
			t, scale = u.typ, u.scale
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
		switch field {
		case "count":
			return float64(m.Count), nil
		case "max":
			return m.Max, nil
		case "mean":
			return m.Mean, nil
		case "min":
			return m.Min, nil
		case "p50":
			return m.P50, nil
		}
		if n, err := strconv.Atoi(field); err == nil && n >= 0 && n < len(m.Values) {
			return m.Values[n], nil
		}
		return 0, errNoMetric
	}
	if field == "count" {
		return 0, nil
	}
	return 0, errNoMetric
}
