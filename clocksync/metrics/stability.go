// Package metrics measures clocks: the stability of one clock against true time, and the
// differences between many.
//
//	Series        OADEV, MDEV, TDEV and MTIE of the time errors of one clock
//	Compare       the largest difference between two nodes, and whether their bounds cover it
//	Convergence   since when all differences are within a limit
//	Classes       limits of ITU-T G.8273.2, for comparison
//
// In come time errors at equal intervals of true time; out go deviations in the unit of the errors.
// The formulas are those of NIST SP 1065, sections 5.2 to 5.6 and 5.8. It is pure.
package metrics

import "math"

// A Series is a sequence of time errors x(0), x(tau0), x(2 tau0) and so on, in any unit of time.
type Series struct {
	X    []float64
	Tau0 float64 // interval, above 0, in the same unit
}

// OADEV returns the overlapping Allan deviation at tau = m tau0, from all intervals. It is NaN if
// there are too few.
func (s Series) OADEV(m int) float64 {
	if m < 1 {
		return math.NaN()
	}
	sum, n := 0.0, 0
	for i := 0; i+2*m < len(s.X); i++ {
		d := s.X[i+2*m] - 2*s.X[i+m] + s.X[i]
		sum += float64(d * d)
		n++
	}
	if n == 0 {
		return math.NaN()
	}
	tau := float64(m) * s.Tau0
	return math.Sqrt(sum/(2*float64(n))) / tau
}

// MDEV returns the modified Allan deviation at tau = m tau0, which distinguishes white from flicker
// noise of the phase. It is NaN if there are too few samples.
func (s Series) MDEV(m int) float64 {
	n := len(s.X) - 3*m + 1
	if m < 1 || n < 1 {
		return math.NaN()
	}
	second := 0.0 // sum of m second differences, updated as the window moves
	for i := range m {
		second += s.X[i+2*m] - 2*s.X[i+m] + s.X[i]
	}
	sum := float64(second * second)
	for j := 1; j < n; j++ {
		second += s.X[j+3*m-1] - 3*s.X[j+2*m-1] + 3*s.X[j+m-1] - s.X[j-1]
		sum += float64(second * second)
	}
	tau := float64(m) * s.Tau0
	return math.Sqrt(sum/(2*float64(n))) / (float64(m) * tau)
}

// TDEV returns the time deviation at tau = m tau0: the modified Allan deviation times tau /
// sqrt(3).
func (s Series) TDEV(m int) float64 {
	return float64(m) * s.Tau0 / math.Sqrt(3) * s.MDEV(m)
}

// MTIE returns the maximum time interval error: the largest change of the error within any window
// of m tau0. It is NaN if the series is shorter.
func (s Series) MTIE(m int) float64 {
	if m < 1 || m >= len(s.X) {
		return math.NaN()
	}
	// Indices of the candidates for the maximum and the minimum of a window, in order.
	var high, low []int
	most := 0.0
	for i, x := range s.X {
		for len(high) > 0 && s.X[high[len(high)-1]] <= x {
			high = high[:len(high)-1]
		}
		for len(low) > 0 && s.X[low[len(low)-1]] >= x {
			low = low[:len(low)-1]
		}
		high, low = append(high, i), append(low, i)
		if high[0] < i-m {
			high = high[1:]
		}
		if low[0] < i-m {
			low = low[1:]
		}
		if i >= m {
			most = max(most, s.X[high[0]]-s.X[low[0]])
		}
	}
	return most
}
