package pc4

import (
	"fmt"
	"strings"

	"weft/params"
	"weft/units"
)

// Where the receiver takes the number of incoming flows from.
const (
	Controller = "controller" // the controller's plan (section III-A: "centralized controllers")
	Observed   = "observed"   // the packets that arrive: a flow counts from its first packet to its last
	Table      = "table"      // the participants of the collective, as Table I has it, also while fewer flows are active
	Off        = "off"        // no base rate (section IV-C): AIMD alone
)

// What a connection starts with before its first acknowledgement; the paper does not say.
const (
	AtBaseRate = "base-rate" // the planned base rate; the line rate when none is planned
	AtLine     = "line"
	AtWindow   = "window" // Start.InitialWindow per base RTT
)

// Which round-trip time Algorithm 2, line 12, multiplies with.
const (
	BaseRTT     = "base"     // of the idle path (text: "base_rate × RTT", "average RTT close to the base RTT")
	MeasuredRTT = "measured" // of the packet acknowledged last
)

// Scaled as TargetQtime lets the target follow the baseline and the number of flows (section III-C).
const Scaled units.Time = -1

// Params are the parameters of PC4 (paper, Algorithms 1 and 2; docs/adr for what it leaves open).
type Params struct {
	TargetQtime    units.Time // at least 0, or Scaled
	AdjustInterval float64    // in base RTTs, above 1 ("set to exceed one RTT"); 0: the rate is never adjusted, and is the base rate alone (section IV-B)
	AI, HAI        float64    // added per interval, as a share of the base rate (without one: of a packet per base RTT)
	Beta           float64    // β
	MaxMDF         float64    // max_mdf
	PacedBelow     float64    // windows of fewer packets are paced; the paper's is 1
	BaseRate       string     // Controller, Observed, Table, Off
	Start
	RTT     string     // BaseRTT, MeasuredRTT
	Epsilon units.Time // delays up to this are no queueing: what the clocks cannot tell apart
}

// Start is what a connection starts with.
type Start struct {
	Initial       string      // AtBaseRate, AtLine, AtWindow
	InitialWindow units.Bytes // when Initial is AtWindow
}

// Keys implements params.Section.
func (p *Params) Keys() []params.Key {
	const noValue = "ours, docs/adr/0011: the PC4 paper gives no value"
	return []params.Key{
		params.New("target_qtime", params.Time(&p.TargetQtime, 0, 10*units.Second).Or("scaled", Scaled),
			"Target one-way queueing delay; scaled: by baseline and flow count.").
			Default("2us", "ours: the PC4 paper recommends tuning it (section IV-C)"),
		params.New("adjust_interval", roundTrips(&p.AdjustInterval), "Minimum between adjustments, above 1 RTT; off: rates stay at the base rate.").
			Default("2rtt", "ours, docs/adr/0011: the PC4 paper wants more than one RTT (section III-C)"),
		params.New("ai", params.Percent(&p.AI, "the base rate"), "Additive increase, of the base rate.").Default("2%", noValue),
		params.New("hai", params.Percent(&p.HAI, "the base rate"), "Additive increase without queueing, of the base rate.").Default("4%", noValue),
		params.New("beta", params.Share(&p.Beta, 0.001, 1), "Multiplicative decrease factor.").Default("0.4", noValue),
		params.New("max_mdf", params.Share(&p.MaxMDF, 0.001, 0.999), "Maximum decrease.").Default("0.5", "ours: as in Swift; the PC4 paper gives no value"),
		params.New("paced_below", params.Decimal(&p.PacedBelow, 1, 1000), "Pace windows of fewer packets.").
			Default("4", "ours, docs/adr/0010: the PC4 paper paces below 1 packet (section III-C)"),
		params.New("base_rate", params.Word(&p.BaseRate, Controller, Observed, Table, Off), "How the receiver counts incoming flows.").
			Default(Controller, "PC4 paper, section II-A: centralized controllers know the traffic"),
		params.New("initial", initial(&p.Start), "Initial rate, or window in bytes.").
			Default(AtBaseRate, "ours: the only start that fits the queues of the PC4 paper, Table II"),
		params.New("rtt", params.Word(&p.RTT, BaseRTT, MeasuredRTT), "RTT that converts rates to windows.").
			Default(BaseRTT, "PC4 paper, section III-A: base_rate x RTT"),
		params.New("epsilon", params.Time(&p.Epsilon, 0, units.Millisecond), "One-way delays up to this count as zero.").
			Default("100ns", "PC4 paper, section III-B: what the clocks cannot tell apart"),
	}
}

