package huygens

import (
	"math"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// track is the line through a node's results. The published correction is slewed toward it.
type track struct {
	target  clocksync.Correction // the line; From, Offset and Rate only
	points  servo.Regression     // synchronized time minus hardware clock, one point per result
	bound   servo.Bound
	initial units.Time // bound before the first results
	results int        // number of results
	fitted  int        // number of results in the line; 0: it follows the last one alone
	lastErr units.Time // size of the last error
	slewEnd units.Time // when the slew reaches the target, by the monotonic clock; Never: it has
}

// warmUp is the number of results before the errors count for the bound.
const warmUp = 4

// readingAt returns the reading of the hardware clock at which the target shows the time sync.
func (t *track) readingAt(sync units.Time) units.Time {
	c := t.target
	d := sync - c.At(c.From)
	return c.From + d - units.Time(math.Round(float64(d)*(c.Rate/(1+c.Rate))))
}

// correct applies a result: at the reading x0 the target was ahead by err, and its rate too high by
// skew.
func (t *track) correct(x0, err units.Time, skew float64) {
	truth := t.target.At(x0) - err
	rate := (1+t.target.Rate)*math.Exp(-skew) - 1
	f, ok := t.points.Add(x0, truth-x0)
	t.fitted = 0
	next := clocksync.Correction{From: x0, Offset: truth - x0, Rate: rate}
	if ok {
		t.fitted = f.Points
		next = clocksync.Correction{From: f.At, Offset: f.Base + units.Time(math.Round(f.Above)), Rate: f.Slope}
	}
	if next.Check() == nil {
		t.target = next
	}
	t.lastErr = max(err, -err)
	if t.results++; t.results > warmUp { // the first errors are those of the start
		t.bound.Add(err, t.target.Rate)
	}
}

// slope returns a bound of the error of the target's rate. For a line through n results, with
// errors up to bound, it is the deviation of a regression's slope through n points a window apart;
// for a single result, four times the deviation of the slope within a window, from sigma.
func (t *track) slope(bound, sigma, window units.Time) float64 {
	if n := float64(t.fitted); n > 0 {
		return float64(bound) / float64(window) * math.Sqrt(12/(n*n*n))
	}
	return 4 * float64(sigma) / float64(window) * math.Sqrt(12)
}

// drift returns the growth of the bound; ok is false before there are enough results.
func (t *track) drift() (d float64, ok bool) {
	_, d, ok = t.bound.Last(minResults)
	return d, ok
}

// step moves the target by a step of the hardware clock, and restarts.
func (t *track) step(by units.Time) {
	t.target.From += by
	t.target.Offset -= by
	t.restart()
}

// restart forgets all results.
func (t *track) restart() {
	t.points.Reset()
	t.bound.Reset()
	t.results = 0
}
