package uec

import (
	"fmt"

	"weft/params"
	"weft/transport/cc"
	"weft/units"
)

// MaxPaths is the largest number of entropy values of a connection.
const MaxPaths = 256

// Control is who controls congestion.
type Control uint8

// Kinds of Control.
const (
	NSCC Control = iota // windows of the sender
	RCCC                // credits of the receiver
	Both
)

// Choice is how packets choose among the entropy values of a connection.
type Choice uint8

// Kinds of Choice. Package path has them.
const (
	Mixed Choice = iota
	REPS
	Bitmap
	Oblivious
	ECMP // there is one
)

// Params are the parameters of the transport. In parentheses are the symbols of the simulator, in
// uec.cpp unless another file is named. "At the reference network" is at 100 Gb/s and 12 us, from
// which they are scaled to others (UecSrc::initNsccParams).
type Params struct {
	CC        Control // main_uec.cpp: sender_driven, receiver_driven
	Paths     Choice  // main_uec.cpp: load_balancing_algo
	Entropies int     // entropy values, each a source port; a power of two (main_uec.cpp: path_entropy_size)
	// MaxCWND is the maximum window, and the credit at the start, in bandwidth-delay products of
	// the network (_maxwnd, _configured_maxwnd).
	MaxCWND float64
	CWND    int // initial window in packets; 0: the maximum (UecSrc::initNscc)

	// NSCC.
	Target    units.Time      // queueing delay to settle at; 0: TargetRTT of the network (_target_Qdelay)
	TargetRTT float64         // the simulator has 0.75 with trimming, and 1 without
	EWMA      float64         // weight of the newest delay in the average (_delay_alpha)
	Alpha     cc.Proportional // (_alpha)
	Fair      float64         // fair increase: packets per window, likewise (_fi)
	Eta       float64         // addition per round trip: packets, likewise (_eta)
	Fast      float64         // fast increase: share of what is acknowledged, likewise (_fi_scale)
	FastBelow units.Time      // fast increase follows a window of delays below it (fast_increase)
	// Gamma is the strength of the multiplicative decrease: the window times
	// 1 - Gamma (d - target) / d, for an average delay d (_gamma).
	Gamma  float64
	MaxMDF float64 // the largest multiplicative decrease (multiplicative_decrease)
	QAGate int     // quick adapt if less than the maximum window / 2^QAGate arrived in a period (_qa_gate)
	QAHigh float64 // quick adapt at delays above this, in targets (_qa_threshold)

	// RCCC.
	CreditRate float64     // credits are granted at this share of the line rate (main_uec.cpp: UecPullPacer)
	PerCredit  units.Bytes // credit of one message (_credit_per_pull)
}

// target returns the queueing delay at which the window settles.
func (p Params) target(l cc.Link) units.Time {
	if p.Target > 0 {
		return p.Target
	}
	return max(units.Time(p.TargetRTT*float64(l.NetBaseRTT())), 1)
}

// Misfits implements cc.Conditional: an increase that is too steep for the path, credits that
// leave it empty, and credits alone for more than its slowest link carries.
func (p Params) Misfits(n cc.Network) (all []cc.Misfit) {
	if p.Credited() {
		all = cc.Sparing("credit_rate", p.CreditRate)
	}
	if p.Windowed() {
		all = append(all, p.Alpha.Misfits(n.Link, p.target(n.Link))...)
	} else if granted := units.Bandwidth(p.CreditRate * float64(n.Line)); granted > n.Narrowest() {
		all = append(all, cc.Misfit{Key: "cc", What: fmt.Sprintf("receivers grant credits for %v, and the slowest "+
			"link of the path carries %v: what is sent beyond that is trimmed or waits inside the network; expected "+
			"cc: both, or nscc", granted, n.Narrowest())})
	}
	return all
}

// htsim is the source of all defaults. The fields of Params name the symbols.
const htsim = "uet-htsim"

