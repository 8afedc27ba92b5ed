package pc4

import (
	"fmt"
	"strings"

	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// Sources of the number of incoming flows, for Params.BaseRate.
const (
	// Controller takes the flows that the controller announced (section III-A: "centralized
	// controllers").
	Controller = "controller"
	// Observed counts the flows that are arriving: each from its first packet to its last.
	Observed = "observed"
	// Table takes the participants of the collective from Table I, even while fewer flows are
	// active.
	Table = "table"
	// Off sends no base rate (section IV-C), which leaves AIMD alone.
	Off = "off"
)

// Initial rates, for Start.Initial. The paper does not say how a connection starts.
const (
	// AtBaseRate starts at the planned base rate, or at the line rate if none is planned.
	AtBaseRate = "base-rate"
	// AtLine starts at the line rate.
	AtLine = "line"
	// AtWindow starts at Start.InitialWindow per base RTT.
	AtWindow = "window"
)

// Round-trip times that Algorithm 2, line 12, may multiply with, for Params.RTT.
const (
	// BaseRTT is that of the idle path (section III-A: "base_rate × RTT"; the text also has
	// "average RTT close to the base RTT").
	BaseRTT = "base"
	// MeasuredRTT is that of the packet acknowledged last.
	MeasuredRTT = "measured"
)

// What Algorithm 2 does with a one-way delay below zero, which clocks that disagree report, for
// Params.NegativeDelay.
const (
	// NegativeZero takes it as no queueing, so that the rate grows by hai.
	NegativeZero = "zero"
	// NegativeLiteral takes it as printed: lines 21 and 23 do not match, so lines 26 and 27
	// multiply the rate by more than 1.
	NegativeLiteral = "literal"
)

// Scaled as Params.TargetQtime scales the target with the baseline and the number of flows
// (section III-C).
const Scaled units.Time = -1

// Auto as Params.TargetQtime is 2 us, or the time of a packet on the slowest link if longer: below
// it a packet that waits for one other slows its sender down.
const Auto units.Time = -2

// autoTarget is the target of links on which a packet takes less time.
const autoTarget = 2 * units.Microsecond

// Params are the parameters of Algorithms 1 and 2. For many of them the paper gives no value;
// docs/adr/0011 says how the defaults were chosen.
type Params struct {
	// TargetQtime is the target of the one-way queueing delay: at least 0, Scaled or Auto.
	TargetQtime units.Time
	// AdjustInterval is the least time between adjustments, in base RTTs. It is above 1 (section
	// III-C: "set to exceed one RTT"). 0 turns adjustment off: the rate stays at the base rate
	// (section IV-B).
	AdjustInterval float64
	// AI and HAI are the additive increases per interval with and without queueing, as ratios of
	// the base rate. Without a base rate they are ratios of one packet per base RTT.
	AI, HAI float64
	// Beta is β, the strength of the multiplicative decrease.
	Beta float64
	// MaxMDF is max_mdf, the largest decrease in one step, as a ratio of the rate.
	MaxMDF float64
	// PacedBelow is the window in packets below which the sender paces. The paper's value is 1.
	PacedBelow float64
	// BaseRate is the source of the number of flows: Controller, Observed, Table or Off.
	BaseRate string
	Start
	// RTT is BaseRTT or MeasuredRTT.
	RTT string
	// Epsilon is the largest one-way delay that counts as no queueing, because the clocks cannot
	// tell it from zero.
	Epsilon units.Time
	// NegativeDelay is NegativeZero or NegativeLiteral.
	NegativeDelay string
}

// Start is the state of a connection before its first acknowledgement.
type Start struct {
	Initial       string      // AtBaseRate, AtLine or AtWindow
	InitialWindow units.Bytes // used if Initial is AtWindow
}

// Keys implements params.Section: the keys of transport.pc4 in a lab file.
func (p *Params) Keys() []params.Key {
	const noValue = "ours, docs/adr/0011: the PC4 paper gives no value"
	return []params.Key{
		params.New("target_qtime",
			params.Time(&p.TargetQtime, 0, 10*units.Second).Or("scaled", Scaled).Or("auto", Auto),
			"Target queueing delay; auto: 2us, at least a packet; scaled: by baseline, flows.").
			Default("auto", "ours: the PC4 paper recommends tuning it (section IV-C)"),
		params.New("adjust_interval", roundTrips(&p.AdjustInterval),
			"Minimum between adjustments, above 1 RTT; off: rates stay at the base rate.").
			Default("2rtt", "ours, docs/adr/0011: the PC4 paper wants more than one RTT (section III-C)"),
		params.New("ai", params.Percent(&p.AI, "the base rate"), "Additive increase, of the base rate.").
			Default("2%", noValue),
		params.New("hai", params.Percent(&p.HAI, "the base rate"),
			"Additive increase without queueing, of the base rate.").Default("4%", noValue),
		params.New("beta", params.Share(&p.Beta, 0.001, 1),
			"Decrease: rate × (1 - beta (q - target_qtime) / (q + idle delay)); q: one-way queueing delay.").
			Default("0.4", noValue),
		params.New("max_mdf", params.Share(&p.MaxMDF, 0.001, 0.999), "Maximum decrease.").
			Default("0.5", "ours: as in Swift; the PC4 paper gives no value"),
		params.New("paced_below", params.Decimal(&p.PacedBelow, 1, 1000), "Pace windows of fewer packets.").
			Default("4", "ours, docs/adr/0010: the PC4 paper paces below 1 packet (section III-C)"),
		params.New("base_rate", params.Word(&p.BaseRate, Controller, Observed, Table, Off),
			"How the receiver counts incoming flows.").
			Default(Controller, "PC4 paper, section II-A: centralized controllers know the traffic"),
		params.New("initial", initial(&p.Start),
			"Initial rate (base-rate: as a controller plans), or window in bytes.").
			Default(AtBaseRate, "ours: the only start that fits the queues of the PC4 paper, Table II"),
		params.New("rtt", params.Word(&p.RTT, BaseRTT, MeasuredRTT), "RTT that converts rates to windows.").
			Default(BaseRTT, "PC4 paper, section III-A: base_rate x RTT"),
		params.New("epsilon", params.Time(&p.Epsilon, 0, units.Millisecond),
			"One-way delays up to this count as zero.").
			Default("100ns", "PC4 paper, section III-B: what the clocks cannot tell apart"),
		params.New("negative_delay", params.Word(&p.NegativeDelay, NegativeZero, NegativeLiteral),
			"One-way delays below -epsilon: as zero, or as printed.").
			Default(NegativeZero, "ours, docs/adr/0155"),
	}
}

// Rules implements params.Ruled. It rejects parameters that would have no effect.
func (p *Params) Rules(r params.Rules) {
	if p.RTT == MeasuredRTT {
		r.Idle("paced_below", "rtt", "with rtt: measured every window is paced; leave it out, or expected rtt: base")
	}
	if r.Good("target_qtime", "epsilon") && p.TargetQtime >= 0 && p.TargetQtime <= p.Epsilon {
		r.Idle("ai", "target_qtime", "is added when there is a queue below target_qtime, "+
			"but %v is not above epsilon, %v, up to which there is none; "+
			"leave it out, or expected a longer target_qtime", p.TargetQtime, p.Epsilon)
	}
	if r.Good("adjust_interval") && p.AdjustInterval == 0 {
		for _, key := range []string{"target_qtime", "ai", "hai", "beta", "epsilon", "negative_delay"} {
			r.Idle(key, "adjust_interval",
				"has no effect because adjust_interval is off; leave it out, or set adjust_interval: 2rtt")
		}
	}
}

// roundTrips returns the value of a key that is a number of base RTTs above 1, such as 1.25rtt.
// "off" is 0.
func roundTrips(to *float64) params.Value {
	const expected = "a time in base RTTs such as 1.25rtt, or off"
	parse := func(text string) (float64, error) {
		number, ok := strings.CutSuffix(text, "rtt")
		v, err := params.ParseDecimal(number)
		if !ok || err != nil {
			return 0, fmt.Errorf("%q is not a time in base RTTs; expected one such as 1.25rtt, or off",
				clip.Text(text))
		}
		return v, nil
	}
	show := func(v float64) string { return params.ShowDecimal(v) + "rtt" }
	form := func() params.Form {
		return params.Form{Patterns: []string{params.Plain + "rtt"}, Example: "1.25rtt"}
	}
	inRange := func(v float64) bool { return v > 1 && v <= 1000 }
	return params.Custom(to, parse, show, expected, form).
		Within("more than 1rtt, up to 1000rtt (PC4 paper, section III-C)", inRange).Or("off", 0)
}

// initial returns the value of the key initial: base-rate, line, or a window in bytes.
func initial(to *Start) params.Value {
	const expected = "base-rate, line, or a window such as 10KB"
	parse := func(text string) (Start, error) {
		if strings.IndexAny(text, "-0123456789") != 0 {
			return Start{}, &params.Unknown{Word: text, Known: []string{AtBaseRate, AtLine}, Expected: expected}
		}
		window, err := units.ParseBytes(text)
		return Start{AtWindow, window}, err
	}
	show := func(s Start) string { return s.InitialWindow.String() }
	form := func() params.Form {
		return params.Form{Patterns: []string{units.BytesPattern()}, Example: "10KB"}
	}
	inRange := func(s Start) bool {
		return s.Initial == AtWindow && s.InitialWindow >= 1 && s.InitialWindow <= units.GB
	}
	return params.Custom(to, parse, show, expected, form).Within("1B to 1GB", inRange).
		Or(AtBaseRate, Start{Initial: AtBaseRate}).Or(AtLine, Start{Initial: AtLine})
}

// Defaults returns the parameters that docs/adr/0011 recommends.
func Defaults() (p Params) {
	params.SetDefaults(&p)
	return p
}

// Exceeds implements cc.Fitted: an initial window larger than the bandwidth-delay product is an
// error.
func (p Params) Exceeds(_ string, _ units.Bandwidth, bdp units.Bytes) (key, why string) {
	if p.Initial == AtWindow && p.InitialWindow > bdp {
		return "initial", fmt.Sprintf("%v is more than the link carries in a base RTT, at most %v here; "+
			"expected at most that, or line", p.InitialWindow, bdp)
	}
	return "", ""
}

// RatesByTable reports whether base rates are those of Table I even while fewer flows of the
// collective are active.
func (p Params) RatesByTable() bool { return p.BaseRate == Table }

// RatesByController reports whether a controller, which knows the traffic of all collectives,
// announces base rates.
func (p Params) RatesByController() bool { return p.BaseRate == Controller }

// Check returns an error that names the first parameter out of range, or nil.
func (p Params) Check() error { return params.Check("pc4", &p) }
