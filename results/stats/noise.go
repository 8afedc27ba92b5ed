package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate and the ends of its 95 % confidence interval.
type Interval struct {
	Mean, Low, High float64
	N               int // values that it is made of; of one value Low and High are the mean
}

// MeanInterval returns the mean of values and its 95 % confidence interval by Student's t, for values whose mean is about
// normal: one value of each seed, say. Of no values everything is 0.
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
	half := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975) * math.Sqrt(squares/float64(n-1)/float64(n))
	out.Low, out.High = m-half, m+half
	return out
}

// exactSize is up to how many values on each side MannWhitney counts all arrangements. Ours.
const exactSize = 20

// MannWhitney returns the two-sided p-value that a and b are of one distribution: the probability that ranks as far apart
// as these come of chance. H. B. Mann and D. R. Whitney, Ann. Math. Statist. 18 (1947). It is exact for up to 20 values on
// each side without ties, and by the normal approximation with corrections for ties and continuity otherwise. Without values
// on a side it is 1.
func MannWhitney(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	u, ties := rankSum(a, b)
	n1, n2 := float64(len(a)), float64(len(b))
	if ties == 0 && len(a) <= exactSize && len(b) <= exactSize {
		return exact(len(a), len(b), int(math.Min(u, n1*n2-u)))
	}
	n := n1 + n2
	variance := n1 * n2 / 12 * (n + 1 - ties/(n*(n-1)))
	if variance <= 0 {
		return 1 // all values are equal
	}
	z := (math.Abs(u-n1*n2/2) - 0.5) / math.Sqrt(variance)
	return math.Min(1, math.Erfc(math.Max(z, 0)/math.Sqrt2))
}

// LeastMannWhitney returns the least p that MannWhitney gives for n and m values without ties: of two sides that do not overlap.
func LeastMannWhitney(n, m int) float64 {
	p := 2.0
	for i := 1; i <= n; i++ { // n! m! / (n + m)!
		p *= float64(i) / float64(m+i)
	}
	return math.Min(1, p)
}

// rankSum returns Mann and Whitney's U of a, and the sum of t^3 - t over all groups of t equal values.
func rankSum(a, b []float64) (u, ties float64) {
	type ranked struct {
		v     float64
		first bool
	}
	all := make([]ranked, 0, len(a)+len(b))
	for _, v := range a {
		all = append(all, ranked{v, true})
	}
	for _, v := range b {
		all = append(all, ranked{v, false})
	}
	slices.SortFunc(all, func(x, y ranked) int { return cmp.Compare(x.v, y.v) })
	var sum float64
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && all[end].v == all[i].v {
			end++
		}
		rank := float64(i+1+end) / 2
		for ; i < end; i++ {
			if all[i].first {
				sum += rank
			}
		}
		t := float64(0)
		for k := end - 1; k >= 0 && all[k].v == all[end-1].v; k-- {
			t++
		}
		ties += t*t*t - t
	}
	return sum - float64(len(a))*float64(len(a)+1)/2, ties
}

// exact is the two-sided probability of a U of u or less among all arrangements of n and m values.
func exact(n, m, u int) float64 {
	// ways[k][v] counts the arrangements of k values of the first side among those looked at so far that have U = v.
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for i := 1; i <= n+m; i++ {
		for k := min(i, n); k > 0; k-- {
			before := i - k // values of the other side below the k-th
			if before > m {
				continue
			}
			for v := n * m; v >= before; v-- {
				ways[k][v] += ways[k-1][v-before]
			}
		}
	}
	var below, total float64
	for v, w := range ways[n] {
		total += w
		if v <= u {
			below += w
		}
	}
	return math.Min(1, 2*below/total)
}

// resamples is how often Bootstrap draws. Ours: the ends of the interval move by less than a tenth of its width.
const resamples = 400

// Bootstrap returns a statistic of values with its 95 % confidence interval by the percentile method (B. Efron, Ann.
// Statist. 7, 1979): how far it would differ had other values of the same distribution been drawn. It is the same for the same
// values. Of more than 20,000 values, that many draws are made for each resample, and the interval is narrowed accordingly.
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
	const most = 20_000
	draws := min(n, most)
	r := rand.New(rand.NewPCG(uint64(n), 0x9e3779b97f4a7c15))
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
