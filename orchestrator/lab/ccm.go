package lab

import (
	"weft/transport/cc/ccm"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/pc4"
	"weft/transport/cc/swift"
	"weft/units"
)

// CCM holds the parameters of coordinated congestion management: of source hosts, and of the switches, which all do it.
type CCM struct {
	Inner    string  // roce, swift, pc4: the congestion control inside
	Section  Section // its parameters
	Recovery string  // selective-repeat, go-back-n
	Timeout  units.Time
	Paths    int // source ports that a source may change between

	Light     Size // a port is light up to here
	Congested Size // and congested above here
	Every     units.Time
	Refresh   units.Time
	Strict    bool
	Loss      float64 // of notifications
}

var inners = choice{built: []string{"roce", "swift", "pc4"}}

// ccm reads CCM. The section of the congestion control inside has the keys and defaults that it has as a transport of its own.
func (c *section) ccm() Section {
	var p CCM
	p.Inner, _ = c.field("inner").enum(inners)
	for _, t := range []struct {
		kind string
		read func(*section) Section
	}{{"roce", (*section).roce}, {"swift", (*section).swift}, {"pc4", (*section).pc4}} {
		f := c.field(t.kind)
		if t.kind != p.Inner {
			if f.written() && p.Inner != "" {
				f.problem("the congestion control inside is %s; leave it out, or expected inner: %s", p.Inner, t.kind)
			}
			continue
		}
		s := f.open()
		s.pattern = join("transport", t.kind)
		p.Section = s.parameters(t.read)
		if r, ok := p.Section.(RoCE); ok && r.Repath > 0 {
			s.field("repath").problem("the switches choose paths, and ask the source for another one by themselves; expected off")
		}
	}
	recovery := c.field("recovery")
	p.Recovery, _ = recovery.enum(recoveries)
	if p.Inner == "pc4" && p.Recovery == "selective-repeat" {
		recovery.problem("selective acknowledgements do not carry the rates that PC4's receivers allot; expected go-back-n")
	}
	p.Timeout = c.field("timeout").timer(units.Microsecond)
	p.Paths = c.field("paths").integer(1, 256)
	var okLight, okCongested bool
	p.Congested, okCongested = c.field("congested").size()
	light := c.field("light").or(p.Congested.half().String(), "ours: half of congested")
	p.Light, okLight = light.size()
	if okLight && okCongested && p.Light.comparable(p.Congested) && p.Light.above(p.Congested) {
		light.problem("%v is above congested, %v", p.Light, p.Congested)
	}
	p.Every = c.field("notify_every").timer(leastTick)
	refresh := c.field("refresh")
	p.Refresh = refresh.timer(leastTick)
	if p.Timeout > 0 && p.Refresh >= p.Timeout {
		refresh.problem("%v is not below timeout, %v, after which sources forget", p.Refresh, p.Timeout)
	}
	p.Strict = c.field("strict").flag()
	p.Loss, _ = c.field("notification_loss").share(0, 1)
	return p
}

// half is half of s.
func (s Size) half() Size { return Size{Bytes: s.Bytes / 2, Per: s.Per, BDP: s.BDP / 2} }

// Connection returns the parameters of CCM's sources.
func (p CCM) Connection(line units.Bandwidth) Connection {
	inner := p.Section.Connection(line)
	out := ccm.Params{Timeout: p.Timeout, Paths: p.Paths}
	switch q := inner.Params.(type) {
	case dcqcn.Params:
		out.DCQCN = &q
	case swift.Params:
		out.Swift = &q
	case pc4.Params:
		out.PC4 = &q
	}
	return Connection{Params: out, Recovery: p.Recovery, Timeouts: inner.Timeouts}
}