// Rules refuses what would do nothing.
func (p *Params) Rules(r params.Rules) {
	if p.RTT == MeasuredRTT {
		r.Idle("paced_below", "rtt", "with rtt: measured every window is paced; leave it out, or expected rtt: base")
	}
	if r.Good("target_qtime", "epsilon") && p.TargetQtime != Scaled && p.TargetQtime <= p.Epsilon {
		r.Idle("ai", "target_qtime", "is added when there is a queue below target_qtime, but %v is not above epsilon, %v, up to which there is none; leave it out, or expected a longer target_qtime",
			p.TargetQtime, p.Epsilon)
	}
	if r.Good("adjust_interval") && p.AdjustInterval == 0 {
		for _, key := range []string{"target_qtime", "ai", "hai", "beta", "epsilon"} {
			r.Idle(key, "adjust_interval", "is about adjusting rates, and adjust_interval is off; leave it out, or expected adjust_interval: 2rtt")
		}
	}
}

// roundTrips is a time in base RTTs, such as 1.25rtt, above 1; off is 0.
func roundTrips(to *float64) params.Value {
	const expected = "a time in base RTTs such as 1.25rtt, or off"
	return params.Custom(to, func(text string) (float64, error) {
		number, ok := strings.CutSuffix(text, "rtt")
		v, err := params.ParseDecimal(number)
		if !ok || err != nil {
			return 0, fmt.Errorf("%q is not a time in base RTTs; expected one such as 1.25rtt, or off", params.Clip(text))
		}
		return v, nil
	}, func(v float64) string { return params.ShowDecimal(v) + "rtt" }, expected, func() params.Form { return params.Form{Patterns: []string{params.Plain + "rtt"}, Example: "1.25rtt"} }).
		Within("more than 1rtt, up to 1000rtt (PC4 paper, section III-C)", func(v float64) bool { return v > 1 && v <= 1000 }).Or("off", 0)
}

// initial is base-rate, line, or a window in bytes.
func initial(to *Start) params.Value {
	const expected = "base-rate, line, or a window such as 10KB"
	return params.Custom(to, func(text string) (Start, error) {
		if strings.IndexAny(text, "-0123456789") != 0 {
			return Start{}, &params.Unknown{Word: text, Known: []string{AtBaseRate, AtLine}, Expected: expected}
		}
		window, err := units.ParseBytes(text)
		return Start{AtWindow, window}, err
	}, func(s Start) string { return s.InitialWindow.String() }, expected, func() params.Form { return params.Form{Patterns: []string{units.BytesPattern()}, Example: "10KB"} }).
		Within("1B to 1GB", func(s Start) bool {
			return s.Initial == AtWindow && s.InitialWindow >= 1 && s.InitialWindow <= units.GB
		}).
		Or(AtBaseRate, Start{Initial: AtBaseRate}).Or(AtLine, Start{Initial: AtLine})
}

// Defaults returns the parameters that docs/adr/0011 arrives at.
func Defaults() (p Params) {
	params.SetDefaults(&p)
	return p
}

// Exceeds implements cc.Fitted.
func (p Params) Exceeds(_ string, _ units.Bandwidth, bdp units.Bytes) (key, why string) {
	if p.Initial == AtWindow && p.InitialWindow > bdp {
		return "initial", fmt.Sprintf("%v is more than the line brings in a base RTT, at most %v here; expected at most that, or line",
			p.InitialWindow, bdp)
	}
	return "", ""
}

// RatesByTable says that base rates are those of Table I, also while fewer flows are active than a collective has.
func (p Params) RatesByTable() bool { return p.BaseRate == Table }

// Check returns an error naming the first parameter that is out of range.
func (p Params) Check() error { return params.Check("pc4", &p) }
