package stats

import (
	"cmp"
	"math"
	"slices"

	"weft/results/record"
)

// Number is what statistics can be made of.
type Number interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64 | ~float64
}

// Quantile returns the nearest-rank q-quantile of values in ascending order: the smallest value such that at
// least the share q of all values is not above it. It is always one of the values. q is limited to [0, 1];
// of no values the quantile is 0.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	var zero T
	if len(sorted) == 0 {
		return zero
	}
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9)) // 0.99*100 is a little above 99 in binary
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Mean returns the arithmetic mean; 0 of no values.
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

// Describe returns mean, median, 99th percentile and maximum of values, each divided by unit: with times in
// picoseconds and a unit of units.Microsecond, the answer is in microseconds. It sorts values in place.
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

// Jain returns Jain's fairness index of the shares: 1 when all are equal, 1/n when one has everything.
// Of no values, or of zeros alone, it is 1: nobody has more than another. R. Jain et al., DEC-TR-301 (1984).
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
