package deploy

import (
	"testing"
	"time"

	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
	"weft/units"
)

func TestJudge(t *testing.T) {
	asked := Measured{AskedRateBPS: 100e6, AskedDelayUS: 1000, AskedLoss: 0.01, Probes: 4000, RateBPS: 99e6, DelayUS: 1010, Loss: 0.012}
	for name, c := range map[string]struct {
		change func(*Measured)
		bad    string
		open   string // what was not judged
	}{
		"as asked":       {func(*Measured) {}, "", ""},
		"slow":           {func(m *Measured) { m.RateBPS = 96.5e6 }, "rate", ""},
		"fast":           {func(m *Measured) { m.RateBPS = 104e6 }, "rate", ""},
		"long":           {func(m *Measured) { m.DelayUS = 1201 }, "delay", ""},
		"too short":      {func(m *Measured) { m.DelayUS = 970 }, "delay", ""},
		"nothing came":   {func(m *Measured) { m.RateBPS, m.DelayUS, m.Loss = 0, 0, 1 }, "rate, delay, loss", ""},
		"lossy":          {func(m *Measured) { m.Loss = 0.02 }, "loss", ""},
		"lossless":       {func(m *Measured) { m.Loss = 0 }, "loss", ""},
		"lost one":       {func(m *Measured) { m.AskedLoss, m.Loss = 0, 1.0/4000 }, "loss", ""},
		"short distance": {func(m *Measured) { m.AskedDelayUS, m.DelayUS = 1, 180 }, "", ""},
		"too small":      {func(m *Measured) { m.AskedLoss, m.Loss = 0.002, 0.002 }, "", "loss"},
		"taken away":     {func(m *Measured) { m.AskedLoss, m.Loss = 0.002, 0 }, "", "loss"},
		"slow, too":      {func(m *Measured) { m.AskedLoss, m.Loss, m.RateBPS = 0.002, 0, 96.5e6 }, "rate", ""},
		"far above":      {func(m *Measured) { m.AskedLoss, m.Loss = 1e-9, 1.0/4000 }, "loss", ""},
		"bit errors":     {func(m *Measured) { m.AskedLoss, m.Loss = 1e-9, 0 }, "", "loss"},
		"none asked":     {func(m *Measured) { m.AskedLoss, m.Loss = 0, 0 }, "", ""},
	} {
		m := asked
		c.change(&m)
		m.judge(200 * time.Microsecond)
		if m.Bad != c.bad || m.Unjudged != c.open || m.OK != (c.bad+c.open == "") {
			t.Errorf("%s: ok %v, missed %q, not judged %q; want %q, %q", name, m.OK, m.Bad, m.Unjudged, c.bad, c.open)
		}
	}
}

// Of a link that is faster than its path only a lower bound of the rate is measured.
func TestFastLinksAreBounded(t *testing.T) {
	s := &supervisor{x: &experiment.Experiment{Network: experiment.Network{Graph: &topology.Graph{Links: []topology.Link{{Rate: 10 * units.Mbps}, {Rate: 40 * units.Mbps}}}}}}
	for id, bound := range []bool{false, true} {
		m := Measured{Tried: true, OK: true, AskedRateBPS: 10e6, RateBPS: 9.99e6}
		s.bound(topology.LinkID(id), &m)
		if m.Bound != bound || bound != (m.LinkRateBPS == 40e6) {
			t.Errorf("link %d: %+v", id, m)
		}
	}
}

// A link is ok only if its asked loss can be told from none: whatever was asked and sent, one that
// lost nothing is not ok if loss was asked.
func TestNoLossIsNeverTakenForSome(t *testing.T) {
	for _, asked := range []float64{1e-12, 1e-6, 1e-4, 1e-3, 2e-3, 3e-3, 4e-3, 0.01, 0.1, 0.5} {
		for _, sent := range []int64{0, 1, 300, 400, 4000} {
			m := Measured{AskedLoss: asked, Probes: sent, RateBPS: 1, AskedRateBPS: 1, DelayUS: 1, AskedDelayUS: 1}
			m.judge(0)
			if m.OK || (m.Bad == "") == (m.Unjudged == "") {
				t.Errorf("%g asked, %d sent: %+v", asked, sent, m)
			}
		}
	}
}
