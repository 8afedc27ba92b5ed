package stats

import (
	"cmp"
	"math"
	"slices"
)

// exactSize is the largest sample for which MannWhitney counts all arrangements. It is our choice.
const exactSize = 20

// MannWhitney returns the two-sided p-value of the U test (H. B. Mann and D. R. Whitney, Ann. Math.
// Statist. 18, 1947) for the hypothesis that a and b come from the same distribution. It assumes
// nothing about the distribution. It is exact if both samples have at most exactSize values;
// otherwise it uses the normal approximation with corrections for ties and continuity. If a sample
// is empty it is 1.
func MannWhitney(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	ranks, sum, ties := rank(a, b)
	if len(a) <= exactSize && len(b) <= exactSize {
		return exact(ranks, len(a), sum)
	}
	n1, n2 := float64(len(a)), float64(len(b))
	u := float64(sum)/2 - n1*(n1+1)/2
	n := n1 + n2
	variance := n1 * n2 / 12 * (n + 1 - ties/(n*(n-1)))
	if variance <= 0 {
		return 1 // all values are equal
	}
	z := (math.Abs(u-n1*n2/2) - 0.5) / math.Sqrt(variance)
	return math.Min(1, math.Erfc(math.Max(z, 0)/math.Sqrt2))
}

// MinMannWhitney returns the smallest p-value that MannWhitney can return for samples of n and m
// values without ties: that of samples that do not overlap. Above the significance level, no
// difference can be shown with so few values.
func MinMannWhitney(n, m int) float64 {
	p := 2.0
	for i := 1; i <= n; i++ { // n! m! / (n + m)!
		p *= float64(i) / float64(m+i)
	}
	return math.Min(1, p)
}

// rank returns twice the rank of every value of a and b in ascending order, which equal values
// share, the sum of those of a, and the sum of t^3 - t over all groups of t equal values.
func rank(a, b []float64) (ranks []int, sum int, ties float64) {
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
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && all[end].v == all[i].v {
			end++
		}
		t, twice := float64(end-i), i+1+end
		for ; i < end; i++ {
			if ranks = append(ranks, twice); all[i].first {
				sum += twice
			}
		}
		ties += t*t*t - t
	}
	return ranks, sum, ties
}

// exact returns the probability that n of all ranks, drawn without replacement, have a sum at least
// as far from its mean as sum is.
func exact(ranks []int, n, sum int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	// draws[k][s] counts the possibilities to draw k of the ranks so far with a sum of s.
	draws := make([][]float64, n+1)
	for k := range draws {
		draws[k] = make([]float64, total+1)
	}
	draws[0][0] = 1
	for i, r := range ranks {
		for k := min(i+1, n); k > 0; k-- {
			for s := total; s >= r; s-- {
				draws[k][s] += draws[k-1][s-r]
			}
		}
	}
	// Distances from the mean, times the number of ranks, are integers.
	distance := func(s int) int { return max(s*len(ranks)-n*total, n*total-s*len(ranks)) }
	var far, all float64
	for s, count := range draws[n] {
		if all += count; distance(s) >= distance(sum) {
			far += count
		}
	}
	return far / all
}

// normalHalf is half the width of a 95 % confidence interval of a normal variable, in standard
// errors.
const normalHalf = 1.959963984540054

// ZTest returns the two-sided p-value for the hypothesis that two estimates have the same true
// value, from their 95 % confidence intervals. It takes the estimates as normal and z as their
// distance in standard errors of the difference. If neither interval has a width, the p-value is 1
// for equal estimates and 0 for others.
func ZTest(a, b Interval) float64 {
	d := math.Abs(a.Mean - b.Mean)
	if d == 0 {
		return 1
	}
	e := math.Hypot(a.High-a.Low, b.High-b.Low) / (2 * normalHalf)
	return math.Erfc(d / e / math.Sqrt2)
}

// PredictionTest returns the two-sided p-value for the hypothesis that v comes from the same normal
// distribution as others. The statistic is that of a prediction interval: with n others, their mean
// m and their standard deviation s, t = (v - m) / (s sqrt(1 + 1/n)) with n - 1 degrees of freedom.
// With fewer than two others it is 1.
func PredictionTest(v float64, others []float64) float64 {
	n := float64(len(others))
	if n < 2 || v == Mean(others) {
		return 1
	}
	i := MeanInterval(others)
	e := (i.High - i.Low) / 2 / quantileT(n-1, 0.975) * math.Sqrt(n+1) // s/sqrt(n), times sqrt(n+1): s sqrt(1 + 1/n)
	return math.Min(1, 2*survivalT(n-1, math.Abs(v-i.Mean)/e))
}

// BenjaminiHochberg returns the p-values p adjusted for the number of tests (Y. Benjamini and Y.
// Hochberg, J. R. Statist. Soc. B 57, 1995). Rejecting those that are at most q keeps the false
// discovery rate at q: over many comparisons, at most that ratio of the rejections is due to
// chance. It is valid for tests that are independent or positively correlated, as percentiles and
// means of the same flows are. The result has the order of p.
func BenjaminiHochberg(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(p[i], p[k]) })
	out := make([]float64, len(p))
	lowest := 1.0
	for rank := len(p); rank > 0; rank-- {
		i := order[rank-1]
		lowest = math.Min(lowest, p[i]*float64(len(p))/float64(rank))
		out[i] = lowest
	}
	return out
}
