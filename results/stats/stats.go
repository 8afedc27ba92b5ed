package stats

import (
	"cmp"
	"math"
	"slices"

	"weft/results/record"
)

// Number lists the types of values that statistics take.
type Number interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64 | ~float64
}

// Quantile returns the nearest-rank q-quantile of values in ascending order: the smallest value
// such that at least the fraction q of all values is at most that. It is always one of the values.
// q is clamped to [0, 1]. Without values the quantile is 0.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	var zero T
	if len(sorted) == 0 {
		return zero
	}
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9)) // tolerate rounding: 0.07*100 is above 7 in binary
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Mean returns the arithmetic mean, or 0 without values.
func Mean[T Number](values []T) float64 {
	if len(values) == 0 {
		return 0
	}
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(len(values))
}

// Describe returns mean, median, 99th percentile and maximum of values, each divided by unit: for
// times in picoseconds and a unit of units.Microsecond they are in microseconds. It sorts values in
// place. Without values all are 0.
func Describe[T Number](values []T, unit float64) record.Quantiles {
	if len(values) == 0 {
		return record.Quantiles{}
	}
	slices.Sort(values)
	return record.Quantiles{
		Mean: Mean(values) / unit,
		P50:  float64(Quantile(values, 0.50)) / unit,
		P99:  float64(Quantile(values, 0.99)) / unit,
		Max:  float64(values[len(values)-1]) / unit,
	}
}

// Jain returns Jain's fairness index of n shares (R. Jain et al., DEC-TR-301, 1984): 1 if all are
// equal, 1/n if one has everything. Without shares, and if all are 0, it is 1, since nobody has
// more than another.
func Jain[T Number](shares []T) float64 {
	var sum, squares float64
	for _, v := range shares {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}
