package clock

import (
	"math"
	"testing"
)

func TestClockIsMonotonicClock(t *testing.T) {
	c := NewClock()
	for range 100 {
		before, now, after := Monotonic(), c.Now(), Monotonic()
		if now < before-1000 || now > after+1000 {
			t.Fatalf("clock reads %d between system calls that read %d and %d", now, before, after)
		}
	}
	// A kernel stamp of now, moved by the offset, is now.
	offset := RealtimeOffset()
	if wall, mono := readClock(0), Monotonic(); math.Abs(float64(wall-offset-mono)) > 1e6 {
		t.Errorf("wall clock minus offset is %d ns away from the monotonic clock", wall-offset-mono)
	}
}

func BenchmarkNow(b *testing.B) {
	c := NewClock()
	for b.Loop() {
		c.Now()
	}
}
