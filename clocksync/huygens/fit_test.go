package huygens

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"

	"weft/units"
)

// program returns the optimum of the soft-margin problem as a linear program: max m - 1/(2k) and
// 1/(2kl) sums of violations.
func program(t *rapid.T, upper, lower []relative, k, kl int) float64 {
	n, l := len(upper), len(lower)
	vars := 6 + 2*(n+l) + 2 // alpha, beta, m as differences; violations; slacks; slacks of the limits of alpha
	c := make([]float64, vars)
	c[4], c[5] = -1, 1
	for i := range n + l {
		c[6+i] = 1 / (2 * float64(k))
		if i >= n {
			c[6+i] = 1 / (2 * float64(kl))
		}
	}
	a := mat.NewDense(n+l+2, vars, nil)
	b := make([]float64, n+l+2)
	for i, sign := range []float64{1, -1} { // -10 <= alpha <= 10: 1e-3 in these units
		a.Set(n+l+i, 0, sign)
		a.Set(n+l+i, 1, -sign)
		a.Set(n+l+i, vars-2+i, 1)
		b[n+l+i] = 10
	}
	row := func(i int, p relative, m, violation, slack float64) {
		a.Set(i, 0, p.x)
		a.Set(i, 1, -p.x)
		a.Set(i, 2, 1)
		a.Set(i, 3, -1)
		a.Set(i, 4, m)
		a.Set(i, 5, -m)
		a.Set(i, 6+i, violation)
		a.Set(i, 6+n+l+i, slack)
		b[i] = p.y
	}
	for i, p := range upper {
		row(i, p, 1, -1, 1)
	}
	for j, p := range lower {
		row(n+j, p, -1, 1, -1)
	}
	value, _, err := lp.Simplex(c, a, b, 1e-10, nil)
	if err != nil {
		t.Fatalf("the oracle fails: %v", err)
	}
	return -value
}

// The closed form reaches what a linear program reaches.
func TestFitAgainstALinearProgram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(3, 20).Draw(t, "n")
		k := rapid.IntRange(1, max(1, n/2)).Draw(t, "k")
		kl := rapid.IntRange(1, max(1, n/2)).Draw(t, "kl")
		slope := (r.Float64()*2 - 1) * 1e-4
		var up, low []point
		var upper, lower []relative
		for range n {
			x := units.Time(r.Int64N(2e10) - 1e10)
			u := units.Time(float64(x)*slope) + 1e6 + units.Time(r.ExpFloat64()*2e5)
			y := units.Time(r.Int64N(2e10) - 1e10)
			v := units.Time(float64(y)*slope) - 1e6 - units.Time(r.ExpFloat64()*2e5)
			up, low = append(up, point{x, u}), append(low, point{y, v})
			upper = append(upper, relative{x: float64(x) / 1e10, y: float64(u) / 1e6})
			lower = append(lower, relative{x: float64(y) / 1e10, y: float64(v) / 1e6})
		}
		var f fitter
		got := f.fit(up, low, k, kl, 0, -1e-3, 1e-3)
		want := program(t, upper, lower, k, kl)
		// g at the optimum is the value of the program.
		if d := float64(got.half)/1e6 - want; math.Abs(d) > 2e-6 {
			t.Fatalf("n=%d k=%d kl=%d: margin %v, the program says %v", n, k, kl, float64(got.half)/1e6, want)
		}
		if k == 1 && kl == 1 { // the program may trade margin against violations at no cost; the closed form has none
			for _, p := range up { // nothing crosses
				if d := float64(p.y) - float64(got.beta) - got.alpha*float64(p.x) - float64(got.half); d < -2 {
					t.Fatalf("an upper point lies %v ps inside of the margin", -d)
				}
			}
		}
	})
}

func TestFitKeepsToItsSlopes(t *testing.T) {
	var up, low []point
	for i := range units.Time(50) {
		up, low = append(up, point{i * 1e8, 1e6 + i*1e4}), append(low, point{i * 1e8, -1e6 + i*1e4}) // 100 ppm
	}
	var f fitter
	if l := f.fit(up, low, 5, 5, 0, -50e-6, 50e-6); math.Abs(l.alpha-50e-6) > 1e-9 {
		t.Errorf("slope %v, want the nearest that is allowed", l.alpha)
	}
	if l := f.fit(up, low, 5, 5, 25e8, -1e-3, 1e-3); math.Abs(l.alpha-100e-6) > 1e-10 || l.beta != 250000 || l.half != 1e6 {
		t.Errorf("%+v, want slope 1e-4, 250000 ps, half 10^6 ps", l)
	}
}

// Points with one x, or all in one place, give a line and no NaN.
func TestFitOfDegeneratePoints(t *testing.T) {
	same := []point{{5, 10}, {5, 10}, {5, 10}}
	var f fitter
	if l := f.fit(same, same, 3, 3, 0, -1e-3, 1e-3); math.IsNaN(l.alpha) || l.half != 0 {
		t.Errorf("%+v", l)
	}
}

func TestSelectSmallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 60).Draw(t, "values")
		k := rapid.IntRange(1, len(v)).Draw(t, "k")
		p := make([]relative, len(v))
		for i, x := range v {
			p[i].r = float64(x)
		}
		selectSmallest(p, k)
		slices.Sort(v)
		got := make([]int, k)
		for i := range got {
			got[i] = int(p[i].r)
		}
		slices.Sort(got)
		if !slices.Equal(got, v[:k]) {
			t.Fatalf("%v are not the %d least of %v", got, k, v)
		}
	})
}

func TestPairsThatMetAQueueAreImpure(t *testing.T) {
	const eps = 50
	for _, c := range []struct {
		received [2]units.Time
		want     bool
	}{{[2]units.Time{1000, 1200}, true}, {[2]units.Time{1000, 1249}, true}, {[2]units.Time{1000, 1250}, false}, {[2]units.Time{1000, 1150}, false}} {
		if got := pure([2]units.Time{0, 200}, c.received, eps); got != c.want {
			t.Errorf("sent 200 apart, received %v: %v", c.received, got)
		}
	}
}

func TestPairsAreNotedOnce(t *testing.T) {
	var p pairs
	for _, c := range []struct {
		sequence uint32
		index    uint8
		want     bool
	}{{0, 0, true}, {0, 0, false}, {0, 1, true}, {0, 1, false}, {ringSize, 0, true}, {0, 0, false}, {2, 1, true}, {2, 0, true}} {
		if got := p.note(c.sequence, c.index, units.Time(c.sequence)*100+units.Time(c.index)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if p.find(0) != nil || p.find(2) == nil || p.find(ringSize) != nil {
		t.Error("only pair 2 is complete and remembered")
	}
	if got := p.recent(nil, 0, 2); len(got) != 1 || got[0] != (reportedPair{2, 200, 1}) {
		t.Errorf("recent: %v", got)
	}
}
