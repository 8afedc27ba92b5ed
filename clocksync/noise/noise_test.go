package noise

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// moments returns the mean and the standard deviation of n draws.
func moments(n int, draw func() float64) (mean, sd float64) {
	var sum, squares float64
	for range n {
		v := draw()
		sum += v
		squares += v * v
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(squares/float64(n) - mean*mean)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %g, want %g within %g", what, got, want, tolerance)
	}
}

func TestStampsAreWhiteAndQuantized(t *testing.T) {
	s := NewStamper(Stamp{Jitter: 20_000, Quantum: 125}, Seed(1, 0, "rx"))
	mean, sd := moments(100_000, func() float64 {
		at := s.Received(1e9)
		if at%125 != 0 {
			t.Fatalf("stamp %d is no multiple of 125", at)
		}
		return float64(at - 1e9)
	})
	near(t, "mean", mean, -62, 200)
	near(t, "deviation", sd, 20_000, 200)
	if got := NewStamper(Stamp{Quantum: 1000}, Seed(1, 0, "rx")).Received(-1); got != -1000 {
		t.Errorf("-1 ps becomes %d, want -1000: stamps are rounded down", got)
	}
}

func TestStallsMakeStampsLate(t *testing.T) {
	s := NewStamper(Stamp{Stalled: 0.01, Stall: 200_000}, Seed(1, 0, "tx"))
	late := 0
	mean, _ := moments(200_000, func() float64 {
		d := s.Sent(0)
		if d < 0 {
			t.Fatalf("stamped %d ps before it left", -d)
		}
		if d > 0 {
			late++
		}
		return float64(d)
	})
	near(t, "mean", mean, 2000, 200)
	near(t, "share that stalls", float64(late)/200_000, 0.01, 0.001)
	if got := NewStamper(Stamp{Stalled: 1, Stall: 1e6}, Seed(1, 0, "rx")).Received(7); got != 7 {
		t.Errorf("what arrives at 7 is stamped %d: only what is sent stalls", got)
	}
}

func TestDelays(t *testing.T) {
	for _, w := range []struct {
		d        Delay
		mean, sd float64
	}{
		{Delay{}, 0, 0},
		{Delay{Kind: Uniform, Low: -100_000, High: 100_000}, 0, 200_000 / math.Sqrt(12)},
		{Delay{Kind: Normal, Low: 5000, High: 10_000}, 5000, 10_000},
		{Delay{Kind: Exponential, Low: 0, High: 30_000}, 30_000, 30_000},
	} {
		if err := w.d.Check(); err != nil {
			t.Error(err)
		}
		g := NewGenerator(w.d, Seed(3, 4, "delay"))
		mean, sd := moments(100_000, func() float64 { return float64(g.Next()) })
		near(t, string(w.d.Kind)+" mean", mean, w.mean, 1000)
		near(t, string(w.d.Kind)+" deviation", sd, w.sd, 1000)
	}
}

func TestUniformStaysWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := units.Time(rapid.Int64Range(-1e9, 1e9).Draw(t, "low"))
		high := low + units.Time(rapid.Int64Range(0, 1e9).Draw(t, "width"))
		g := NewGenerator(Delay{Kind: Uniform, Low: low, High: high}, Seed(rapid.Uint64().Draw(t, "seed"), 0, ""))
		for range 20 {
			if v := g.Next(); v < low || v > high {
				t.Fatalf("%d is not from %d to %d", v, low, high)
			}
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	for _, d := range []Delay{{Kind: "pink"}, {Kind: Uniform, Low: 1}, {Kind: Normal, High: -1},
		{Kind: Exponential, High: -1}} {
		if d.Check() == nil {
			t.Errorf("%+v is accepted", d)
		}
	}
	for _, s := range []Stamp{{Jitter: -1}, {Quantum: -1}, {Stall: -1}, {Stalled: 1.1}, {Stalled: math.NaN()}} {
		if s.Check() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if err := (Stamp{Jitter: 1, Quantum: 125, Stalled: 0.01, Stall: 5}).Check(); err != nil {
		t.Error(err)
	}
}

func TestSourcesAreIndependentAndRepeatable(t *testing.T) {
	first, again := Seed(1, 2, "rx"), Seed(1, 2, "rx")
	if first != again || first == Seed(1, 2, "tx") || first == Seed(1, 3, "rx") || first == Seed(2, 2, "rx") {
		t.Error("a seed is of a lab, a node and a purpose")
	}
}
