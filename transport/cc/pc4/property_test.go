package pc4_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/pc4"
	"weft/units"
)

// drawParams draws every parameter that the properties are about; others keep their defaults.
func drawParams(t *rapid.T) pc4.Params {
	p := pc4.Defaults()
	p.TargetQtime = units.Time(rapid.Int64Range(-1, int64(80*units.Microsecond)).Draw(t, "target"))
	p.AdjustInterval = rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1.01, 10)).Draw(t, "interval")
	p.AI, p.HAI = rapid.Float64Range(0, 1).Draw(t, "ai"), rapid.Float64Range(0, 1).Draw(t, "hai")
	p.Beta, p.MaxMDF = rapid.Float64Range(0.01, 1).Draw(t, "beta"), rapid.Float64Range(0.01, 0.99).Draw(t, "mdf")
	p.BaseRate = rapid.SampledFrom([]string{pc4.Controller, pc4.Observed, pc4.Table, pc4.Off}).Draw(t, "source")
	p.Start = rapid.OneOf(rapid.Just(pc4.Start{Initial: pc4.AtBaseRate}), rapid.Just(pc4.Start{Initial: pc4.AtLine}), windows()).Draw(t, "initial")
	p.RTT = rapid.SampledFrom([]string{pc4.BaseRTT, pc4.MeasuredRTT}).Draw(t, "rtt")
	p.Epsilon = units.Time(rapid.Int64Range(0, int64(units.Microsecond)).Draw(t, "epsilon"))
	p.PacedBelow = rapid.Float64Range(1, 1000).Draw(t, "paced")
	return p
}

// windows returns a generator of starts with a window, over the whole range.
func windows() *rapid.Generator[pc4.Start] {
	return rapid.Custom(func(t *rapid.T) pc4.Start {
		return pc4.Start{Initial: pc4.AtWindow, InitialWindow: units.Bytes(rapid.Int64Range(1, int64(units.GB)).Draw(t, "window"))}
	})
}

// Section III-C: "a lower bound of 0.0001 packets". The rate is also never above the line rate and
// never NaN. On a path so slow that 0.0001 packets per RTT exceed the line rate, the line rate
// wins.
func TestSenderStandsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		var line units.Bandwidth
		limits := cctest.Limits{Also: func(c cc.Controller) string {
			s := c.(*pc4.Sender)
			if w := s.CWND(); math.IsNaN(w) || w < 0.0001*(1-1e-9) && s.Rate() < line {
				return fmt.Sprintf("cwnd of %v packets", w)
			}
			if s.Rate() <= 0 || s.Rate() > line {
				return fmt.Sprintf("rate of %d b/s on a line of %d", s.Rate(), line)
			}
			return ""
		}}
		cctest.Run(t, limits, func(t *rapid.T, l cc.Link) cc.Controller {
			line = l.Line
			return pc4.NewSender(p, l, units.Bandwidth(rapid.Int64Range(0, 2*int64(l.Line)).Draw(t, "planned")))
		})
	})
}
