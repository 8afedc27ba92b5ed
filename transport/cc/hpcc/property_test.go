package hpcc_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/hpcc"
	"weft/units"
)

// drawParams draws every parameter that the properties are about; others keep their defaults.
func drawParams(t *rapid.T) hpcc.Params {
	p := params.Defaults[hpcc.Params]()
	p.Eta, p.MaxStage = rapid.Float64Range(0.01, 0.999).Draw(t, "eta"), rapid.IntRange(0, 5).Draw(t, "stages")
	p.BaseRTT = units.Time(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(int64(10*units.Nanosecond), int64(10*units.Millisecond))).Draw(t, "T"))
	p.MinRate = params.Rate{Rate: units.Bandwidth(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(int64(params.MinRate), 1<<41)).Draw(t, "least"))}
	p.WAI, p.Flows = 0, 0 // one of them
	if rapid.Bool().Draw(t, "in bytes") {
		p.WAI = units.Bytes(rapid.Int64Range(1, int64(units.GB)).Draw(t, "wai"))
	} else {
		p.Flows = rapid.IntRange(1, 1_000_000).Draw(t, "flows")
	}
	return p
}

// Whatever switches say, the rate is a number between the least and the line's.
func TestSenderStandsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		var line units.Bandwidth
		limits := cctest.Limits{Also: func(c cc.Controller) string {
			s := c.(*hpcc.Sender)
			if u := s.Utilization(); math.IsNaN(u) || math.IsInf(u, 0) || u < 0 {
				return fmt.Sprintf("U is %v", u)
			}
			if r := s.PacingRate(); r < 1 || r < min(p.MinRate.Rate, line)-1 {
				return fmt.Sprintf("rate of %d b/s, least %d, line %d", r, p.MinRate.Rate, line)
			}
			return ""
		}}
		cctest.Run(t, limits, func(_ *rapid.T, l cc.Link) cc.Controller {
			line = l.Line
			return hpcc.NewSender(p, l)
		})
	})
}
