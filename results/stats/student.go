package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// quantileT returns the value below which Student's t with nu degrees of freedom is with a
// probability p above 1/2. gonum's stat/distuv does the same, but a program that imports it links
// LAPACK: 2 MB (ADR 207).
func quantileT(nu, p float64) float64 {
	x := mathext.InvRegIncBeta(nu/2, 0.5, 2*(1-p))
	return math.Sqrt(nu * (1 - x) / x)
}

// survivalT returns the probability that Student's t with nu degrees of freedom is above t, which
// must not be negative.
func survivalT(nu, t float64) float64 {
	return mathext.RegIncBeta(nu/2, 0.5, nu/(t*t+nu)) / 2
}
