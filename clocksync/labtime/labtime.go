// Package labtime maps the machine's clocks to lab time for the processes of an emulated lab.
//
// Lab time is (CLOCK_MONOTONIC - t0) / dilation. All processes of a machine share CLOCK_MONOTONIC, so those
// that were told the same t0 and dilation agree on the lab's time to the nanosecond of real time. Monotonic
// instants are int64 nanoseconds since boot; instants before t0 are negative lab times.
//
// This is the only package of an emulated lab that reads a clock.
package labtime

import (
	"math"
	"time"

	"golang.org/x/sys/unix"

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

// Clock reads CLOCK_MONOTONIC without a system call. A Clock is a value; copies read the same clock.
type Clock struct {
	base   time.Time
	offset int64 // CLOCK_MONOTONIC at base
}

// NewClock finds where Go's monotonic clock stands against CLOCK_MONOTONIC. They are the same clock, but Go
// counts from the start of the process; the offset is the tightest of several readings, good to some 50 ns.
func NewClock() Clock {
	c := Clock{base: time.Now()}
	best := int64(math.MaxInt64)
	for range 200 {
		before := int64(time.Since(c.base))
		mono := readClock(unix.CLOCK_MONOTONIC)
		after := int64(time.Since(c.base))
		if gap := after - before; gap < best {
			best = gap
			c.offset = mono - (before + gap/2)
		}
	}
	return c
}

// Now returns CLOCK_MONOTONIC in nanoseconds.
func (c Clock) Now() int64 { return c.offset + int64(time.Since(c.base)) }

// Monotonic reads CLOCK_MONOTONIC by a system call: for the odd reading, where a Clock does not pay.
func Monotonic() int64 { return readClock(unix.CLOCK_MONOTONIC) }

// RealtimeOffset returns CLOCK_REALTIME - CLOCK_MONOTONIC in nanoseconds, which turns a kernel time stamp
// into a monotonic instant. It moves when the machine's clock is set or slewed: read it again now and then.
func RealtimeOffset() int64 {
	best, offset := int64(math.MaxInt64), int64(0)
	for range 5 {
		before := readClock(unix.CLOCK_MONOTONIC)
		wall := readClock(unix.CLOCK_REALTIME)
		after := readClock(unix.CLOCK_MONOTONIC)
		if gap := after - before; gap < best {
			best = gap
			offset = wall - (before + gap/2)
		}
	}
	return offset
}

func readClock(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("labtime: clock_gettime of a clock every Linux has: " + err.Error())
	}
	return ts.Nano()
}
