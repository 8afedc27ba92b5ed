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
// nothing about the distribution. It is exact if both samples have at most exactSize values and no
// two values are equal; otherwise it uses the normal approximation with corrections for ties and
// continuity. If a sample is empty it is 1.
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

// rankSum returns the U statistic of a, and the sum of t^3 - t over all groups of t equal values,
// which the correction for ties needs.
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

// exact returns the two-sided p-value of a U statistic of u, the smaller of both sides, from the
// distribution of U over all arrangements of n and m values.
func exact(n, m, u int) float64 {
	// arrangements[k][v] counts the arrangements with U = v that have k values of the first sample
	// among the values so far.
	arrangements := make([][]float64, n+1)
	for k := range arrangements {
		arrangements[k] = make([]float64, n*m+1)
	}
	arrangements[0][0] = 1
	for i := 1; i <= n+m; i++ {
		for k := min(i, n); k > 0; k-- {
			before := i - k // values of the other sample below the k-th
			if before > m {
				continue
			}
			for v := n * m; v >= before; v-- {
				arrangements[k][v] += arrangements[k-1][v-before]
			}
		}
	}
	var below, total float64
	for v, count := range arrangements[n] {
		total += count
		if v <= u {
			below += count
		}
	}
	return math.Min(1, 2*below/total)
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
