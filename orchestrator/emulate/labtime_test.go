package emulate

import (
	"math"
	"testing"
	"time"

	"weft/clocksync"
	oscillator "weft/clocksync/clock"
	"weft/clocksync/labtime"
	"weft/internal/clock"
	"weft/nodeimg/labclock"
	"weft/units"
)

// ahead returns by how many nanoseconds both clocks of a page are ahead of lab time. It holds the
// lock, so that the page is not updated between the two readings.
func (c *Clocks) ahead(page *labclock.Page) (mono, real float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, exact := clock.Monotonic(), labclock.Exact(c.scale.T0, c.scale.Dilation)
	lab := float64(now-c.scale.T0) / c.scale.Dilation
	return float64(page.Mono(now)-exact.Mono.Value) - lab, float64(page.Real(now)-exact.Real.Value) - lab
}

// The clocks of a host show its oscillator's error and offset. CLOCK_MONOTONIC has no offset, and
// does not run back.
func TestClocksOfProgramsHaveErrors(t *testing.T) {
	const dilation = 1000
	now := clock.Monotonic()
	t0 := now - int64(2*time.Hour)
	c := Clocks{scale: labtime.Scale{T0: t0, Dilation: dilation}, models: []oscillator.Config{
		{Offset: units.Millisecond, Skew: 100e-6, Grid: units.Second},
		{Offset: -units.Millisecond, Skew: -100e-6, Wander: 1e-6, Grid: units.Second, Seed: [2]uint64{1, 2}},
	}}
	defer c.Close()
	lab := float64(now-t0) / dilation
	for host, w := range []struct{ mono, real, within float64 }{{lab * 100e-6, lab*100e-6 + 1e6, 100},
		{-lab * 100e-6, -lab*100e-6 - 1e6, 1e5}} {
		page, err := c.Page([]string{"h0", "h1"}[host], host)
		if err != nil {
			t.Fatal(err)
		}
		mono, real := c.ahead(page)
		if math.Abs(mono-w.mono) > w.within || math.Abs(real-w.real) > w.within {
			t.Errorf("h%d is off by %.0f and %.0f ns, want %.0f and %.0f", host, mono, real, w.mono, w.real)
		}
		if again, err := c.Page([]string{"h0", "h1"}[host], host); err != nil || again != page {
			t.Errorf("asked again: %p, %v; was %p", again, err, page)
		}
	}
	c.mu.Lock()
	n := c.of["h1"]
	c.mu.Unlock()
	last := int64(0)
	for at := now; at < now+int64(time.Hour); at += int64(time.Minute) / 7 {
		c.mu.Lock()
		if v := n.page.Mono(at); v < last {
			t.Fatalf("it shows %d after %d", v, last)
		} else {
			last = v
		}
		if err := n.page.Set(c.lines(n, at)); err != nil {
			t.Fatal(err)
		}
		if v := n.page.Mono(at); v < last {
			t.Fatalf("its next line shows %d after %d", v, last)
		}
		c.mu.Unlock()
	}
}

// Clocks without an answer are refused by name.
func TestClocksThatNobodySynchronizes(t *testing.T) {
	c := Clocks{none: "PTP does not run"}
	defer c.Close()
	if _, err := c.Page("h0", 0); err == nil || err.Error() != c.none {
		t.Errorf("got %v", err)
	}
}

// A correction of a host's clock steers what its programs read from then on: CLOCK_REALTIME is set
// and keeps its frequency, CLOCK_MONOTONIC has the same frequency and is not set.
func TestCorrectionsReachPrograms(t *testing.T) {
	const dilation, skew = 100, 100e-6
	t0 := clock.Monotonic() - int64(10*time.Minute) // 60 us of error in six seconds of lab time
	c := Clocks{scale: labtime.Scale{T0: t0, Dilation: dilation},
		models: []oscillator.Config{{}, {Offset: units.Millisecond, Skew: skew, Grid: units.Second}}}
	page, err := c.Page("h1", 1)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := c.ahead(page)
	now := clock.Monotonic()
	lab := units.Time(float64(now-t0) / dilation * 1000)
	hard := units.Millisecond + units.Time(float64(lab)*(1+skew))
	perfect := clocksync.Correction{From: hard, Offset: lab - hard, Rate: 1/(1+skew) - 1, State: clocksync.Locked}
	if err := c.Correct(1, perfect); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		time.Sleep(2 * steerEvery) // clocks are steered meanwhile, and must stay right
		mono, real := c.ahead(page)
		if math.Abs(real) > 3 || math.Abs(mono-before) > 10 {
			t.Fatalf("corrected clocks are off by %.1f and %.1f ns, want %.1f and 0", mono, real, before)
		}
	}
	if err := c.Correct(1, clocksync.Correction{Rate: 1}); err == nil {
		t.Error("an impossible correction is accepted")
	}
	c.Close()
	if err := c.Correct(1, perfect); err != nil { // a node may still send one
		t.Error(err)
	}
}
