package servo

import (
	"math"

	"weft/units"
)

// Sizes of the regressions: powers of two from 4 to 64 points.
const (
	sizes    = 5
	smallest = 4
	maxPoint = smallest << (sizes - 1)
)

// smoothing is the weight of a new prediction error in the running mean of a size; the first
// firstErrors are averaged instead. tolerance is the factor by which the error of a larger size may
// exceed the smallest one. All are linuxptp's (linreg.c).
const (
	smoothing   = 0.02
	firstErrors = 10
	tolerance   = 1.05
)

// Regression fits an offset as a line over the local clock, over the last 4, 8, 16, 32 and 64
// points. For each size it tracks the error of predicting the next point, and it returns the line
// of the largest size that predicts nearly as well as the best: many points if noise dominates, few
// if the frequency wanders.
type Regression struct {
	points [maxPoint]point // a ring
	n      int             // number of points, at most maxPoint
	next   int             // index of the next point
	fits   [sizes]fit      // by size
}

// Fit is a line: the offset is Base + Above picoseconds at the reading At, and grows by Slope.
type Fit struct {
	At     units.Time
	Base   units.Time
	Above  float64 // in ps; apart from Base, to keep fractions
	Slope  float64 // relative
	Points int     // number of points of the fit
}

// point is a measured offset at a reading of the local clock.
type point struct {
	local  units.Time
	offset units.Time
}

// fit is the regression of one size.
type fit struct {
	Fit
	err  float64 // running mean of the prediction error, in ps
	errs int     // number of prediction errors
	ok   bool    // Fit is valid
}

// Add adds a point, and returns the line to use, which begins at the point. ok is false with fewer
// than 4 points, or if all have the same reading.
func (r *Regression) Add(local, offset units.Time) (f Fit, ok bool) {
	p := point{local, offset}
	r.judge(p)
	r.points[r.next] = p
	r.next = (r.next + 1) % maxPoint
	r.n = min(r.n+1, maxPoint)
	k := r.choose()
	if k < 0 {
		return Fit{}, false
	}
	return r.fits[k].Fit, true
}

// Reset drops all points.
func (r *Regression) Reset() { *r = Regression{} }

// judge updates the prediction error of each size by a new point.
func (r *Regression) judge(p point) {
	for i := range r.fits {
		f := &r.fits[i]
		if !f.ok {
			continue
		}
		err := math.Abs(float64(p.offset-f.Base) - f.Above - f.Slope*float64(p.local-f.At))
		f.errs++
		if f.errs <= firstErrors {
			f.err += (err - f.err) / float64(f.errs)
		} else {
			f.err += smoothing * (err - f.err)
		}
	}
}

// choose fits every size with enough points, and returns the index of the one to use, or -1.
func (r *Regression) choose() int {
	for i := range r.fits {
		if size := smallest << i; r.n >= size {
			r.solve(&r.fits[i], size)
		}
	}
	best := -1
	for i := range r.fits {
		f := &r.fits[i]
		if f.ok && (best < 0 || f.errs > 0 && f.err < r.fits[best].err) {
			best = i
		}
	}
	if best < 0 {
		return -1
	}
	for i := sizes - 1; i > best; i-- {
		if f := &r.fits[i]; f.ok && f.errs > 0 && f.err <= tolerance*r.fits[best].err {
			return i
		}
	}
	return best
}

// solve fits the last size points by least squares. Sums are relative to the last point,
// so that floats keep picoseconds.
func (r *Regression) solve(f *fit, size int) {
	last := &r.points[(r.next+maxPoint-1)%maxPoint]
	var sx, sy float64
	for i := 1; i <= size; i++ {
		p := &r.points[(r.next+maxPoint-i)%maxPoint]
		sx += float64(p.local - last.local)
		sy += float64(p.offset - last.offset)
	}
	mx, my := sx/float64(size), sy/float64(size)
	var sxx, sxy float64
	for i := 1; i <= size; i++ {
		p := &r.points[(r.next+maxPoint-i)%maxPoint]
		dx := float64(p.local-last.local) - mx
		sxx += dx * dx
		sxy += dx * (float64(p.offset-last.offset) - my)
	}
	if !(sxx > 0) {
		f.ok = false
		return
	}
	slope := sxy / sxx
	f.Fit = Fit{At: last.local, Base: last.offset, Above: my - slope*mx, Slope: slope, Points: size}
	f.ok = true
}
