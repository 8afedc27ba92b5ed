package swift_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/swift"
	"weft/units"
)

// drawParams draws every parameter that the properties are about; others keep their defaults.
func drawParams(t *rapid.T) swift.Params {
	span := func(name string, least units.Time) units.Time {
		return units.Time(rapid.Int64Range(int64(least), int64(units.Millisecond)).Draw(t, name))
	}
	p := params.Defaults[swift.Params]()
	p.AI, p.Beta = rapid.Float64Range(0.001, 100).Draw(t, "ai"), rapid.Float64Range(0.01, 1).Draw(t, "beta")
	p.MaxMDF, p.BaseTarget, p.PerHop = rapid.Float64Range(0.01, 0.99).Draw(t, "mdf"), span("base", units.Nanosecond), span("hop", 0)
	p.FSRange, p.FSMin = span("range", 0), rapid.Float64Range(0.001, 10).Draw(t, "least")
	p.MinWindow = units.Bytes(rapid.Int64Range(1, 10000).Draw(t, "min"))
	p.InitialWindow = units.Bytes(rapid.Int64Range(0, int64(units.GB)).Draw(t, "initial"))
	p.RetxReset, p.BoltCompat = rapid.IntRange(1, 10).Draw(t, "reset"), rapid.Bool().Draw(t, "compat")
	p.MaxWindow = 0
	p.FSMax = p.FSMin + rapid.Float64Range(0.001, 1000).Draw(t, "more")
	if rapid.Bool().Draw(t, "limited") {
		p.MaxWindow = p.MinWindow + units.Bytes(rapid.Int64Range(0, int64(units.GB)-10000).Draw(t, "max"))
	}
	return p
}

// Whatever happens, the window is a number within its limits and the target between that of the
// largest and that of the smallest window.
func TestSenderStandsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		var link cc.Link
		limits := cctest.Limits{Also: func(c cc.Controller) string {
			s := c.(*swift.Sender)
			w := s.CWND() * float64(link.Packet)
			if math.IsNaN(w) || w < float64(p.MinWindow)*(1-1e-9) || p.MaxWindow > 0 && w > float64(p.MaxWindow)*(1+1e-9) {
				return fmt.Sprintf("window of %v bytes", w)
			}
			if d := s.Target() - p.BaseTarget - units.Time(link.Hops)*p.PerHop; d < 0 || d > p.FSRange {
				return fmt.Sprintf("flow scaling adds %v", d)
			}
			return ""
		}}
		cctest.Run(t, limits, func(_ *rapid.T, l cc.Link) cc.Controller {
			link = l
			return swift.NewSender(p, l)
		})
	})
}
