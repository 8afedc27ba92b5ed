// Package labtime maps the machine's clocks to lab time for the processes of an emulated lab.
//
// Lab time is (CLOCK_MONOTONIC - t0) / dilation. All processes of a machine share CLOCK_MONOTONIC, so those
// that were told the same t0 and dilation agree on the lab's time to the nanosecond of real time. Monotonic
// instants are int64 nanoseconds since boot; instants before t0 are negative lab times.
//
// It computes and reads no clock: package internal/clock does.
package labtime

import (
	"math"

	"weft/units"
)

// Scale converts between CLOCK_MONOTONIC and lab time.
type Scale struct {
	T0       int64   // CLOCK_MONOTONIC at lab time 0, in nanoseconds
	Dilation float64 // real time per lab time, above 0
}

// Lab returns the lab time of a monotonic instant, rounded down.
func (s Scale) Lab(mono int64) units.Time {
	return s.LabSpan(mono - s.T0)
}

// LabSpan returns the lab time that ns nanoseconds of real time span.
func (s Scale) LabSpan(ns int64) units.Time {
	return units.Time(math.Floor(float64(ns) * 1000 / s.Dilation))
}

// Mono returns the first monotonic instant whose lab time is not before t. Never stays out of reach.
func (s Scale) Mono(t units.Time) int64 {
	ns := math.Ceil(float64(t) * s.Dilation / 1000)
	if ns > math.MaxInt64/4 {
		return math.MaxInt64
	}
	mono := s.T0 + int64(ns)
	if s.Lab(mono) < t { // a rounding of the division below an integer
		mono++
	}
	return mono
}

// RealSpan returns how many nanoseconds of real time t spans, rounded up.
func (s Scale) RealSpan(t units.Time) int64 {
	return int64(math.Ceil(float64(t) * s.Dilation / 1000))
}
