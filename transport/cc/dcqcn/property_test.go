package dcqcn_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/dcqcn"
	"weft/units"
)

// drawParams draws every parameter that the properties are about; others keep their defaults.
func drawParams(t *rapid.T) dcqcn.Params {
	span := func(name string, least, most units.Time) units.Time {
		return units.Time(rapid.Int64Range(int64(least), int64(most)).Draw(t, name))
	}
	rate := func(name string) params.Rate {
		return params.Rate{Rate: units.Bandwidth(rapid.Int64Range(int64(params.MinRate), 1<<40).Draw(t, name))}
	}
	p := params.Defaults[dcqcn.Params]()
	p.Mode = rapid.SampledFrom([]string{dcqcn.Paper, dcqcn.Mellanox}).Draw(t, "mode")
	p.Clamp = rapid.SampledFrom([]string{dcqcn.ClampAlways, dcqcn.ClampAfterIncrease, dcqcn.ClampAfterBytes}).Draw(t, "clamp")
	p.CNPInterval = span("cnp interval", 0, units.Millisecond)
	p.G, p.InitialAlpha = rapid.Float64Range(1e-6, 1).Draw(t, "g"), rapid.Float64Range(1e-6, 1).Draw(t, "alpha")
	p.AlphaInterval, p.MinRate = span("alpha interval", 100*units.Nanosecond, units.Millisecond), rate("least")
	p.RPTimer, p.F = span("rp timer", 10*us, 10*units.Millisecond), rapid.IntRange(1, 10).Draw(t, "f")
	p.RAI, p.RHAI = rate("rai"), rate("rhai")
	if p.Mode == dcqcn.Mellanox {
		p.DecreaseInterval = span("decrease interval", us, units.Millisecond)
		p.FirstRate = rapid.Float64Range(0.001, 1).Draw(t, "first rate")
		return p
	}
	p.DecreaseInterval, p.FirstRate = 0, 0 // of the other mode
	p.ByteCounter = units.Bytes(rapid.Int64Range(0, 1<<24).Draw(t, "bytes"))
	p.AlphaFirst = rapid.Bool().Draw(t, "alpha first")
	return p
}

// Whatever happens, the rate stays between the least and the line's, and so does the target that
// recovery aims at.
func TestSenderStandsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		var line units.Bandwidth
		limits := cctest.Limits{MinWindow: 1 << 62, Also: func(c cc.Controller) string {
			s := c.(*dcqcn.Sender)
			if r := s.PacingRate(); r < min(p.MinRate.Rate, line) || r > line {
				return fmt.Sprintf("rate of %d b/s, least %d, line %d", r, p.MinRate.Rate, line)
			}
			if r := s.Target(); r < s.PacingRate()-1 || r > line {
				return fmt.Sprintf("target of %d b/s, rate %d, line %d", r, s.PacingRate(), line)
			}
			return ""
		}}
		cctest.Run(t, limits, func(_ *rapid.T, l cc.Link) cc.Controller {
			line = l.Line
			return dcqcn.NewSender(p, l)
		})
	})
}
