package servo

import (
	"math"
	"slices"

	"weft/units"
)

// Bound says how far a synchronized clock may be off, from what its servo saw, in the form of fbclock's window of
// uncertainty: with m = |mean| + spread of the offsets over the last samples it is mean(m) + 4 sd(m), and grows
// from the last sample on by 1.5 times the mean change of the rate, for each second. Spread is one standard deviation
// at fbclock, which adds the accuracy that the grandmaster claims; here nothing is added, and it is four standard
// deviations or the largest deviation.
//
// It bounds what can be seen. A path that is longer one way than the other by a shifts both the clock and what is
// measured by a/2; whoever knows a bound on that has to add it.
type Bound struct {
	offsets, spreads, changes ring
	rates                     ring
	rate                      float64
	rated                     bool
}

// boundWindow is how many samples a Bound looks back. With less than boundFew the spread of a few says little, and
// the bound is wider in proportion.
const (
	boundWindow = 100
	boundFew    = 8
)

// Add takes an offset that was measured, and the rate that followed.
func (b *Bound) Add(offset units.Time, rate float64) {
	b.offsets.add(float64(offset))
	mean, sd := b.offsets.moments()
	b.spreads.add(math.Abs(mean) + max(4*sd, b.offsets.farthest(mean)))
	if b.rated {
		b.changes.add(math.Abs(rate - b.rate))
	}
	b.rates.add(rate)
	b.rate, b.rated = rate, true
}

// steadyWindow is over how many rates at most a frequency is taken that is to last. Ours: what one sample adds to a
// servo's frequency is noise, and more than so many milliseconds ago a warming oscillator had another.
const steadyWindow = 16

// Steady returns the frequency to go on with when no more samples come, and its standard deviation: of the last rates, no
// more than half of them, so that a servo that has just begun is taken by what it knows now. A frequency that
// changes evenly is off by at most 1.8 of these. Zeros when there are no samples.
func (b *Bound) Steady() (rate, sd float64) {
	n := min(steadyWindow, (b.rates.n+1)/2)
	if n == 0 {
		return 0, 0
	}
	for i := range n {
		rate += b.rates.last(i)
	}
	rate /= float64(n)
	for i := range n {
		d := b.rates.last(i) - rate
		sd += float64(d * d)
	}
	return rate, math.Sqrt(sd / float64(n))
}

// Last returns the bound at the last sample and its growth per second. ok is false while less than least samples
// have come, or none.
func (b *Bound) Last(least int) (w units.Time, drift float64, ok bool) {
	if b.spreads.n < max(1, least) {
		return 0, 0, false
	}
	mean, sd := b.spreads.moments()
	change, _ := b.changes.moments()
	few := boundFew / float64(min(b.spreads.n, boundFew))
	return units.Time(math.Ceil(clampFloat(few * (mean + 4*sd)))), 1.5 * change, true
}

// Typical is what offsets usually are within, whatever a few of the last were: four standard deviations, by the median of
// their sizes. 0 when there are none.
func (b *Bound) Typical() units.Time {
	var sizes [boundWindow]float64
	n := b.offsets.n
	for i, x := range b.offsets.v[:n] {
		sizes[i] = math.Abs(x)
	}
	if n == 0 {
		return 0
	}
	slices.Sort(sizes[:n])
	return units.Time(math.Ceil(clampFloat(4 * sizes[n/2] / normalMedian)))
}

// normalMedian is the median size of what is normally distributed, in standard deviations.
const normalMedian = 0.6745

// Samples returns how many offsets it looks back to.
func (b *Bound) Samples() int { return b.offsets.n }

// Reset forgets all samples, as after a step.
func (b *Bound) Reset() { *b = Bound{} }

// ring is the last boundWindow numbers.
type ring struct {
	v    [boundWindow]float64
	n    int
	next int
}

func (r *ring) add(x float64) {
	r.v[r.next] = x
	r.next = (r.next + 1) % boundWindow
	r.n = min(r.n+1, boundWindow)
}

// last returns the number that came i before the last.
func (r *ring) last(i int) float64 { return r.v[(r.next-1-i+2*boundWindow)%boundWindow] }

// moments returns mean and standard deviation; zeros when there is nothing.
func (r *ring) moments() (mean, sd float64) {
	if r.n == 0 {
		return 0, 0
	}
	for _, x := range r.v[:r.n] {
		mean += x
	}
	mean /= float64(r.n)
	for _, x := range r.v[:r.n] {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / float64(r.n))
}

// farthest returns the largest distance from x.
func (r *ring) farthest(x float64) float64 {
	var far float64
	for _, v := range r.v[:r.n] {
		far = max(far, math.Abs(v-x))
	}
	return far
}
