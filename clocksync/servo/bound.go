package servo

import (
	"math"
	"slices"

	"weft/units"
)

// Bound estimates how far a synchronized clock may be off from the samples of its servo, in the
// form of fbclock's window of uncertainty. With m = |mean| + spread of the offsets over the last
// samples it is mean(m) + 4 sd(m), and it grows after the last sample by 1.5 times the mean change
// of the rate, per second. In fbclock spread is one standard deviation, and the accuracy that the
// grandmaster claims is added; here nothing is added, and spread is four standard deviations or the
// largest deviation.
//
// It covers only errors that offsets show. Directions of a path whose delays differ by a shift both
// the clock and the measured offset by a/2; a caller that knows a bound of a adds half of it.
type Bound struct {
	offsets ring    // measured offsets, in ps
	spreads ring    // m at each sample
	changes ring    // sizes of the changes of the rate
	rates   ring    // rates after each sample
	rate    float64 // the last rate
	rated   bool    // rate is valid
}

// boundWindow is the number of samples that a Bound remembers. With fewer than boundFew the spread
// is uncertain, and the bound is wider in proportion. Ours.
const (
	boundWindow = 100
	boundFew    = 8
)

// Add adds a measured offset, and the rate that the servo chose then.
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

// steadyWindow is the maximum number of rates that Steady averages. Ours: a single rate is noisy,
// and a warming oscillator had another frequency more than 16 samples ago.
const steadyWindow = 16

// Steady returns the frequency to keep when samples cease, and its standard deviation. It averages
// the last rates, but at most half of all, so that the start of a servo does not count. A frequency
// that changes linearly is off by at most 1.8 of these deviations. Without samples both are 0.
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

// Last returns the bound at the last sample and its growth per second. ok is false with fewer than
// least samples, or none.
func (b *Bound) Last(least int) (w units.Time, drift float64, ok bool) {
	if b.spreads.n < max(1, least) {
		return 0, 0, false
	}
	mean, sd := b.spreads.moments()
	change, _ := b.changes.moments()
	few := boundFew / float64(min(b.spreads.n, boundFew))
	return units.Time(math.Ceil(clampFloat(few * (mean + 4*sd)))), 1.5 * change, true
}

// Typical returns a bound of usual offsets that ignores outliers: four standard deviations,
// estimated by the median of their sizes. Without offsets it is 0.
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

// normalMedian is the median of the absolute value of a normal distribution, in standard
// deviations.
const normalMedian = 0.6745

// Samples returns the number of remembered offsets.
func (b *Bound) Samples() int { return b.offsets.n }

// Reset drops all samples, as after a step.
func (b *Bound) Reset() { *b = Bound{} }

// ring holds the last boundWindow numbers.
type ring struct {
	v    [boundWindow]float64
	n    int // count of numbers
	next int // index of the next one
}

// add adds a number, in place of the oldest if the ring is full.
func (r *ring) add(x float64) {
	r.v[r.next] = x
	r.next = (r.next + 1) % boundWindow
	r.n = min(r.n+1, boundWindow)
}

// last returns the number that was added i before the last one.
func (r *ring) last(i int) float64 { return r.v[(r.next-1-i+2*boundWindow)%boundWindow] }

// moments returns mean and standard deviation, or zeros if the ring is empty.
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
