package swift

import (
	"fmt"
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
func newTarget(p Params, l cc.Link) target {
	span := float64(p.FSRange)
	alpha := span / (1/math.Sqrt(p.FSMin) - 1/math.Sqrt(p.FSMax))
	t := target{
		fixed: p.BaseTarget + units.Time(l.Hops)*p.PerHop, span: span,
		alpha: alpha, beta: -alpha / math.Sqrt(p.FSMax), compat: p.BoltCompat,
	}
	if p.BaseTarget == 0 {
		t.fixed = max(boltTarget+t.fixed, needed(l)-units.Time(t.scaling(filling(l))))
	}
	return t
}

// boltTarget is the base target of Bolt's simulations.
const boltTarget = 10 * units.Microsecond

// needed returns the target delay that lets a window fill a path: the base RTT, and room for a
// queue. Below the base RTT every acknowledgement shrinks the window, on an idle path too. The room
// is ours.
func needed(l cc.Link) units.Time {
	return l.BaseRTT + max(l.BaseRTT/10, 4*l.Line.TransmitTime(l.Packet))
}

// filling returns the window that fills a path, in whole packets, at least one.
func filling(l cc.Link) float64 {
	return max(math.Ceil(float64(l.Line)*l.BaseRTT.Seconds()/8/float64(l.Packet)), 1)
}

// longRegain is the number of base RTTs from which on the time to regain a halved window is warned
// of: four flows on a path of 1,220 packets have 87 % of the line, with an ai of 100 95 %. Ours.
const longRegain = 250

// Misfits implements cc.Conditional: windows that rise by too little for a path of many packets,
// and a target below the base RTT, which shrinks windows on an idle path.
func (p Params) Misfits(n cc.Network) (all []cc.Misfit) {
	n.Line = n.Narrowest() // a path holds no more
	holds := filling(n.Link)
	if p.MaxWindow > 0 {
		holds = min(holds, float64(p.MaxWindow)/float64(n.Packet))
	}
	if regain := holds / 2 / p.AI; regain > longRegain {
		all = append(all, cc.Misfit{Key: "ai", What: fmt.Sprintf("a window that fills the path is %.0f packets, so "+
			"that once halved it is regained in %.0f base RTTs of %v; expected an ai of at least %.0f", holds, regain,
			n.BaseRTT.Rounded(), math.Ceil(holds/2/longRegain))})
	}
	return append(all, p.below(n)...)
}

// below returns a misfit if the target is below the base RTT.
func (p Params) below(n cc.Network) []cc.Misfit {
	t := newTarget(p, n.Link)
	got := t.delay(filling(n.Link))
	if p.BaseTarget == 0 || got > n.BaseRTT {
		return nil
	}
	auto := p
	auto.BaseTarget = 0
	return []cc.Misfit{{Key: "base_target", What: fmt.Sprintf("the target delay on a path of %[2]d links is %[1]v for "+
		"a window that fills it, and the base RTT is %[3]v, so that windows shrink without any queue; expected at "+
		"least %[4]v, or auto",
		got.Rounded(), n.Hops,
		n.BaseRTT.Rounded(), (newTarget(auto, n.Link).fixed - units.Time(n.Hops)*p.PerHop).Rounded())}}
}

// DelayTarget returns the part of the target delay of a large window that is left for queues. It is
// negative if the idle path takes longer than the target.
func (p Params) DelayTarget(l cc.Link) units.Time {
	t := newTarget(p, l)
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
