package lab

import (
	"fmt"
	"strings"

	"weft/transport/cc/pc4"
	"weft/units"
)

var (
	baseRates  = choice{built: []string{"controller", "observed", "table", "off"}}
	roundTrips = choice{built: []string{"base", "measured"}}
)

func (c *section) pc4() Section {
	var p PC4
	var okTarget, okEpsilon bool
	target := c.field("target_qtime")
	p.TargetQtime, okTarget = target.qtime()
	interval := c.field("adjust_interval")
	var okInterval bool
	p.AdjustInterval, okInterval = interval.roundTrips()
	ai := c.field("ai")
	p.AI, _ = ai.percent()
	p.HAI, _ = c.field("hai").percent()
	p.Beta, _ = c.field("beta").share(0.001, 1)
	p.MaxMDF, _ = c.field("max_mdf").share(0.001, 0.999)
	paced := c.field("paced_below")
	p.PacedBelow, _ = paced.decimal(1, 1000)
	p.BaseRate, _ = c.field("base_rate").enum(baseRates)
	p.Initial, p.InitialWindow = c.field("initial").initial()
	rtt := c.field("rtt")
	if p.RTT, _ = rtt.enum(roundTrips); p.RTT == "measured" {
		paced.idle(rtt, "with rtt: measured every window is paced; leave it out, or expected rtt: base")
	}
	p.RTOMin, _ = quantity(c.field("rto_min"), units.ParseTime, units.Microsecond, maxTimer)
	p.Epsilon, okEpsilon = quantity(c.field("epsilon"), units.ParseTime, 0, units.Millisecond)
	if okTarget && okEpsilon && p.TargetQtime != Scaled && p.TargetQtime <= p.Epsilon {
		ai.idle(target, "is added when there is a queue below target_qtime, but %v is not above epsilon, %v, up to which there is none; leave it out, or expected a longer target_qtime",
			p.TargetQtime, p.Epsilon)
	}
	if okInterval && p.AdjustInterval == 0 {
		for _, name := range []string{"target_qtime", "ai", "hai", "beta", "epsilon"} {
			c.field(name).idle(interval, "is about adjusting rates, and adjust_interval is off; leave it out, or expected adjust_interval: 2rtt")
		}
	}
	return p
}

// qtime reads a queueing target: a time, or scaled.
func (f field) qtime() (units.Time, bool) {
	if f.n != nil && f.n.kind == scalar && f.n.text == "scaled" {
		f.record("scaled")
		return Scaled, true
	}
	return quantity(f, units.ParseTime, 0, maxTimer)
}

// roundTrips reads a time in base RTTs, such as 1.25rtt, above 1; off is 0.
func (f field) roundTrips() (float64, bool) {
	if f.n != nil && f.n.kind == scalar && f.n.text == "off" {
		f.record("off")
		return 0, true
	}
	return read(f, "a time in base RTTs such as 1.25rtt, or off", func(text string) (float64, error) {
		number, ok := strings.CutSuffix(text, "rtt")
		v, err := parseDecimal(number)
		switch {
		case !ok || err != nil:
			return 0, fmt.Errorf("%q is not a time in base RTTs; expected one such as 1.25rtt, or off", clip(text))
		case v <= 1 || v > 1000:
			return 0, fmt.Errorf("%q is out of range; expected more than 1rtt, up to 1000rtt (PC4 paper, section III-C)", clip(text))
		}
		return v, nil
	}, func(v float64) string { return showDecimal(v) + "rtt" })
}

// percent reads a share of the base rate in percent.
func (f field) percent() (float64, bool) {
	return read(f, "a percentage of the base rate such as 0.5%",
		between(units.ParsePercent, 0, 1, units.FormatPercent), units.FormatPercent)
}

// initial reads what a flow starts with: base-rate, line, or a window in bytes.
func (f field) initial() (string, units.Bytes) {
	if f.n != nil && f.n.kind == scalar && strings.IndexAny(f.n.text, "-0123456789") == 0 {
		window, _ := quantity(f, units.ParseBytes, 1, maxWindow)
		return "window", window
	}
	how, _ := read(f, "base-rate, line, or a window such as 10KB", func(text string) (string, error) {
		if text != "base-rate" && text != "line" {
			return "", fmt.Errorf("unknown value %q%s; expected base-rate, line, or a window such as 10KB",
				clip(text), f.d.nearest(text, []string{"base-rate", "line"}))
		}
		return text, nil
	}, func(v string) string { return v })
	return how, 0
}

// Connection returns the parameters of PC4.
func (p PC4) Connection(units.Bandwidth) Connection {
	return Connection{Timeouts: Timeouts{RTOMin: p.RTOMin}, Params: pc4.Params{
		TargetQtime: p.TargetQtime, AdjustInterval: p.AdjustInterval, AI: p.AI, HAI: p.HAI,
		Beta: p.Beta, MaxMDF: p.MaxMDF, PacedBelow: p.PacedBelow, BaseRate: p.BaseRate,
		Initial: p.Initial, InitialWindow: p.InitialWindow, RTT: p.RTT, Epsilon: p.Epsilon,
	}}
}
