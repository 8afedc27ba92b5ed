package swift

import (
	"math"

	"weft/units"
)

// target computes the delay that a window aims at.
type target struct {
	fixed       units.Time // BaseTarget and what the hops add
	span        float64    // FSRange
	alpha, beta float64    // α_fs, in ps·√packets, and β_fs, in ps, at most 0
	compat      bool
}

// newTarget solves section 3.5 for α_fs and β_fs: FSRange at FSMin packets, nothing at FSMax.
func newTarget(p Params, hops int) target {
	span := float64(p.FSRange)
	alpha := span / (1/math.Sqrt(p.FSMin) - 1/math.Sqrt(p.FSMax))
	return target{
		fixed: p.BaseTarget + units.Time(hops)*p.PerHop, span: span,
		alpha: alpha, beta: -alpha / math.Sqrt(p.FSMax), compat: p.BoltCompat,
	}
}

// delay returns the target for a window of cwnd packets.
func (t *target) delay(cwnd float64) units.Time { return t.fixed + units.Time(t.scaling(cwnd)) }

// scaling is what flow scaling adds.
func (t *target) scaling(cwnd float64) float64 {
	add := t.alpha/math.Sqrt(cwnd) + t.beta
	if t.compat {
		add = t.alpha/math.Sqrt(cwnd) - t.beta // β_fs is negative already
	}
	return min(max(add, 0), t.span)
}
