package servo

import (
	"fmt"

	"weft/units"
)

// Sample is one measurement.
type Sample struct {
	Local  units.Time // reading of the hardware clock
	Sync   units.Time // synchronized time of this node at that reading
	Offset units.Time // Sync minus the time of the reference
}

// State is a servo's decision about a sample.
type State uint8

// States.
const (
	Unlocked State = iota // too few samples: the line stays as it is
	Jump                  // the line steps by minus the offset of the sample, and takes the rate
	Locked                // the line takes the rate
)

// String returns the name of the state.
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

// Servo decides the rate of a line. It is not safe for concurrent use.
type Servo interface {
	// Update returns the rate for the line after a sample. A reading that is not after the last one
	// means that the clock was stepped: the servo starts again with that sample.
	Update(s Sample) (rate float64, st State)
	// Holdover returns the rate to keep when samples cease: that of the reference, without the
	// correction of an offset.
	Holdover() float64
	// RateRatio returns the rate of the reference relative to the synchronized clock, or 1 if it is
	// unknown.
	RateRatio() float64
	// Reset drops everything except the rate.
	Reset()
	// Restart is Reset for another reference: the next decision is again the first.
	Restart()
}

// Limits bound the steps and the rates of a clock.
type Limits struct {
	// FirstStep is the offset above which the first decision steps the clock; 0: never.
	FirstStep units.Time
	// Step is the offset above which a later sample restarts the servo, which then steps; 0: never.
	Step units.Time
	// MaxRate bounds the size of the rate; above 0.
	MaxRate float64
	// MaxDrift bounds the part of the rate that corrects the oscillator's error; 0: MaxRate.
	MaxDrift float64
}

// DefaultLimits returns limits for lab time: a first step above 1 us, later ones above 10 us, rates
// of up to 500 ppm. Ours; those of linuxptp for real time are 20 us, never, and 900,000 ppm.
func DefaultLimits() Limits {
	return Limits{FirstStep: units.Microsecond, Step: 10 * units.Microsecond, MaxRate: 500e-6}
}

// Check returns the first thing wrong with l, or nil.
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

// exceeds reports whether an offset is to be stepped. first is true for the first decision.
func (l Limits) exceeds(offset units.Time, first bool) bool {
	size := max(offset, -offset)
	return first && l.FirstStep > 0 && size > l.FirstStep || l.Step > 0 && size > l.Step
}

// clamp limits a rate, and reports whether it was within the limits.
func (l Limits) clamp(rate float64) (float64, bool) {
	switch {
	case rate > l.MaxRate:
		return l.MaxRate, false
	case rate < -l.MaxRate:
		return -l.MaxRate, false
	}
	return rate, true
}

// frequency limits an estimate of the oscillator's error.
func (l Limits) frequency(drift float64) float64 {
	if l.MaxDrift > 0 {
		l.MaxRate = min(l.MaxRate, l.MaxDrift)
	}
	drift, _ = l.clamp(drift)
	return drift
}

// Gains are the shares of an offset that are corrected until the next sample: P for that sample
// only, I as a lasting change of the rate. With an interval T they are kp T and ki T.
type Gains struct {
	P, I float64
}

// Stable reports whether a loop with these gains settles: the roots of z^2 - (2-P-I) z + (1-P) are
// within the unit circle.
func (g Gains) Stable() bool { return g.P > 0 && g.P < 2 && g.I > 0 && 2*g.P+g.I < 4 }

// DefaultGains returns linuxptp's gains at one sample per second.
func DefaultGains() Gains { return Gains{P: 0.7, I: 0.3} }
