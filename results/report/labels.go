package report

import (
	"fmt"
	"strings"

	"weft/results/names"
	"weft/results/plot"
	"weft/results/record"
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

// valueWords returns the axis label of a value of a run, of which one says whether it has one
// collective at most. An expression is its own label.
func valueWords(y string, one bool) string {
	n, ok := record.Named(y)
	switch {
	case !ok || n.Axis == "":
		return y
	case n.Item() && !one:
		return fmt.Sprintf("%s of collective %d", n.Axis, n.Index)
	}
	return n.Axis
}
