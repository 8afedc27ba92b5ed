package huygens

import (
	"math"

	"weft/units"
)

// The line between two clouds of points. Let delta(x) be how far the other clock is ahead when the
// own one shows x. It is below every forward point u (arrival there minus departure here: delta +
// delay) and above every reverse point v (departure there minus arrival here: delta - delay). A
// support vector machine finds the line with the widest margin m to both clouds. With the margin
// measured vertically, and penalties of 1/(2k) and 1/(2l) for points within it, that is the linear
// program
//
//	maximise    m - sum xi / 2k - sum eta / 2l
//	subject to  u_i >= alpha x_i + beta + m - xi_i,  xi >= 0
//	            v_j <= alpha x_j + beta - m + eta_j, eta >= 0
//
// Its solution needs no solver: alpha maximises the concave function
//
//	g(alpha) = 1/2 (mean of the k smallest u - alpha x  -  mean of the l largest v - alpha x)
//
// and beta is half the sum of the two means there; g is the margin: half of a round trip. With k =
// l = 1 the margin is hard: the narrowest gap between the hulls. Larger k and l average the noise
// of stamps, but include more queueing. The noise shifts the mean of the k smallest of n points by
// an amount that depends on k/n, so k and l are the same share of their clouds: both shift alike.

// point is a probe that passed the filter: x by the own clock, y how far the other one seems ahead.
type point struct {
	x, y units.Time
}

// line is a fitted line: delta = beta + alpha (x - x0).
type line struct {
	alpha float64
	beta  units.Time // at x0
	half  units.Time // half of the shortest round trip
	sigma units.Time // standard deviation of beta, from the spread of the points
}

// relative is a point relative to a nearby one, in ps, and its residual r = y - alpha x.
type relative struct{ x, y, r float64 }

// fitter keeps the buffers of fits.
type fitter struct {
	upper, lower []relative
}

// resolution is the accuracy of the slope, as the shift of the line at the ends of the points, in
// ps.
const resolution = 0.02

// fit returns the line between forward points (upper) and reverse ones (lower), which uses k of the
// former and l of the latter, at least 1 and at most all. Its slope is in [low, high], found by
// bisection of the derivative of g.
func (f *fitter) fit(upper, lower []point, k, l int, x0 units.Time, low, high float64) line {
	base := upper[0].y
	f.upper = place(f.upper[:0], upper, x0, base, 1)
	f.lower = place(f.lower[:0], lower, x0, base, -1) // mirrored: the largest become the smallest
	span := 1.0
	for _, p := range f.upper {
		span = max(span, math.Abs(p.x))
	}
	for _, p := range f.lower {
		span = max(span, math.Abs(p.x))
	}
	for (high-low)*span > resolution {
		alpha := low + (high-low)/2
		up, down := lowest(f.upper, k, alpha), lowest(f.lower, l, alpha)
		// The derivative of g. Lower points are mirrored, so their x has the opposite sign.
		if -down.x-up.x > 0 {
			low = alpha
		} else {
			high = alpha
		}
	}
	alpha := low + (high-low)/2
	up, down := lowest(f.upper, k, alpha), lowest(f.lower, l, alpha)
	return line{
		alpha: alpha,
		beta:  base + units.Time(math.Round((up.y-down.y)/2)),
		half:  units.Time(math.Round((up.y + down.y) / 2)),
		sigma: units.Time(math.Ceil(math.Sqrt((up.v/float64(k) + down.v/float64(l)) / 4))),
	}
}

// place returns points relative to x0 and base, mirrored with sign -1.
func place(to []relative, points []point, x0, base units.Time, sign float64) []relative {
	for _, p := range points {
		to = append(to, relative{x: sign * float64(p.x-x0), y: sign * float64(p.y-base)})
	}
	return to
}

// rest are the statistics of the k points that a line rests on.
type rest struct {
	x, y float64 // means of x, and of y - alpha x
	v    float64 // variance of y - alpha x
}

// lowest returns the means over the k points with the smallest y - alpha x.
func lowest(p []relative, k int, alpha float64) rest {
	for i := range p {
		p[i].r = p[i].y - alpha*p[i].x
	}
	selectSmallest(p, k)
	var m rest
	for _, q := range p[:k] {
		m.x += q.x
		m.y += q.r
	}
	m.x /= float64(k)
	m.y /= float64(k)
	for _, q := range p[:k] {
		m.v += (q.r - m.y) * (q.r - m.y)
	}
	m.v /= float64(k)
	return m
}

// selectSmallest moves the k points with the smallest r to the front (Hoare's FIND).
func selectSmallest(p []relative, k int) {
	for low, high := 0, len(p)-1; low < high; {
		pivot := middle(p[low].r, p[low+(high-low)/2].r, p[high].r)
		i, j := low, high
		for i <= j {
			for p[i].r < pivot {
				i++
			}
			for p[j].r > pivot {
				j--
			}
			if i <= j {
				p[i], p[j] = p[j], p[i]
				i++
				j--
			}
		}
		switch {
		case k-1 <= j:
			high = j
		case k-1 >= i:
			low = i
		default:
			return
		}
	}
}

// middle returns the median of three numbers.
func middle(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }
