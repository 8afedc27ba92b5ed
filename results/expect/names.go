package expect

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/nearest"
	"weft/results/record"
)

// An entry is a name of the summary: one of record.Numbers, or a step of congestion management.
type entry struct {
	record.Number
	typ typ
}

// get returns the value of the name for a run. An error says that the run did not measure it: a
// missing number must not meet an expectation.
func (e entry) get(s *record.Summary) (value, error) {
	if e.typ == wordType {
		word, err := verdict(s)
		return value{typ: wordType, word: word}, err
	}
	v, err := e.Get(s)
	if e.typ == rate {
		v *= gbps
	}
	return value{typ: e.typ, num: v}, err
}

// findEntry returns the entry of a name.
func findEntry(name string) (entry, bool) {
	n, ok := record.Named(name)
	if !ok {
		n, ok = stepNumber(name)
	}
	return entry{n, types[n.Unit]}, ok
}

// types are the types of numbers by their units.
var types = map[record.Unit]typ{
	record.Plain: plain, record.Microseconds: duration, record.Bytes: size, record.Gbps: rate,
	record.Truth: truthType, record.Word: wordType,
}

// verdict returns the fidelity of a run, or an error if it was not judged.
func verdict(s *record.Summary) (string, error) {
	why := s.Unjudged()
	switch {
	case why == "":
		return s.Fidelity.Verdict, nil
	case s.Engine == "sim":
		why += "; `when engine.kind == emu` at the end of the line keeps it for emulations"
	}
	return "", fmt.Errorf("not judged: %s", why)
}

// Names lists the names of the summary in alphabetical order. N stands for a number from 0: in
// collective.N an item of the workload, in plateau.N a plateau, in clock_stability.N an averaging
// time.
func Names() []string {
	var out []string
	for _, n := range record.Numbers() {
		out = append(out, n.Name)
	}
	for _, field := range record.MetricFields {
		out = append(out, "metric.NAME."+field)
	}
	slices.Sort(out)
	return out
}

// Kind returns the type of one of Names in words, such as "a time"; empty for any other name.
func Kind(name string) string {
	e, ok := findEntry(strings.Replace(name, ".N.", ".0.", 1))
	if !ok {
		return ""
	}
	return e.typ.String()
}

// metricOf returns the metric in the output of programs that a name is about; "" for others.
func metricOf(name string) string {
	metric, ok := strings.CutPrefix(name, "metric.")
	if !ok {
		return ""
	}
	metric, _, _ = strings.Cut(metric, ".")
	return metric
}

// UsesMetric reports whether the expression is about a metric in the output of programs.
func (e *Expr) UsesMetric(metric string) bool {
	return slices.ContainsFunc(e.names(), func(n *node) bool { return metricOf(n.name) == metric })
}

// suggestion returns "; did you mean x?" with the number that tables show under a name, or the
// nearest name; empty if none is near.
func suggestion(name string) string {
	if is := inTables(name); is != "" {
		return "; did you mean " + is + "?"
	}
	best, distance := "", len(name)/2+1
	for _, candidate := range Names() {
		if d := nearest.Edits(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// inTables returns the name of a number that tables show under another word, in any case and with _
// for blanks: queue.p99 is queue_delay.p99, busbw is collective.0.busbw, and queue alone the 99th
// percentile. It is empty for other words.
func inTables(name string) string {
	word, part, _ := strings.Cut(strings.ToLower(name), ".")
	for _, n := range record.Numbers() {
		if slices.Contains(n.Words, word) && (part == n.Quantile || part == "" && n.Quantile == "p99") {
			return strings.Replace(n.Name, ".N.", ".0.", 1)
		}
	}
	return ""
}
