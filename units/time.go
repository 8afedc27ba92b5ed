package units

import "time"

// Time is an instant or a span of lab time in picoseconds. Instants count from the start of the
// run. At 400 Gbps a 64-byte frame lasts 1.28 ns, so nanoseconds would be too coarse. The range is
// ±106 days.
type Time int64

// Spans of lab time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Never is later than every instant that a run can reach, and stands for "no deadline". Compare
// with it, but do not compute with it: sums overflow.
const Never Time = 1<<63 - 1

// LongAgo is before every instant of a run, by more than a run can last, and stands for "not since
// anything that matters". Lengths of time can be added to it.
const LongAgo Time = -1 << 62

// Seconds returns t in seconds, for presentation and statistics only.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Microseconds returns t in microseconds, for presentation and statistics only.
func (t Time) Microseconds() float64 { return float64(t) / float64(Microsecond) }

// Nanoseconds returns t in nanoseconds, for presentation and statistics only.
func (t Time) Nanoseconds() float64 { return float64(t) / float64(Nanosecond) }

// Rounded returns t with three significant digits, for messages.
func (t Time) Rounded() Time {
	unit := Time(1)
	for t/unit >= 1000 || t/unit <= -1000 {
		unit *= 10
	}
	return Time(time.Duration(t).Round(time.Duration(unit)))
}

// FromDuration returns the span of lab time that is as long as d. It applies no dilation.
func FromDuration(d time.Duration) Time { return Time(d) * Nanosecond }

// Duration converts t to a time.Duration, truncating towards zero to a nanosecond.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }
