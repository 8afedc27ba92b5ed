package lab

import (
	"weft/transport/cc/hpcc"
	"weft/units"
)

// hpcc reads HPCC.
func (c *section) hpcc() Section {
	var h HPCC
	h.Eta, _ = c.field("eta").share(0.01, 1)
	h.MaxStage = c.field("max_stage").integer(0, maxStages)
	wai := c.field("wai")
	h.WAI = unless(wai, "auto", field.window)
	switch flows := c.field("flows"); {
	case h.WAI == 0:
		h.Flows = flows.integer(1, maxPackets)
	case flows.written():
		flows.problem("says what wai auto is, but wai is %v; expected one of them", h.WAI)
	}
	if h.WAI == 0 && h.Eta == 1 {
		wai.problem("auto is a share of what eta leaves, which is nothing at eta 1; expected a size such as 80B")
	}
	h.T = unless(c.field("t"), "auto", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, 10*units.Nanosecond, maxTimer)
	})
	h.MinRate = unless(c.field("min_rate"), "off", field.lineRate)
	h.Timeouts = c.timeouts()
	return h
}

// Connection returns the parameters of HPCC.
func (p HPCC) Connection(line units.Bandwidth) Connection {
	return Connection{Timeouts: p.Timeouts, Params: hpcc.Params{
		Eta: p.Eta, MaxStage: p.MaxStage, WAI: p.WAI, Flows: p.Flows, BaseRTT: p.T, MinRate: p.MinRate.At(line),
	}}
}
