package strack

import (
	"fmt"
	"slices"

	"weft/params"
	"weft/transport/cc"
	"weft/units"
)

// MaxPaths is the largest number of paths of a connection (Algorithm 3, max_paths).
const MaxPaths = 256

// Params are the parameters of STrack (paper, Algorithms 1 to 4 and Table 1).
type Params struct {
	Target  units.Time // target_Qdelay; 0: the base RTT of the network
	High    float64    // target_Qhigh in targets (Table 1: 3; the text: "twice the target delay")
	EWMA    float64    // weight of the newest delay in the average
	Alpha   cc.Proportional
	Beta    float64 // increase above Qhigh without a mark: packets per window, before scaling
	Eta     float64 // increase for fairness: packets per base RTT, before scaling
	Gamma   float64 // γ, the strength of the multiplicative decrease
	MaxMDF  float64 // the largest multiplicative decrease (Algorithm 4, line 15: a half)
	MaxCWND float64 // maximum and initial window, in bandwidth-delay products of the network

	// MDRequiresECN decreases the window on marked packets only (section 3, scenario 4), unlike
	// Algorithm 4 as printed.
	MDRequiresECN bool

	// The readings of Algorithm 3: see path.Adaptive. FreshPaths sends each packet on the next
	// unmarked path, unlike lines 12 to 14. ForgetAfter is in base RTTs of the network.
	FreshPaths, ClearAll        bool
	PathsPerPacket, ForgetAfter float64

	// Paths is the number of paths to spray over, 1 to MaxPaths. It is a power of two if paths are
	// chosen obliviously.
	Paths int
}

// DelayTarget returns the queueing delay at which the window settles.
func (p Params) DelayTarget(l cc.Link) units.Time {
	if p.Target == 0 {
		return l.NetBaseRTT()
	}
	return p.Target
}

// Keys implements params.Section.
func (p *Params) Keys() []params.Key { return slices.Concat(p.WindowKeys(), p.PathKeys()) }

// PathKeys returns the keys of adaptive paths.
func (p *Params) PathKeys() []params.Key {
	const algorithm, most = "STrack paper, Algorithm 3", 1000
	return []params.Key{
		params.New("fresh_paths", params.Flag(&p.FreshPaths), "Never reuse an acknowledged path.").
			Default("true", "ours: with line 13 of Algorithm 3, adaptive paths are slower than spray"),
		params.New("clear_all", params.Flag(&p.ClearAll), "Skipping clears every mark.").Default("false", algorithm),
		params.New("paths_per_packet", params.Decimal(&p.PathsPerPacket, 0, MaxPaths),
			"Paths per packet of the window; 0: all.").Default("2", algorithm),
		params.New("forget_after", params.Decimal(&p.ForgetAfter, 0, most),
			"Base RTTs until marks are forgotten; 0: never.").Default("0", algorithm),
	}
}

// WindowKeys returns all other keys.
func (p *Params) WindowKeys() []params.Key {
	const table, most = "STrack paper, Table 1", 1000
	return []params.Key{
		params.New("target", params.Time(&p.Target, units.Nanosecond, units.Second).Or("auto", 0),
			"Queueing delay to settle at; auto: the base RTT.").
			Default("auto", table+": net_base_rtt"),
		params.New("high", params.Decimal(&p.High, 1, most),
			"Delay, in targets, that resets the window to what was achieved.").Default("3", table),
		params.New("ewma", params.Gain(&p.EWMA), "Weight of the newest delay.").Default("0.125", table),
		params.New("alpha", params.Decimal((*float64)(&p.Alpha), 0, most).Or("auto", float64(cc.Auto)),
			"Increase below target; auto: 4 packets at 100Gbps, 12us.").Default("auto", table),
		params.New("beta", params.Decimal(&p.Beta, 0, most), "Increase on unmarked delay, likewise.").
			Default("5", table),
		params.New("eta", params.Decimal(&p.Eta, 0, most), "Fairness increase (likewise).").Default("0.15", table),
		params.New("gamma", params.Share(&p.Gamma, 0.001, 1),
			"Decrease: window × (1 - gamma (d - target) / d); d: average queueing delay.").Default("0.8", table),
		params.New("max_mdf", params.Share(&p.MaxMDF, 0.001, 0.999), "Maximum decrease.").
			Default("0.5", "STrack paper, Algorithm 4, line 15"),
		params.New("max_cwnd", params.Decimal(&p.MaxCWND, 0.01, most), "Maximum and initial window, in network BDPs.").
			Default("1.5", "uet-htsim"),
		params.New("md_requires_ecn", params.Flag(&p.MDRequiresECN), "Decrease only on marks.").
			Default("false", "STrack paper, Algorithm 4 as printed"),
		params.New("paths", params.Integer(&p.Paths, 1, MaxPaths),
			"Source ports per connection; spray: a power of two.").
			Default("256", "STrack paper, section 4.1: up to 256 paths"),
	}
}

// shallow is the share of a base RTT below which a target is warned of: a window that is cut by a
// part of itself leaves the path empty unless a queue of about that part stood in it. With four
// flows and a base RTT of 12.7 us, targets of a tenth of it have 88 % of the line. Ours.
const shallow = 1.0 / 4

// Misfits implements cc.Conditional: an increase that is too steep for the path, and a target that
// leaves it empty.
func (p Params) Misfits(n cc.Network) []cc.Misfit {
	all := p.Alpha.Misfits(n.Link, p.DelayTarget(n.Link))
	rtt := n.NetBaseRTT()
	if least := units.Time(shallow * float64(rtt)); p.Target > 0 && p.Target < least {
		all = append(all, cc.Misfit{Key: "target", What: fmt.Sprintf("windows are cut for queues of %v, by up to "+
			"%.0f %%, and a base RTT is %v: queues run empty after a cut; expected at least %v, or auto", p.Target,
			100*min(p.MaxMDF, p.Gamma), rtt.Rounded(), least.Rounded())})
	}
	return all
}

// Rules implements params.Ruled. It rejects parameters without effect.
func (p *Params) Rules(r params.Rules) {
	if p.MDRequiresECN && r.Off("queues.ecn") {
		for _, key := range []string{"ewma", "gamma", "max_mdf"} {
			r.Idle(key, "queues.ecn", "windows shrink on marked packets only (md_requires_ecn), and queues.ecn is "+
				"off; leave it out, or expected queues.ecn: on")
		}
	}
}

// Check returns an error that names the first parameter out of range, or nil.
func (p Params) Check() error { return params.Check("strack", &p) }

// SourcePorts returns the number of source ports of a connection: one per path.
func (p Params) SourcePorts() int { return p.Paths }
