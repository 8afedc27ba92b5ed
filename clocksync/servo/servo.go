package servo

import (
	"fmt"
	"math"

	"weft/units"
)

// Sample is one measurement.
type Sample struct {
	Local  units.Time // reading of the hardware clock when it was made
	Sync   units.Time // synchronized time of this node at that reading
	Offset units.Time // Sync minus the time of the reference
	Weight float64    // how far to trust it, in (0, 1]; anything else counts as 1
}

// State says what a servo made of a sample.
type State uint8

// States.
const (
	Unlocked State = iota // it knows too little: the line stays as it is
	Jump                  // the line steps by minus the offset of the sample and takes the rate
	Locked                // the line takes the rate
)

// String names the state.
func (s State) String() string {
	switch s {
	case Unlocked:
		return "unlocked"
	case Jump:
		return "jump"
	case Locked:
		return "locked"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Servo decides on the rate of a line. It is not safe for concurrent use.
type Servo interface {
	// Update takes a sample and returns the rate for the line. A sample whose reading does not lie after that of
	// the last one is of a clock that was stepped: it is the first of a new start.
	Update(s Sample) (rate float64, st State)
	// Holdover is the rate to keep when samples cease: that of the reference, without what was correcting an offset.
	Holdover() float64
	// RateRatio is how many seconds of the reference pass in a second of the synchronized clock, as far as the
	// servo knows: 1 otherwise.
	RateRatio() float64
	// Reset forgets everything but the rate.
	Reset()
	// Restart does as Reset, and the next decision is the first again: of a reference that has nothing to do with the last one.
	Restart()
}

// Limits say when a clock is stepped and how fast it may be made to run.
type Limits struct {
	// FirstStep is the offset above which the first decision steps the clock; 0: never.
	FirstStep units.Time
	// Step is the offset above which a later sample makes the servo start again, and step; 0: never.
	Step units.Time
	// MaxRate bounds the rate, either way; above 0.
	MaxRate float64
	// MaxDrift bounds the part of it that is the oscillator's error; 0: as MaxRate.
	MaxDrift float64
}

// DefaultLimits step above 1 us first and above 10 us later, and correct up to 500 ppm: ours, for lab time. Those
// of PTP programs for real time are 20 us, never, and 900,000 ppm.
func DefaultLimits() Limits {
	return Limits{FirstStep: units.Microsecond, Step: 10 * units.Microsecond, MaxRate: 500e-6}
}

// Check returns what is wrong with l.
func (l Limits) Check() error {
	switch {
	case l.FirstStep < 0:
		return fmt.Errorf("servo: first step threshold %v is negative", l.FirstStep)
	case l.Step < 0:
		return fmt.Errorf("servo: step threshold %v is negative", l.Step)
	case !(l.MaxRate > 0 && l.MaxRate < 1):
		return fmt.Errorf("servo: largest rate %v is not in (0, 1)", l.MaxRate)
	case !(l.MaxDrift >= 0 && l.MaxDrift < 1):
		return fmt.Errorf("servo: largest drift %v is not in [0, 1)", l.MaxDrift)
	}
	return nil
}

// exceeds says whether an offset is worth a step: against the first threshold before the first decision.
func (l Limits) exceeds(offset units.Time, first bool) bool {
	size := max(offset, -offset)
	return first && l.FirstStep > 0 && size > l.FirstStep || l.Step > 0 && size > l.Step
}

// clamp keeps a rate within the limits and says whether it was.
func (l Limits) clamp(rate float64) (float64, bool) {
	switch {
	case rate > l.MaxRate:
		return l.MaxRate, false
	case rate < -l.MaxRate:
		return -l.MaxRate, false
	}
	return rate, true
}

// frequency keeps an estimate of the oscillator's error within the limits.
func (l Limits) frequency(drift float64) float64 {
	if l.MaxDrift > 0 {
		l.MaxRate = min(l.MaxRate, l.MaxDrift)
	}
	drift, _ = l.clamp(drift)
	return drift
}

// weight returns the weight of a sample.
func (s *Sample) weight() float64 {
	if s.Weight > 0 && s.Weight <= 1 {
		return s.Weight
	}
	return 1
}

// Gains are the shares of an offset that are corrected until the next sample: P at once, I as a lasting change of
// the rate. With T between samples they are kp T and ki T.
type Gains struct {
	P, I float64
}

// Stable reports whether a loop with these gains settles: the roots of z^2 - (2-P-I) z + (1-P) lie within the
// unit circle.
func (g Gains) Stable() bool { return g.P > 0 && g.P < 2 && g.I > 0 && 2*g.P+g.I < 4 }

// DefaultGains are what linuxptp uses at one sample per second.
func DefaultGains() Gains { return Gains{P: 0.7, I: 0.3} }

// Tuned returns gains near the optimum for a jitter of the measured offsets and a random walk of the frequency
// (wander, per square root of a second), by the rule of linuxptp-testsuite 17 made free of scale: with
// J = jitter / (wander T^1.5), P = min(0.7, 1.5/sqrt J) and I = min(0.3, 1.2/J). Without wander, or with an unknown
// one, give the smallest that is plausible: gains only go to 0 with it. Values that are not above 0 give
// DefaultGains.
func Tuned(jitter units.Time, wander float64, interval units.Time) Gains {
	g := DefaultGains()
	if jitter <= 0 || !(wander > 0) || interval <= 0 {
		return g
	}
	j := jitter.Seconds() / (wander * math.Pow(interval.Seconds(), 1.5))
	if math.IsInf(j, 0) {
		j = math.MaxFloat64
	}
	return Gains{P: min(g.P, 1.5/math.Sqrt(j)), I: min(g.I, 1.2/j)}
}
