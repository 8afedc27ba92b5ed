package lab

import (
	"fmt"
	"slices"
	"strings"

	"weft/transport/cc/dcqcn"
	"weft/units"
)

var (
	dcqcnModes = choice{built: []string{"paper", "mellanox"}}
	clamps     = choice{built: []string{"always", "after-increase", "after-bytes"}}
	splits     = choice{built: []string{"messages", "round-robin"}}
	recoveries = choice{built: []string{"go-back-n", "selective-repeat"}}
)

const (
	maxQPs    = 16
	maxStages = 1000
	leastTick = 100 * units.Nanosecond // of the clocks of a NIC
)

// roce reads RoCEv2 with DCQCN. What is not written is as in the preset; the rest of the defaults are for modes other
// than the preset's.
func (c *section) roce() Section {
	var r RoCE
	r.Preset, _ = c.field("preset").enum(presetNames())
	r.Mode, _ = c.field("mode").enum(dcqcnModes)
	r.Clamp, _ = c.field("clamp").enum(clamps)
	r.CNPInterval = c.field("cnp_interval").timer(0)
	r.G, _ = c.field("g").gain()
	r.InitialAlpha, _ = c.field("initial_alpha").gain()
	r.AlphaInterval = c.field("alpha_interval").timer(leastTick)
	if f, ok := c.ofMode("alpha_first", "paper", r.Mode); ok {
		r.AlphaFirst = f.flag()
	}
	if f, ok := c.ofMode("decrease_interval", "mellanox", r.Mode); ok {
		r.DecreaseInterval = f.timer(leastTick)
	}
	if f, ok := c.ofMode("first_rate", "mellanox", r.Mode); ok {
		r.FirstRate, _ = f.share(0.001, 1)
	}
	r.MinRate, _ = c.field("min_rate").lineRate()
	r.RPTimer = c.field("rp_timer").timer(leastTick)
	if f, ok := c.ofMode("byte_counter", "paper", r.Mode); ok {
		r.ByteCounter = unless(f, "off", func(f field) (units.Bytes, bool) {
			return quantity(f, units.ParseBytes, 1, maxSize)
		})
	}
	r.F = c.field("f").integer(1, maxStages)
	r.RAI, _ = c.field("rai").lineRate()
	r.RHAI, _ = c.field("rhai").lineRate()
	qps, split, recovery, repath := c.field("qps"), c.field("split"), c.field("recovery"), c.field("repath")
	r.QPs = qps.integer(1, maxQPs)
	r.Split, _ = split.enum(splits)
	r.Recovery, _ = recovery.enum(recoveries)
	r.Repath = unless(repath, "off", func(f field) (int, bool) { return f.integer(1, maxStages), true })
	if r.QPs == 1 {
		split.idle(qps, "there is one queue pair, and nothing to split; expected qps above 1, or leave it out")
	}
	r.Timeouts = c.timeouts()
	c.needsMarks()
	if c.pattern != c.path { // inside another transport
		for _, f := range []field{qps, split, recovery} {
			f.idle(field{}, "the transport around DCQCN has paths and a recovery of its own; leave it out")
		}
	}
	return r
}

// needsMarks refuses parameters of DCQCN in a network that marks nothing: no notification would ever come, and senders stay at line rate.
func (c *section) needsMarks() {
	if c.d.ecnOff.n == nil || c.d.aside > 0 || c.n == nil {
		return
	}
	for _, k := range c.n.keys {
		if slices.Contains([]string{"qps", "split", "recovery", "rto_min", "tries"}, k.name) {
			continue
		}
		c.field(k.name).idle(c.d.ecnOff, "queues.ecn is off, so that nothing is marked and DCQCN never acts; leave it out, or expected queues.ecn: on")
	}
}

// ofMode returns the field of a key that only one mode has. In the other it has no value, and may not be written.
func (c *section) ofMode(name, owner, mode string) (field, bool) {
	f := c.field(name)
	if owner == mode {
		return f, true
	}
	if f.written() && mode != "" {
		f.problem("applies to mode %s, not to %s", owner, mode)
	}
	return f, false
}

// gain reads a share above 0, which NICs and papers like to write as a fraction such as 1/256.
func (f field) gain() (float64, bool) {
	const expected = "a share above 0, up to 1, such as 1/256 or 0.4%"
	return read(f, expected, func(text string) (float64, error) {
		v, err := parseGain(text)
		if err == nil && !(v > 0 && v <= 1) {
			err = fmt.Errorf("%q is out of range; expected %s", clip(text), expected)
		}
		return v, err
	}, showDecimal)
}

func parseGain(text string) (float64, error) {
	over, under, fraction := strings.Cut(text, "/")
	switch {
	case strings.HasSuffix(text, "%"):
		return units.ParsePercent(text)
	case !fraction:
		return parseDecimal(text)
	}
	a, err := parseDecimal(over)
	if err != nil {
		return 0, err
	}
	b, err := parseDecimal(under)
	if err != nil {
		return 0, err
	}
	return a / b, nil // 0 below the line makes it infinite or no number, which is out of range
}

// Connection returns the parameters of DCQCN, and what losses are recovered from by.
func (p RoCE) Connection(line units.Bandwidth) Connection {
	return Connection{Recovery: p.Recovery, Timeouts: p.Timeouts, Params: dcqcn.Params{
		Mode: p.Mode, Clamp: p.Clamp, CNPInterval: p.CNPInterval,
		G: p.G, InitialAlpha: p.InitialAlpha, AlphaInterval: p.AlphaInterval, AlphaFirst: p.AlphaFirst,
		DecreaseInterval: p.DecreaseInterval, FirstRate: p.FirstRate, MinRate: p.MinRate.At(line),
		RPTimer: p.RPTimer, ByteCounter: p.ByteCounter, F: p.F, RAI: p.RAI.At(line), RHAI: p.RHAI.At(line),
		Repath: p.Repath,
	}}
}