// Keys implements params.Section.
func (p *Params) Keys() []params.Key {
	const most = 1000
	window := func() (bool, string) {
		return p.CC != RCCC, "cc: rccc has no window; leave it out"
	}
	credit := func() (bool, string) {
		return p.CC != NSCC, "cc: nscc has no credits; leave it out, or expected cc: rccc or both"
	}
	spread := func() (bool, string) {
		return p.Paths != ECMP, "paths: ecmp has one; leave it out"
	}
	return []params.Key{
		params.New("cc", params.Option(&p.CC, "nscc", "rccc", "both"), "Windows of senders, credits of receivers.").
			Default("nscc", htsim),
		params.New("paths", params.Option(&p.Paths, "mixed", "reps", "bitmap", "oblivious", "ecmp"),
			"Choice of paths (docs/uec.md).").Default("mixed", htsim),
		params.New("entropies", params.Integer(&p.Entropies, 1, MaxPaths), "Source ports; a power of two.").
			Default("64", htsim).Only(spread),
		params.New("max_cwnd", params.Decimal(&p.MaxCWND, 0.1, most), "Maximum window, or first credit, in BDPs.").
			Default("1.5", htsim),
		params.New("cwnd", params.Integer(&p.CWND, 1, 100_000).Or("auto", 0),
			"First window in packets; auto: maximum.").
			Default("auto", htsim).Only(window).MayBe("auto"),
		params.New("target", params.Time(&p.Target, units.Nanosecond, units.Second).Or("auto", 0),
			"Queueing delay to settle at; auto: target_rtt.").Default("auto", htsim).Only(window),
		params.New("target_rtt", params.Share(&p.TargetRTT, 0.001, most), "Target in base RTTs.").
			Default("0.75", htsim).
			Only(func() (bool, string) {
				if p.Target != 0 {
					return false, "target is given; leave one of them out"
				}
				return window()
			}),
		params.New("ewma", params.Gain(&p.EWMA), "Weight of the newest delay.").Default("0.0125", htsim).Only(window),
		params.New("alpha", params.Decimal((*float64)(&p.Alpha), 0, most).Or("auto", float64(cc.Auto)),
			"Proportional increase; auto: about 4 packets.").Default("auto", htsim).Only(window),
		params.New("fair", params.Decimal(&p.Fair, 0, most), "Fair increase, in packets.").
			Default("5", htsim).Only(window),
		params.New("eta", params.Decimal(&p.Eta, 0, most), "Packets added per RTT.").
			Default("0.15", htsim).Only(window),
		params.New("fast", params.Decimal(&p.Fast, 0, most), "Fast increase, per packet.").
			Default("0.25", htsim).Only(window),
		params.New("fast_below", params.Time(&p.FastBelow, units.Nanosecond, units.Second),
			"Delays of fast increase.").Default("1us", htsim).Only(window),
		params.New("gamma", params.Share(&p.Gamma, 0.001, 1), "As in strack.").Default("0.8", htsim).Only(window),
		params.New("max_mdf", params.Share(&p.MaxMDF, 0.001, 0.999), "Maximum decrease.").
			Default("0.5", htsim).Only(window),
		params.New("qa_gate", params.Integer(&p.QAGate, 0, 30), "Quick adapt below max_cwnd / 2^qa_gate.").
			Default("3", htsim).Only(window),
		params.New("qa_high", params.Decimal(&p.QAHigh, 0, most), "Quick adapt above, in targets.").
			Default("4", htsim).Only(window),
		params.New("credit_rate", params.Share(&p.CreditRate, 0.01, 1), "Share of the line that is granted.").
			Default("0.99", htsim).Only(credit),
		params.New("per_credit", params.Bytes(&p.PerCredit, 256, units.MB), "Bytes per credit.").
			Default("16KiB", htsim).Only(credit),
	}
}

// Rules implements params.Ruled. It rejects a number of paths that cannot be taken in turn.
func (p *Params) Rules(r params.Rules) {
	if n := p.Entropies; n&(n-1) != 0 {
		r.Refuse("entropies", "%d is not a power of two", n)
	}
}

// Check returns an error that names the first parameter out of range, or nil.
func (p Params) Check() error { return params.Validate("uec", &p) }

// SourcePorts returns the number of source ports of a connection: one per entropy value.
func (p Params) SourcePorts() int {
	if p.Paths == ECMP {
		return 1
	}
	return p.Entropies
}

// Windowed reports whether the sender keeps a window.
func (p *Params) Windowed() bool { return p.CC != RCCC }

// Credited reports whether the receiver grants credits.
func (p *Params) Credited() bool { return p.CC != NSCC }
