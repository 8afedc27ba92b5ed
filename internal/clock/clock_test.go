package clock

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestClockIsMonotonicClock(t *testing.T) {
	c := NewClock()
	for range 100 {
		before, now, after := Monotonic(), c.Now(), Monotonic()
		if now < before-1000 || now > after+1000 {
			t.Fatalf("clock reads %d between system calls that read %d and %d", now, before, after)
		}
	}
	// A kernel timestamp taken now, converted, is the present.
	offset := RealtimeOffset()
	before, wall, after := Monotonic(), readClock(unix.CLOCK_REALTIME), Monotonic()
	if wall-offset < before-1e6 || wall-offset > after+1e6 {
		t.Errorf("wall clock minus offset is %d, the monotonic clock %d before and %d after it", wall-offset, before,
			after)
	}
}

func BenchmarkNow(b *testing.B) {
	c := NewClock()
	for b.Loop() {
		c.Now()
	}
}
