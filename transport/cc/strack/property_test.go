package strack_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/strack"
	"weft/units"
)

// drawParams draws every parameter that the properties are about; others keep their defaults.
func drawParams(t *rapid.T) strack.Params {
	p := params.Defaults[strack.Params]()
	p.Target = units.Time(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(int64(units.Nanosecond), int64(units.Millisecond))).Draw(t, "target"))
	p.High, p.EWMA = rapid.Float64Range(1, 10).Draw(t, "high"), rapid.Float64Range(0.001, 1).Draw(t, "ewma")
	p.Alpha, p.Beta = cc.Proportional(rapid.Float64Range(0, 100).Draw(t, "alpha")), rapid.Float64Range(0, 100).Draw(t, "beta")
	p.Eta, p.Gamma = rapid.Float64Range(0, 10).Draw(t, "eta"), rapid.Float64Range(0.01, 1).Draw(t, "gamma")
	p.MaxMDF, p.MaxCWND = rapid.Float64Range(0.01, 0.99).Draw(t, "mdf"), rapid.Float64Range(0.01, 100).Draw(t, "max")
	p.MDRequiresECN, p.Paths = rapid.Bool().Draw(t, "ecn"), rapid.IntRange(1, 256).Draw(t, "paths")
	return p
}

// Whatever happens, the window is a number between a packet and its maximum.
func TestSenderStandsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		limits := cctest.Limits{Also: func(c cc.Controller) string {
			s := c.(*strack.Sender)
			if w := s.CWND(); math.IsNaN(w) || w < 1 || w > s.MaxWindow() {
				return fmt.Sprintf("window of %v packets, at most %v", w, s.MaxWindow())
			}
			if s.Average() < 0 {
				return fmt.Sprintf("average delay %v", s.Average())
			}
			return ""
		}}
		cctest.Run(t, limits, func(_ *rapid.T, l cc.Link) cc.Controller {
			l.NetRTT = units.Time(rapid.Int64Range(0, int64(units.Millisecond)).Draw(t, "net"))
			limits.MinWindow = l.Packet
			return strack.NewSender(p, l)
		})
	})
}
