package swift_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/swift"
	"weft/units"
)

func drawParams(t *rapid.T) swift.Params {
	span := func(name string, least units.Time) units.Time {
		return units.Time(rapid.Int64Range(int64(least), int64(units.Millisecond)).Draw(t, name))
	}
	p := swift.Params{
		AI: rapid.Float64Range(0.001, 100).Draw(t, "ai"), Beta: rapid.Float64Range(0.01, 1).Draw(t, "beta"),
		MaxMDF: rapid.Float64Range(0.01, 0.99).Draw(t, "mdf"), BaseTarget: span("base", units.Nanosecond), PerHop: span("hop", 0),
		FSRange: span("range", 0), FSMin: rapid.Float64Range(0.001, 10).Draw(t, "least"),
		MinWindow:     units.Bytes(rapid.Int64Range(1, 10000).Draw(t, "min")),
		InitialWindow: units.Bytes(rapid.Int64Range(0, int64(units.GB)).Draw(t, "initial")),
		RetxReset:     rapid.IntRange(1, 10).Draw(t, "reset"), BoltCompat: rapid.Bool().Draw(t, "compat"),
	}
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
