// Package labtime converts between the machine's monotonic clock and lab time, for the processes of
// an emulated lab.
//
// Lab time is (CLOCK_MONOTONIC - t0) / dilation, in picoseconds. All processes of a machine share
// CLOCK_MONOTONIC, so processes with the same t0 and dilation agree on lab time to the nanosecond
// of real time. Monotonic instants are int64 nanoseconds since boot; instants before t0 are
// negative lab times.
//
// The package only computes. Package internal/clock reads the clock.
package labtime

import (
	"fmt"
	"math"

	"weft/units"
)

// Scale converts between CLOCK_MONOTONIC and lab time.
type Scale struct {
	T0       int64   // CLOCK_MONOTONIC at lab time 0, in nanoseconds
	Dilation float64 // real time divided by lab time, above 0
}

// KindScale is the kind of message that gives a process that is part of a lab a new Scale, on a
// machine whose clock drifts.
const KindScale = "scale"

// Clock is lab time in such a process. It does not go back when the scale changes.
type Clock struct {
	Scale            // T0 is 0 before the start
	floor units.Time // lab time when Scale last changed
}

// NewClock returns a clock that has the scale from the start.
func NewClock(s Scale) Clock { return Clock{s, -units.Never} }

// Now returns lab time at a monotonic instant.
func (c *Clock) Now(mono int64) units.Time { return max(c.floor, c.Lab(mono)) }

// Follow changes the scale at a monotonic instant. It returns an error before the start, and if no
// time would pass.
func (c *Clock) Follow(s Scale, mono int64) error {
	if !(s.Dilation > 0) || c.T0 == 0 {
		return fmt.Errorf("dilation %g, or before the start", s.Dilation)
	}
	c.floor, c.Scale = c.Now(mono), s
	return nil
}

// Lab returns the lab time of a monotonic instant, rounded down.
func (s Scale) Lab(mono int64) units.Time {
	return s.LabSpan(mono - s.T0)
}

// LabSpan returns ns nanoseconds of real time as a span of lab time, rounded down.
func (s Scale) LabSpan(ns int64) units.Time {
	return units.Time(math.Floor(float64(ns) * 1000 / s.Dilation))
}

// Mono returns the first monotonic instant whose lab time is not before t. An instant that is out
// of reach, such as units.Never, becomes the largest int64.
func (s Scale) Mono(t units.Time) int64 {
	ns := math.Ceil(float64(t) * s.Dilation / 1000)
	if ns > math.MaxInt64/4 {
		return math.MaxInt64
	}
	mono := s.T0 + int64(ns)
	if s.Lab(mono) < t { // the division in Lab was rounded below an integer
		mono++
	}
	return mono
}

// RealSpan returns the span t of lab time in nanoseconds of real time, rounded up.
func (s Scale) RealSpan(t units.Time) int64 {
	return int64(math.Ceil(float64(t) * s.Dilation / 1000))
}
