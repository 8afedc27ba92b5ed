package huygens

import (
	"math"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// track is the line that a node believes in, and what it publishes on the way to it.
type track struct {
	target  clocksync.Correction // From, Offset and Rate only
	points  servo.Regression
	bound   servo.Bound
	initial units.Time // bound until results have told more
	results int        // so far
	fitted  int        // of which the target is a line through; 0: it goes by the last one alone
	off     units.Time // by how much the last one found it wrong
	slewEnd units.Time // by the monotonic clock, when what is published has reached the target; Never: it has
}

// warmUp is how many results a line needs to be one.
const warmUp = 4

// before returns the reading of the hardware clock at which the target shows a synchronized time.
func (t *track) before(sync units.Time) units.Time {
	c := t.target
	d := sync - c.At(c.From)
	return c.From + d - units.Time(math.Round(float64(d)*(c.Rate/(1+c.Rate))))
}

// correct takes a result: at the reading x0, the target was ahead by err, and its rate wrong by skew.
func (t *track) correct(x0, err units.Time, skew float64) {
	truth := t.target.At(x0) - err
	rate := (1+t.target.Rate)*math.Exp(-skew) - 1
	f, ok := t.points.Add(x0, truth-x0, 1)
	t.fitted = 0
	next := clocksync.Correction{From: x0, Offset: truth - x0, Rate: rate}
	if ok {
		t.fitted = f.Points
		next = clocksync.Correction{From: f.At, Offset: f.Base + units.Time(math.Round(f.Above)), Rate: f.Slope}
	}
	if next.Check() == nil {
		t.target = next
	}
	t.off = max(err, -err)
	if t.results++; t.results > warmUp { // the first ones say how wrong it was, not how wrong it will be
		t.bound.Add(err, t.target.Rate)
	}
}

// slope is how wrong the target's rate may be when its results are off by up to bound and that of a window by sigma: the
// deviation of a regression's slope, of n points a window apart, or of the slope within one window, four times.
func (t *track) slope(bound, sigma, window units.Time) float64 {
	if n := float64(t.fitted); n > 0 {
		return float64(bound) / float64(window) * math.Sqrt(12/(n*n*n))
	}
	return 4 * float64(sigma) / float64(window) * math.Sqrt(12)
}

// drift is how fast the bound grows, once there are results enough to tell.
func (t *track) drift() (d float64, ok bool) {
	_, d, ok = t.bound.Last(leastResults)
	return d, ok
}

// step moves everything by a step of the hardware clock.
func (t *track) step(by units.Time) {
	t.target.From += by
	t.target.Offset -= by
	t.restart()
}

// restart forgets what results have told.
func (t *track) restart() {
	t.points.Reset()
	t.bound.Reset()
	t.results = 0
}
