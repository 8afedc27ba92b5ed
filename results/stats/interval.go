package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"weft/internal/splitmix"
)

// Interval is an estimate and its 95 % confidence interval.
type Interval struct {
	Mean float64 `json:"mean"` // the estimate, which need not be a mean
	Low  float64 `json:"low"`  // the ends of the interval
	High float64 `json:"high"`
	N    int     `json:"n"` // number of values; with one value Low and High equal Mean
}

// MeanInterval returns the mean of values and its 95 % confidence interval by Student's t. The mean
// must be approximately normal, as it is for one value per seed. Without values everything is 0.
func MeanInterval(values []float64) Interval {
	n := len(values)
	m := Mean(values)
	out := Interval{m, m, m, n}
	if n < 2 {
		return out
	}
	var squares float64
	for _, v := range values {
		squares += float64((v - m) * (v - m))
	}
	half := quantileT(float64(n-1), 0.975) * math.Sqrt(squares/float64(n-1)/float64(n))
	out.Low, out.High = m-half, m+half
	return out
}

// resamples is the number of resamples of Bootstrap. It is our choice: with 400 the ends of the
// interval move by less than a tenth of its width.
const resamples = 400

// maxDraws bounds the draws per resample, and with them the time of Bootstrap.
const maxDraws = 20_000

// Bootstrap returns a statistic of values and its 95 % confidence interval by the percentile method
// (B. Efron, Ann. Statist. 7, 1979): how much the statistic would vary if other values were drawn
// from the same distribution. statistic gets values in ascending order and must not keep or change
// them. The result is deterministic. Without values everything is 0.
//
// With more than maxDraws values, each resample draws only maxDraws of them, and the interval is
// narrowed by the square root of the ratio to match the full size.
func Bootstrap(values []float64, statistic func(sorted []float64) float64) Interval {
	n := len(values)
	if n == 0 {
		return Interval{}
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	mid := statistic(sorted)
	out := Interval{mid, mid, mid, n}
	if n < 2 {
		return out
	}
	draws := min(n, maxDraws)
	r := rand.New(rand.NewPCG(uint64(n), splitmix.Gamma))
	drawn := make([]float64, draws)
	results := make([]float64, resamples)
	for i := range results {
		for k := range drawn {
			drawn[k] = sorted[r.IntN(n)]
		}
		slices.Sort(drawn)
		results[i] = statistic(drawn)
	}
	slices.Sort(results)
	narrow := math.Sqrt(float64(draws) / float64(n))
	out.Low = mid + (Quantile(results, 0.025)-mid)*narrow
	out.High = mid + (Quantile(results, 0.975)-mid)*narrow
	return out
}
