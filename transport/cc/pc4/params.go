package pc4

import (
	"fmt"
	"math"

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
	AtWindow   = "window" // Params.InitialWindow per base RTT
)

// Which round-trip time Algorithm 2, line 12, multiplies with.
const (
	BaseRTT     = "base"     // of the idle path (text: "base_rate × RTT", "average RTT close to the base RTT")
	MeasuredRTT = "measured" // of the packet acknowledged last
)

// Scaled as TargetQtime lets the target follow the baseline and the number of flows (section III-C).
const Scaled units.Time = -1

// Params are the parameters of PC4. Defaults returns a full set; Check says what is wrong with one.
type Params struct {
	TargetQtime    units.Time  // at least 0, or Scaled
	AdjustInterval float64     // in base RTTs, above 1 ("set to exceed one RTT"); 0: the rate is never adjusted, and is the base rate alone (section IV-B)
	AI, HAI        float64     // added per interval, as a share of the base rate (without one: of a packet per base RTT)
	Beta           float64     // β, above 0, at most 1
	MaxMDF         float64     // max_mdf, above 0, below 1
	BaseRate       string      // Controller, Observed, Table, Off
	Initial        string      // AtBaseRate, AtLine, AtWindow
	InitialWindow  units.Bytes // when Initial is AtWindow, at least 1
	RTT            string      // BaseRTT, MeasuredRTT
	Epsilon        units.Time  // delays up to this are no queueing: what the clocks cannot tell apart
	PacedBelow     float64     // windows of fewer packets are paced; 0: DefaultPacedBelow; the paper's is 1
}

// DefaultPacedBelow is the number of packets below which a window is paced (docs/adr/0010).
const DefaultPacedBelow = 4

// Defaults returns the parameters that docs/adr/0011 arrives at.
func Defaults() Params {
	return Params{
		TargetQtime:    2 * units.Microsecond,
		AdjustInterval: 2,
		AI:             0.02,
		HAI:            0.04,
		Beta:           0.4,
		MaxMDF:         0.5,
		BaseRate:       Controller,
		Initial:        AtBaseRate,
		InitialWindow:  10 * units.KB,
		RTT:            BaseRTT,
		Epsilon:        100 * units.Nanosecond,
		PacedBelow:     DefaultPacedBelow,
	}
}

// Check returns an error naming the first parameter that is out of range.
func (p Params) Check() error {
	switch {
	case p.TargetQtime < 0 && p.TargetQtime != Scaled:
		return fmt.Errorf("pc4: target queueing time %d ps is negative", p.TargetQtime)
	case p.AdjustInterval != 0 && !(p.AdjustInterval > 1) || math.IsInf(p.AdjustInterval, 0):
		return fmt.Errorf("pc4: adjust interval of %v base RTTs does not exceed one", p.AdjustInterval)
	case !(p.AI >= 0 && p.AI <= 1), !(p.HAI >= 0 && p.HAI <= 1):
		return fmt.Errorf("pc4: increments ai %v and hai %v must be between 0 and 1", p.AI, p.HAI)
	case !(p.Beta > 0 && p.Beta <= 1):
		return fmt.Errorf("pc4: beta %v is not above 0 and at most 1", p.Beta)
	case !(p.MaxMDF > 0 && p.MaxMDF < 1):
		return fmt.Errorf("pc4: max_mdf %v is not between 0 and 1", p.MaxMDF)
	case !(p.PacedBelow >= 0):
		return fmt.Errorf("pc4: pacing below %v packets", p.PacedBelow)
	case p.Epsilon < 0:
		return fmt.Errorf("pc4: epsilon %d ps is negative", p.Epsilon)
	case p.Initial == AtWindow && p.InitialWindow < 1:
		return fmt.Errorf("pc4: initial window %d is not positive", p.InitialWindow)
	}
	return p.checkNames()
}

func (p Params) checkNames() error {
	switch p.BaseRate {
	case Controller, Observed, Table, Off:
	default:
		return fmt.Errorf("pc4: base rate source %q is not %s, %s, %s or %s", p.BaseRate, Controller, Observed, Table, Off)
	}
	switch p.Initial {
	case AtBaseRate, AtLine, AtWindow:
	default:
		return fmt.Errorf("pc4: initial rate %q is not %s, %s or %s", p.Initial, AtBaseRate, AtLine, AtWindow)
	}
	switch p.RTT {
	case BaseRTT, MeasuredRTT:
	default:
		return fmt.Errorf("pc4: rtt %q is not %s or %s", p.RTT, BaseRTT, MeasuredRTT)
	}
	return nil
}
