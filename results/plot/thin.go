package plot

import (
	"math"
	"slices"
)

// most is the largest number of points of a series that is drawn: more than a line has pixels.
// Ours.
const most = 1000

// CDF returns the distribution of values: for each value, the share of values that are not above
// it. For many values it has the quantiles at a thousand evenly spaced shares and, to show the
// tail, those at 99.9 % and above; each is one of the given values. If all values are equal it is
// a step from half of that to twice that, since a line of one place would not be seen. It sorts
// values in place and leaves out NaNs.
func CDF(name string, values []float64) Series {
	slices.Sort(values)
	first := 0
	for first < len(values) && math.IsNaN(values[first]) {
		first++ // slices.Sort puts them first
	}
	values = values[first:]
	s := Series{Name: name, Steps: true}
	n := len(values)
	if n == 0 {
		return s
	}
	s.X, s.Y = append(s.X, values[0]), append(s.Y, 0)
	last := 0 // rank that was drawn
	draw := func(rank int) {
		if rank > last {
			s.X, s.Y, last = append(s.X, values[rank-1]), append(s.Y, float64(rank)/float64(n)), rank
		}
	}
	for k := 1; k < most; k++ {
		draw(int(int64(n) * int64(k) / most))
	}
	for left := n / most; left > 0; left /= 2 {
		draw(n - left)
	}
	draw(n)
	return s.Widened()
}

// Widened returns a distribution, and one of a single value as a step: see CDF.
func (s Series) Widened() Series {
	if n := len(s.X); n > 0 && s.X[0] == s.X[n-1] {
		v := s.X[0]
		s.X, s.Y = []float64{v / 2, v, v, 2 * v}, []float64{0, 0, 1, 1}
	}
	return s
}

// Thin reduces a series in ascending X to its visible points: of each of 500 intervals of X it
// keeps the first, the last, the lowest and the highest point, so that no peak is lost. A short
// series is returned unchanged. Low and High follow their points.
func Thin(s Series) Series {
	n := len(s.X)
	if n <= 2*most {
		return s
	}
	const stretches = most / 2
	from, width := s.X[0], (s.X[n-1]-s.X[0])/stretches
	var keep []int
	for i := 0; i < n; {
		end := i + 1
		low, high := i, i
		part := stretch(s.X[i], from, width)
		for ; end < n && stretch(s.X[end], from, width) == part; end++ {
			if s.Y[end] < s.Y[low] {
				low = end
			}
			if s.Y[end] > s.Y[high] {
				high = end
			}
		}
		part4 := []int{i, low, high, end - 1}
		slices.Sort(part4)
		keep = append(keep, slices.Compact(part4)...)
		i = end
	}
	pick := func(v []float64) []float64 {
		if v == nil {
			return nil
		}
		out := make([]float64, len(keep))
		for k, i := range keep {
			out[k] = v[i]
		}
		return out
	}
	s.X, s.Y, s.Low, s.High = pick(s.X), pick(s.Y), pick(s.Low), pick(s.High)
	return s
}

// stretch returns the interval of an axis that contains a value.
func stretch(v, from, width float64) int {
	if width <= 0 {
		return 0
	}
	return int((v - from) / width)
}
