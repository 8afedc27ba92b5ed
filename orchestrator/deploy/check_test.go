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
	}{
		"as asked":       {func(*Measured) {}, ""},
		"slow":           {func(m *Measured) { m.RateBPS = 96.5e6 }, "rate"},
		"fast":           {func(m *Measured) { m.RateBPS = 104e6 }, "rate"},
		"long":           {func(m *Measured) { m.DelayUS = 1201 }, "delay"},
		"too short":      {func(m *Measured) { m.DelayUS = 970 }, "delay"},
		"nothing came":   {func(m *Measured) { m.RateBPS, m.DelayUS, m.Loss = 0, 0, 1 }, "rate, delay, loss"},
		"lossy":          {func(m *Measured) { m.Loss = 0.02 }, "loss"},
		"lossless":       {func(m *Measured) { m.Loss = 0 }, "loss"},
		"lost one":       {func(m *Measured) { m.AskedLoss, m.Loss = 0, 1.0/4000 }, "loss"},
		"short distance": {func(m *Measured) { m.AskedDelayUS, m.DelayUS = 1, 180 }, ""},
	} {
		m := asked
		c.change(&m)
		m.judge(200 * time.Microsecond)
		if m.Bad != c.bad || m.OK != (c.bad == "") {
			t.Errorf("%s: ok %v, missed %q; want %q", name, m.OK, m.Bad, c.bad)
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
