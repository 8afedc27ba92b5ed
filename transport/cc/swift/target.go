package swift

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// target computes the target delay for a window (section 3.5).
type target struct {
	fixed       units.Time // BaseTarget plus PerHop for each hop
	span        float64    // FSRange in ps
	alpha, beta float64    // α_fs, in ps·√packets, and β_fs, in ps, at most 0
	compat      bool       // Params.BoltCompat
}

// newTarget returns the target of a path. α_fs and β_fs are such that flow scaling adds FSRange at
// FSMin packets and nothing at FSMax.
func newTarget(p Params, hops int) target {
	span := float64(p.FSRange)
	alpha := span / (1/math.Sqrt(p.FSMin) - 1/math.Sqrt(p.FSMax))
	return target{
		fixed: p.BaseTarget + units.Time(hops)*p.PerHop, span: span,
		alpha: alpha, beta: -alpha / math.Sqrt(p.FSMax), compat: p.BoltCompat,
	}
}

// DelayTarget returns the part of the target delay of a large window that is left for queues. It is
// negative if the idle path takes longer than the target.
func (p Params) DelayTarget(l cc.Link) units.Time {
	t := newTarget(p, l.Hops)
	return t.delay(p.FSMax) - l.BaseRTT
}

// delay returns the target delay for a window of cwnd packets.
func (t *target) delay(cwnd float64) units.Time { return t.fixed + units.Time(t.scaling(cwnd)) }

// scaling returns the addition of flow scaling in ps. Bolt's simulator subtracts β_fs.
func (t *target) scaling(cwnd float64) float64 {
	add := t.alpha/math.Sqrt(cwnd) + t.beta
	if t.compat {
		add = t.alpha/math.Sqrt(cwnd) - t.beta // adds, since β_fs is negative
	}
	return min(max(add, 0), t.span)
}
