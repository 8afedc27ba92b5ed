package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Quantiles and tails are those of gonum's distribution, also where a tail is small.
func TestStudentsT(t *testing.T) {
	for _, nu := range []float64{1, 2, 3, 9, 30, 1000} {
		want := distuv.StudentsT{Sigma: 1, Nu: nu}
		for _, p := range []float64{0.6, 0.9, 0.975, 0.9999} {
			if got := quantileT(nu, p); got != want.Quantile(p) {
				t.Errorf("nu %g: quantile %g is %g, want %g", nu, p, got, want.Quantile(p))
			}
		}
		for _, x := range []float64{0, 0.1, 1, 2.5, 8} {
			if got := survivalT(nu, x); math.Abs(got-want.Survival(x)) > 1e-15 {
				t.Errorf("nu %g: above %g with %g, want %g", nu, x, got, want.Survival(x))
			}
		}
	}
	if got := survivalT(30, 20); got <= 0 || got > 1e-17 { // 1 minus the distribution function is 0 there
		t.Errorf("far in the tail: %g", got)
	}
}
