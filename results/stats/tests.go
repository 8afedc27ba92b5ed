package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// normalHalf is half the width of a 95 % interval in standard errors.
const normalHalf = 1.959963984540054

// Apart returns the two-sided p-value that two estimates are of one value, by their 95 % confidence intervals: z is their distance in standard
// errors of the difference, as of normal ones. Where neither has a width, it is 1 if they are equal and 0 if not.
func Apart(a, b Interval) float64 {
	d := math.Abs(a.Mean - b.Mean)
	if d == 0 {
		return 1
	}
	e := math.Hypot(a.High-a.Low, b.High-b.Low) / (2 * normalHalf)
	return math.Erfc(d / e / math.Sqrt2)
}

// OneAgainst returns the two-sided p-value that one value is of the normal distribution that the others are of: t = (v - m) / (s
// sqrt(1 + 1/n)) with n - 1 degrees of freedom, as of a prediction interval. Of fewer than two others it is 1.
func OneAgainst(v float64, others []float64) float64 {
	n := float64(len(others))
	if n < 2 || v == Mean(others) {
		return 1
	}
	i := MeanInterval(others)
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}
	e := (i.High - i.Low) / 2 / t.Quantile(0.975) * math.Sqrt(n+1) // of the mean times sqrt(n+1) is of a further value
	return math.Min(1, 2*t.Survival(math.Abs(v-i.Mean)/e))
}

// Adjust returns p-values that hold for all tests together: those that are at most q are, in the mean over many comparisons, to the share q
// of chance. Y. Benjamini and Y. Hochberg, J. R. Statist. Soc. B 57 (1995). It holds for tests that are independent or go up and down together, as
// percentiles and means of the same flows do.
func Adjust(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(p[i], p[k]) })
	out := make([]float64, len(p))
	least := 1.0
	for rank := len(p); rank > 0; rank-- {
		i := order[rank-1]
		least = math.Min(least, p[i]*float64(len(p))/float64(rank))
		out[i] = least
	}
	return out
}
