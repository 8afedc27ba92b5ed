package uec

import (
	"weft/params"
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

// Params are the parameters of the transport. The symbols of the simulator are in uec.cpp, in
// UecSrc::initNsccParams unless another function is named.
type Params struct {
	CC        Control
	Paths     Choice
	Entropies int     // entropy values, each a source port; a power of two
	MaxCWND   float64 // maximum window, in bandwidth-delay products of the network; also the credit at the start
	CWND      int     // initial window in packets; 0: the maximum

	// NSCC.
	Target    units.Time // queueing delay to settle at; 0: TargetRTT of the network
	TargetRTT float64    // see Target
	EWMA      float64    // weight of the newest delay in the average
	Alpha     float64    // proportional increase: packets per window at a delay of 0, at the reference network
	Fair      float64    // fair increase: packets per window, likewise
	Eta       float64    // addition per round trip: packets, likewise
	Fast      float64    // fast increase: share of what is acknowledged, likewise
	FastBelow units.Time // fast increase is for delays below it
	Gamma     float64    // strength of the multiplicative decrease
	MaxMDF    float64    // the largest multiplicative decrease
	QAGate    int        // quick adapt if less than the maximum window divided by 2 to this power has arrived
	QAHigh    float64    // quick adapt at delays above this, in targets

	// RCCC.
	CreditRate float64     // credits are granted at this share of the line rate
	PerCredit  units.Bytes // credit of one message
}

// Keys implements params.Section.
func (p *Params) Keys() []params.Key {
	const most, htsim = 1000, "uet-htsim, uec.cpp: "
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
		params.New("cc", params.Option(&p.CC, "nscc", "rccc", "both"),
			"Windows of the sender, credits of the receiver, or both.").
			Default("nscc", "uet-htsim, main_uec.cpp: sender_driven"),
		params.New("paths", params.Option(&p.Paths, "mixed", "reps", "bitmap", "oblivious", "ecmp"),
			"How packets choose paths: return on those that were free (reps), skip those that were not (bitmap), "+
				"the first and else the second (mixed), all in turn, or one.").
			Default("mixed", "uet-htsim, main_uec.cpp: load_balancing_algo"),
		params.New("entropies", params.Integer(&p.Entropies, 1, MaxPaths),
			"Source ports per connection, a power of two.").
			Default("64", "uet-htsim, main_uec.cpp: path_entropy_size").Only(spread),
		params.New("max_cwnd", params.Decimal(&p.MaxCWND, 0.1, most),
			"Maximum window, and credit at the start, in network BDPs.").
			Default("1.5", htsim+"initNscc, initRccc"),
		params.New("cwnd", params.Integer(&p.CWND, 1, 100_000).Or("auto", 0),
			"Initial window in packets; auto: the maximum.").
			Default("auto", htsim+"initNscc").Only(window),
		params.New("target", params.Time(&p.Target, units.Nanosecond, units.Second).Or("auto", 0),
			"Queueing delay to settle at; auto: target_rtt.").
			Default("auto", htsim+"_target_Qdelay").Only(window),
		params.New("target_rtt", params.Decimal(&p.TargetRTT, 0.001, most),
			"Target in base RTTs of the network.").
			Default("0.75", htsim+"_target_Qdelay with trimming; 1 without").
			Only(func() (bool, string) {
				if p.Target != 0 {
					return false, "target is given; leave one of them out"
				}
				return window()
			}),
		params.New("ewma", params.Gain(&p.EWMA), "Weight of the newest delay.").
			Default("0.0125", htsim+"_delay_alpha").Only(window),
		params.New("alpha", params.Decimal(&p.Alpha, 0, most),
			"Proportional increase (packets at 100Gbps, 12us and no delay, scaled).").
			Default("4", htsim+"_alpha").Only(window),
		params.New("fair", params.Decimal(&p.Fair, 0, most), "Fair increase (likewise).").
			Default("5", htsim+"_fi").Only(window),
		params.New("eta", params.Decimal(&p.Eta, 0, most), "Addition per round trip (likewise).").
			Default("0.15", htsim+"_eta").Only(window),
		params.New("fast", params.Decimal(&p.Fast, 0, most),
			"Fast increase: share of what is acknowledged (likewise).").
			Default("0.25", htsim+"_fi_scale").Only(window),
		params.New("fast_below", params.Time(&p.FastBelow, units.Nanosecond, units.Second),
			"Fast increase applies after a window of delays below it.").
			Default("1us", htsim+"fast_increase").Only(window),
		params.New("gamma", params.Share(&p.Gamma, 0.001, 1),
			"Decrease: window × (1 - gamma (d - target) / d); d: average queueing delay.").
			Default("0.8", htsim+"_gamma").Only(window),
		params.New("max_mdf", params.Share(&p.MaxMDF, 0.001, 0.999), "Maximum decrease.").
			Default("0.5", htsim+"multiplicative_decrease").Only(window),
		params.New("qa_gate", params.Integer(&p.QAGate, 0, 30),
			"Quick adapt if less than the maximum window / 2^qa_gate arrived in a round trip.").
			Default("3", htsim+"_qa_gate").Only(window),
		params.New("qa_high", params.Decimal(&p.QAHigh, 0, most), "Quick adapt at delays above this, in targets.").
			Default("4", htsim+"_qa_threshold").Only(window),
		params.New("credit_rate", params.Share(&p.CreditRate, 0.01, 1), "Share of the line rate that is granted.").
			Default("0.99", "uet-htsim, main_uec.cpp: UecPullPacer").Only(credit),
		params.New("per_credit", params.Bytes(&p.PerCredit, 256, units.MB), "Credit of one message.").
			Default("16KiB", htsim+"_credit_per_pull, four packets").Only(credit),
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
