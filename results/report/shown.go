package report

import (
	"slices"

	"weft/results/expect"
	"weft/results/record"
)

// named returns the names of the charts that show the values of a lab's expectations, in the order
// in which these name them: what a lab without a report key is about.
func named(expectations []string) []string {
	var out []string
	for _, text := range expectations {
		for _, name := range expect.Mentioned(text) {
			if n, _ := record.Named(name); n.Chart != "" && !slices.Contains(out, n.Chart) {
				out = append(out, n.Chart)
			}
		}
	}
	return out
}

// lead sorts charts, or numbers: those in first, in its order, come before the others. chart
// returns the name of a chart in record.Charts; empty if it has none.
func lead[T any](all []T, first []string, chart func(T) string) {
	rank := func(c T) int {
		if i := slices.Index(first, chart(c)); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(all, func(a, b T) int { return rank(a) - rank(b) })
}
