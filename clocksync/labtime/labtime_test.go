package labtime

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

func TestMonoIsTheFirstInstantNotBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Scale{T0: rapid.Int64Range(0, 1<<50).Draw(t, "t0"), Dilation: rapid.Float64Range(1, 1e5).
			Draw(t, "dilation")}
		at := units.Time(rapid.Int64Range(0, int64(units.Second)).Draw(t, "at"))
		mono := s.Mono(at)
		if got := s.Lab(mono); got < at {
			t.Fatalf("lab time of %d is %d, before %d", mono, got, at)
		}
		if got := s.Lab(mono - 2); got >= at && mono > s.T0 { // one nanosecond of slack for rounding
			t.Fatalf("two nanoseconds earlier, %d, is already %d, not before %d", mono-2, got, at)
		}
	})
}

func TestScaleBeforeStartAndNever(t *testing.T) {
	s := Scale{T0: 5000, Dilation: 2}
	if got := s.Lab(4000); got != -500*units.Nanosecond {
		t.Errorf("1000 ns before t0 at dilation 2 is %d ps, want -500 ns", got)
	}
	for _, d := range []float64{1, 1e6} { // never is beyond a hundred days at any dilation
		if got := (Scale{Dilation: d}).Mono(units.Never); got < 100*24*3600*1e9 {
			t.Errorf("Never maps to %d at dilation %g, want an instant out of reach", got, d)
		}
	}
	if got := s.RealSpan(3 * units.Nanosecond); got != 6 {
		t.Errorf("3 ns of lab time span %d ns at dilation 2, want 6", got)
	}
}

// A clock follows new scales and does not go back; a scale that stops time or comes before the
// start is refused.
func TestClockFollows(t *testing.T) {
	var c Clock
	if err := c.Follow(Scale{T0: 1, Dilation: 1}, 2); err == nil {
		t.Error("followed before the start")
	}
	c = NewClock(Scale{T0: 1000, Dilation: 1})
	if got := c.Now(0); got != -units.Microsecond {
		t.Errorf("1 us before the start it is %v", got)
	}
	for _, bad := range []float64{0, -1, math.NaN()} {
		if err := c.Follow(Scale{T0: 1, Dilation: bad}, 2000); err == nil {
			t.Errorf("followed dilation %g", bad)
		}
	}
	if err := c.Follow(Scale{T0: 1500, Dilation: 1}, 2000); err != nil {
		t.Fatal(err)
	}
	for mono, want := range map[int64]units.Time{2000: units.Microsecond, 2400: units.Microsecond, 3000: 1500 * units.Nanosecond} {
		if got := c.Now(mono); got != want {
			t.Errorf("at %d ns it is %v, want %v", mono, got, want)
		}
	}
}
