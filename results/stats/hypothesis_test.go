package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The 0.975-quantile of Student's t with 4 degrees of freedom is 2.776.
func TestMeanInterval(t *testing.T) {
	i := MeanInterval([]float64{1, 2, 3, 4, 5})
	near(t, "mean", i.Mean, 3, 0)
	near(t, "half", i.High-i.Mean, 2.776*math.Sqrt(2.5/5), 1e-3)
	near(t, "symmetry", i.Mean-i.Low, i.High-i.Mean, 1e-12)
	if one := MeanInterval([]float64{7}); one != (Interval{7, 7, 7, 1}) {
		t.Errorf("of one value %+v", one)
	}
}

// From tables of the U test: 2/70 for 4 and 4 values that do not overlap, 2/252 for 5 and 5.
func TestMannWhitney(t *testing.T) {
	near(t, "4, 4", MannWhitney([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}), 2.0/70, 1e-12)
	near(t, "5, 5", MannWhitney([]float64{11, 12, 13, 14, 15}, []float64{1, 2, 3, 4, 5}), 2.0/252, 1e-12)
	near(t, "3, 3", MannWhitney([]float64{1, 2, 3}, []float64{4, 5, 6}), 0.1, 1e-12)
	near(t, "interleaved", MannWhitney([]float64{1, 3, 5, 7}, []float64{2, 4, 6, 8}), 0.6857, 1e-3)
	near(t, "equal", MannWhitney([]float64{2, 2, 2}, []float64{2, 2}), 1, 0)
	// 70 draws of four of the eight values are possible: 2 and 22 have rank sums as far apart.
	near(t, "two values", MannWhitney([]float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}), 2.0/70, 1e-12)
	near(t, "tied", MannWhitney([]float64{1, 1, 2, 3}, []float64{2, 2, 3, 4}), 22.0/70, 1e-12)
	near(t, "one tie", MannWhitney([]float64{1, 1.5}, []float64{1}), 1, 1e-12)
	near(t, "nothing", MannWhitney(nil, []float64{2, 2}), 1, 0)
	var a, b []float64
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b = append(a, r.NormFloat64()), append(b, r.NormFloat64()+1)
	}
	if p := MannWhitney(a, b); p > 1e-6 {
		t.Errorf("one standard deviation apart: p = %v", p)
	}
	chance := 0
	for range 200 {
		for i := range 15 {
			a[i], b[i] = r.NormFloat64(), r.NormFloat64()
		}
		if MannWhitney(a[:15], b[:15]) < 0.05 {
			chance++
		}
	}
	if chance < 2 || chance > 22 {
		t.Errorf("of one distribution, 5 in 100 are below 0.05, not %d in 200", chance)
	}
}

// The test is symmetric in its samples, and a p-value is a probability.
func TestMinMannWhitney(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for m := 1; m <= 6; m++ {
			var a, b []float64
			for i := range n {
				a = append(a, float64(i))
			}
			for i := range m {
				b = append(b, float64(100+i))
			}
			near(t, "least p", MinMannWhitney(n, m), MannWhitney(a, b), 1e-12)
		}
	}
}

func TestMannWhitneyIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(0, 5), 1, 25)
		a, b := v.Draw(t, "a"), v.Draw(t, "b")
		p, q := MannWhitney(a, b), MannWhitney(b, a)
		if math.Abs(p-q) > 1e-9 || p < 0 || p > 1 || math.IsNaN(p) {
			t.Fatalf("%v and %v", p, q)
		}
	})
}

func TestBootstrap(t *testing.T) {
	var v []float64
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		v = append(v, r.NormFloat64())
	}
	mean := func(s []float64) float64 { return Mean(s) }
	i := Bootstrap(v, mean)
	near(t, "width", i.High-i.Low, 4/math.Sqrt(1000), 0.03)
	if i != Bootstrap(v, mean) {
		t.Error("two intervals of the same values differ")
	}
	if i.Low > i.Mean || i.High < i.Mean {
		t.Errorf("%+v", i)
	}
	if one := Bootstrap([]float64{7}, mean); one != (Interval{7, 7, 7, 1}) {
		t.Errorf("of one value %+v", one)
	}
}

// Estimates of 0 and 2.772 with standard errors of 1 differ by 1.96 standard errors of the
// difference.
func TestZTest(t *testing.T) {
	of := func(m, half float64) Interval { return Interval{m, m - half, m + half, 10} }
	near(t, "p", ZTest(of(0, 1.96), of(2.7719, 1.96)), 0.05, 1e-4)
	near(t, "exchanged", ZTest(of(2.7719, 1.96), of(0, 1.96)), 0.05, 1e-4)
	near(t, "equal", ZTest(of(3, 0), of(3, 0)), 1, 0)
	near(t, "exact, and not equal", ZTest(of(3, 0), of(4, 0)), 0, 0)
}

// For 1 to 5, s is sqrt(2.5), and t = 2.776 with 4 degrees of freedom is at 3 + 2.776 sqrt(2.5 *
// 1.2).
func TestPredictionTest(t *testing.T) {
	others := []float64{1, 2, 3, 4, 5}
	near(t, "p", PredictionTest(3+2.7764*math.Sqrt(3), others), 0.05, 1e-4)
	near(t, "below", PredictionTest(3-2.7764*math.Sqrt(3), others), 0.05, 1e-4)
	near(t, "the mean", PredictionTest(3, others), 1, 0)
	near(t, "another than all others", PredictionTest(3, []float64{2, 2, 2}), 0, 0)
	near(t, "one other", PredictionTest(3, []float64{2}), 1, 0)
}

// The example of Benjamini and Hochberg's paper, table 1: four of these 15 are rejected at 0.05.
func TestBenjaminiHochberg(t *testing.T) {
	p := []float64{0.0459, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1}
	kept := 0
	for i, q := range BenjaminiHochberg(p) {
		if q < p[i] || q > 1 {
			t.Errorf("%v becomes %v", p[i], q)
		}
		if q <= 0.05 {
			kept++
		}
	}
	if kept != 4 {
		t.Errorf("%d are rejected, not 4", kept)
	}
	if got := BenjaminiHochberg(nil); len(got) != 0 {
		t.Error(got)
	}
	near(t, "a single test is as it was", BenjaminiHochberg([]float64{0.03})[0], 0.03, 0)
}
