package clock

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/clocksync/metrics"
	"weft/units"
)

func build(t testing.TB, cfg Config) *Clock {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPerfectClockShowsTheTruth(t *testing.T) {
	c := build(t, Config{Grid: units.Millisecond})
	for _, at := range []units.Time{0, 1, 12345678, units.Second} {
		if c.Mono(at) != at || c.Hard(at) != at || c.When(at) != at {
			t.Errorf("at %d: %d, %d, back at %d", at, c.Mono(at), c.Hard(at), c.When(at))
		}
	}
}

func TestSkewGainsInProportion(t *testing.T) {
	c := build(t, Config{Offset: -units.Millisecond, Skew: 20e-6, Grid: units.Millisecond})
	if got, want := c.Hard(units.Second), units.Second-units.Millisecond+20*units.Microsecond; got < want-1 ||
		got > want {
		t.Errorf("after a second it shows %d, want %d", got, want)
	}
	if got, want := c.Mono(units.Second), units.Second+20*units.Microsecond; got < want-1 || got > want {
		t.Errorf("after a second the monotonic clock shows %d, want %d", got, want)
	}
	if got := c.Frequency(units.Second); got != 20e-6 {
		t.Errorf("frequency error %g", got)
	}
}

func TestStepsMoveTheHardwareClockAlone(t *testing.T) {
	c := build(t, Config{Grid: units.Millisecond, Steps: []Step{{At: 10, By: 500}, {At: 20, By: -2000}}})
	for _, w := range []struct{ at, hard units.Time }{{9, 9}, {10, 510}, {19, 519}, {20, -1480}} {
		if got := c.Hard(w.at); got != w.hard {
			t.Errorf("at %d it shows %d, want %d", w.at, got, w.hard)
		}
		if got := c.Mono(w.at); got != w.at {
			t.Errorf("at %d the monotonic clock shows %d", w.at, got)
		}
	}
}

func TestRampWarmsUp(t *testing.T) {
	c := build(t, Config{Skew: 1e-6, Grid: units.Microsecond,
		Ramps: []Ramp{{At: 100 * units.Microsecond, Over: 200 * units.Microsecond, By: 5e-6}}})
	for at, want := range map[units.Time]float64{0: 1e-6, 100: 1e-6, 200: 3.5e-6, 300: 6e-6, 900: 6e-6} {
		if got := c.Frequency(at * units.Microsecond); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %d us %g, want %g", at, got, want)
		}
	}
}

// The inverse is exact, and readings do not depend on earlier readings.
func TestWhenIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Skew: rapid.Float64Range(-1e-4, 1e-4).Draw(t, "skew"), Wander: rapid.Float64Range(0, 1e-4).
				Draw(t, "wander"),
			Grid: units.Time(rapid.Int64Range(1e5, 1e7).Draw(t, "grid")),
			Seed: [2]uint64{rapid.Uint64().Draw(t, "seed"), 1},
		}
		a, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := New(cfg)
		last := units.Time(0)
		for range 10 {
			at := units.Time(rapid.Int64Range(0, 1e9).Draw(t, "at"))
			if a.Mono(at) != b.Mono(at) {
				t.Fatalf("at %d two clocks alike show %d and %d", at, a.Mono(at), b.Mono(at))
			}
			b.Mono(units.Time(rapid.Int64Range(0, 1e9).Draw(t, "other")))
			mono := a.Mono(at)
			when := a.When(mono)
			if a.Mono(when) < mono || when > 0 && a.Mono(when-1) >= mono || when > at {
				t.Fatalf("%d is shown at %d, but %d at %d and %d before", mono, at, a.Mono(when), when, a.Mono(when-1))
			}
			last = max(last, at)
		}
		if a.Mono(last+1) < a.Mono(last) {
			t.Fatal("it runs back")
		}
	})
}

func TestWhenOfAFarTimeAsksAgain(t *testing.T) {
	c := build(t, Config{Skew: -1e-5, Wander: 1e-9, Grid: units.Microsecond})
	want := 50 * units.Millisecond
	asked := 0
	at := c.When(want)
	for c.Mono(at) < want {
		next := c.When(want)
		if next <= at {
			t.Fatalf("asked at %d it says %d", at, next)
		}
		at = next
		asked++
	}
	if c.Mono(at-1) >= want || asked == 0 {
		t.Errorf("found %d after asking %d times", at, asked)
	}
	if c.When(-5) != 0 {
		t.Error("a time before the beginning is not shown at the beginning")
	}
}

// The Allan deviation of every noise is that of its formula (NIST SP 1065, table 3).
func TestAllanDeviationOfEachNoise(t *testing.T) {
	const n, tau0 = 20_000, 1.0
	series := func(cfg Config) metrics.Series {
		cfg.Grid, cfg.Seed = units.Second, [2]uint64{7, 9}
		c := build(t, cfg)
		x := make([]float64, n)
		for i := range x {
			at := units.Time(i) * units.Second
			x[i] = (c.Mono(at) - at).Seconds()
		}
		return metrics.Series{X: x, Tau0: tau0}
	}
	for name, w := range map[string]struct {
		cfg  Config
		want func(tau float64) float64
	}{
		"random walk": {Config{Wander: 1e-8}, func(tau float64) float64 { return 1e-8 * math.Sqrt(tau/3) }},
		"skew has no part": {Config{Skew: 5e-6, Wander: 1e-8},
			func(tau float64) float64 { return 1e-8 * math.Sqrt(tau/3) }},
	} {
		s := series(w.cfg)
		for _, m := range []int{4, 16, 64} {
			got, want := s.OADEV(m), w.want(float64(m)*tau0)
			if math.Abs(got/want-1) > 0.1 {
				t.Errorf("%s at %d s: %g, want %g", name, m, got, want)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []Config{
		{}, {Grid: -1}, {Grid: 1, Skew: math.NaN()}, {Grid: 1, Skew: 0.1}, {Grid: 1, Wander: -1},
		{Grid: 1, Steps: []Step{{At: 2}, {At: 1}}}, {Grid: 1, Ramps: []Ramp{{By: math.Inf(1)}}}, {Grid: 1,
			Ramps: []Ramp{{Over: -1}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is a clock", cfg)
		}
	}
}

func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		if _, err := PresetOf(name); err != nil {
			t.Error(err)
		}
	}
	if p, err := PresetOf("server"); err != nil || p.Skew != 15e-6 {
		t.Errorf("server: %+v, %v", p, err)
	}
	if _, err := PresetOf("atomic"); err == nil {
		t.Error("there is no atomic preset")
	}
}
