// Package clock reads the machine's clocks in nanoseconds. In an emulated lab no other package
// does. Package clocksync/labtime converts readings to lab time.
package clock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Clock reads CLOCK_MONOTONIC without a system call. A Clock is a value; copies read the same
// clock.
type Clock struct {
	base   time.Time
	offset int64 // CLOCK_MONOTONIC at base
}

// NewClock measures the offset between Go's monotonic clock and CLOCK_MONOTONIC. They are the same
// clock, but Go counts from the start of the process. The offset is the tightest of several
// readings, within about 50 ns.
func NewClock() Clock {
	c := Clock{base: time.Now()}
	best := int64(math.MaxInt64)
	for range 200 {
		before := skewed(int64(time.Since(c.base)))
		mono := Monotonic()
		after := skewed(int64(time.Since(c.base)))
		if gap := after - before; gap < best {
			best = gap
			c.offset = mono - (before + gap/2)
		}
	}
	return c
}

// Now returns CLOCK_MONOTONIC in nanoseconds.
func (c Clock) Now() int64 { return c.offset + skewed(int64(time.Since(c.base))) }

// Monotonic reads CLOCK_MONOTONIC with a system call, for occasional readings.
func Monotonic() int64 { return skewed(readClock(unix.CLOCK_MONOTONIC)) }

// RealtimeOffset returns CLOCK_REALTIME - CLOCK_MONOTONIC in nanoseconds, which converts kernel
// timestamps to monotonic time. It changes when the machine's clock is set or slewed, so read it
// again from time to time.
func RealtimeOffset() int64 {
	best, offset := int64(math.MaxInt64), int64(0)
	for range 5 {
		before := Monotonic()
		wall := readClock(unix.CLOCK_REALTIME)
		after := Monotonic()
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
		panic("clock: clock_gettime of a clock every Linux has: " + err.Error())
	}
	return ts.Nano()
}
