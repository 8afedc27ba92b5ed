package metrics

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// nbs14 returns the 1000-point test set of NIST SP 1065, section 12.4: a Park-Miller generator
// seeded with 1234567890.
func nbs14() []float64 {
	y := make([]float64, 1000)
	n := int64(1234567890)
	for i := range y {
		y[i] = float64(n) / 2147483647
		n = 16807 * n % 2147483647
	}
	return y
}

// fromFrequency returns the time errors that result from fractional frequency errors, each the mean
// over an interval tau0.
func fromFrequency(y []float64, tau0 float64) Series {
	x := make([]float64, len(y)+1)
	for i, f := range y {
		x[i+1] = x[i] + float64(f*tau0)
	}
	return Series{X: x, Tau0: tau0}
}

func TestNBS14(t *testing.T) {
	s := fromFrequency(nbs14(), 1)
	for _, w := range []struct {
		name string
		f    func(int) float64
		want [3]float64 // at 1, 10 and 100
	}{
		{"OADEV", s.OADEV, [3]float64{2.922319e-1, 9.159953e-2, 3.241343e-2}},
		{"MDEV", s.MDEV, [3]float64{2.922319e-1, 6.172376e-2, 2.170921e-2}},
		{"TDEV", s.TDEV, [3]float64{1.687202e-1, 3.563623e-1, 1.253382}},
	} {
		for i, m := range []int{1, 10, 100} {
			if got := w.f(m); math.Abs(got/w.want[i]-1) > 1e-6 {
				t.Errorf("%s at %d: %.7g, want %.7g", w.name, m, got, w.want[i])
			}
		}
	}
}

func TestMTIEIsTheWorstWindow(t *testing.T) {
	s := Series{X: []float64{0, 1, -2, 3, 3, 0}, Tau0: 1}
	for m, want := range map[int]float64{1: 5, 2: 5, 4: 5, 5: 5} {
		if got := s.MTIE(m); got != want {
			t.Errorf("MTIE of %d steps: %g, want %g", m, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-9, 9), 2, 40).Draw(t, "x")
		m := rapid.IntRange(1, len(x)-1).Draw(t, "m")
		want := 0.0
		for i := range len(x) - m {
			w := x[i : i+m+1]
			want = max(want, slices.Max(w)-slices.Min(w))
		}
		if got := (Series{X: x, Tau0: 1}).MTIE(m); got != want {
			t.Fatalf("MTIE(%d) of %v: %g, want %g", m, x, got, want)
		}
	})
}

func TestTooShortIsNotANumber(t *testing.T) {
	s := Series{X: []float64{1, 2}, Tau0: 1}
	for name, v := range map[string]float64{"OADEV": s.OADEV(1), "OADEV of nothing": s.OADEV(0), "MDEV": s.MDEV(1),
		"TDEV": s.TDEV(0), "MTIE": s.MTIE(2)} {
		if !math.IsNaN(v) {
			t.Errorf("%s of two points is %g", name, v)
		}
	}
}

func TestPairsAreDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 256, 257, 1000} {
		seen := map[[2]int]bool{}
		Pairs(n, func(i, j int) {
			if i < 0 || i >= j || j >= n || seen[[2]int{i, j}] {
				if n <= 256 || i >= j {
					t.Fatalf("of %d: %d and %d, or twice", n, i, j)
				}
			}
			seen[[2]int{i, j}] = true
		})
		if n <= 256 && len(seen) != n*(n-1)/2 {
			t.Errorf("%d pairs of %d", len(seen), n)
		}
		if n > 256 && len(seen) < 100*n {
			t.Errorf("only %d pairs of %d", len(seen), n)
		}
	}
}

func TestCompareCoversPairs(t *testing.T) {
	nodes := []Reading{{Error: 10, Bound: 3, Known: true}, {Error: -5, Bound: 12, Known: true},
		{Error: 100, Bound: 1, Known: true}, {Error: 1e6}}
	var all []units.Time
	at := Compare(nodes, func(i int) bool { return i == 3 }, func(d units.Time) { all = append(all, d) })
	if want := (Instant{Worst: 105, Pairs: 6, Bounded: 3, Covered: 1}); at != want {
		t.Errorf("%+v, want %+v", at, want)
	}
	if !slices.Equal(all, []units.Time{15, 90, 105}) {
		t.Errorf("recorded %v", all)
	}
	if at := Compare(nodes, nil, nil); at.Bounded != 3 || at.Worst != 1e6+5 {
		t.Errorf("%+v", at)
	}
}

func TestConvergenceIsTheLastTimeItCameIn(t *testing.T) {
	c := Convergence{Limit: 100}
	for i, worst := range []units.Time{500, 90, 120, 100, 20} {
		c.Add(units.Time(i), worst)
	}
	if at, ok := c.Since(); !ok || at != 3 {
		t.Errorf("since %d, %v; want 3", at, ok)
	}
	c.Add(9, 101)
	if _, ok := c.Since(); ok {
		t.Error("converged at 101 of 100")
	}
}
