package units

import "time"

// Time is an instant or a span of lab time in picoseconds; instants count from the start of the run.
// At 400 Gbps a 64-byte frame lasts 1.28 ns, so nanoseconds would be too coarse. The range is ±106 days.
type Time int64

// Spans of lab time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Never is later than every instant a run can reach. It orders; it is not a value to compute with.
const Never Time = 1<<63 - 1

// Seconds returns t in seconds, for presentation and statistics only.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Microseconds returns t in microseconds, for presentation and statistics only.
func (t Time) Microseconds() float64 { return float64(t) / float64(Microsecond) }

// Nanoseconds returns t in nanoseconds, for presentation and statistics only.
func (t Time) Nanoseconds() float64 { return float64(t) / float64(Nanosecond) }

// FromDuration converts a span of real time to the same span of lab time (dilation 1).
func FromDuration(d time.Duration) Time { return Time(d) * Nanosecond }

// Duration converts t to a time.Duration, rounding down to a nanosecond.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }
