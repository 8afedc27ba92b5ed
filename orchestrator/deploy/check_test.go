package deploy

import (
	"testing"
	"time"
	"weft/fabric"

	"weft/orchestrator/deploy/probe"
	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
	"weft/realtime"
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

		"unsteady": {func(m *Measured) {
			m.unsteady, m.train, m.RateBPS = time.Microsecond, 299*time.Microsecond, 50e6
		}, "", "rate"},
		"unsteady for long": {func(m *Measured) {
			m.unsteady, m.train, m.RateBPS = time.Microsecond, 300*time.Microsecond, 50e6
		}, "rate", ""},
		"unsteady, and long": {func(m *Measured) {
			m.unsteady, m.train, m.DelayUS = 50*time.Microsecond, time.Second, 1240
		}, "", "delay"},
		"unsteady, and too long": {func(m *Measured) {
			m.unsteady, m.train, m.DelayUS = 50*time.Microsecond, time.Second, 1260
		}, "delay", ""},
		"unsteady, and nothing came": {func(m *Measured) {
			m.unsteady, m.RateBPS, m.DelayUS, m.Loss = time.Microsecond, 0, 0, 1
		}, "rate, delay, loss", ""},
		"unsteady, and too small a loss": {func(m *Measured) {
			m.unsteady, m.AskedLoss, m.Loss = time.Microsecond, 0.002, 0
		}, "", "rate, loss"},
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
	s := &supervisor{x: &experiment.Experiment{Network: experiment.Network{Graph: &topology.Graph{Links: []topology.Link{{Link: fabric.Link{Rate: 10 * units.Mbps}}, {Link: fabric.Link{Rate: 40 * units.Mbps}}}}}}}
	for id, bound := range []bool{false, true} {
		m := Measured{Tried: true, OK: true, Hops: 2, AskedRateBPS: 10e6, RateBPS: 9.99e6}
		s.compare(topology.LinkID(id), &m, &realtime.PortState{Up: true, Link: fabric.Link{Rate: s.x.Graph.Links[id].Rate}})
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

// A packet that one try lost is not forgotten in the next: of a link without loss none may be lost,
// and the loss of another is that of all tries.
func TestLossesOfAllTriesCount(t *testing.T) {
	try := func(m *Measured, lost int64) {
		m.take([]probe.Result{{Received: 12, MinNS: 1e6}, {Received: 300 - lost, MinNS: 2e6},
			{Received: 11, Bytes: 10 * 1000, FirstNS: 1, LastNS: 1 + 10*8*1046}}, 300, 1)
		m.judge(0)
	}
	for lossy := range 3 {
		m := Measured{AskedRateBPS: 1e9, AskedDelayUS: 1000}
		for k := range 3 {
			lost := int64(0)
			if k == lossy {
				lost = 1
			}
			if try(&m, lost); m.OK != (k < lossy) || k >= lossy && m.Bad != "loss" {
				t.Errorf("lost in try %d: after try %d %+v", lossy, k, m)
			}
		}
	}
	m := Measured{AskedRateBPS: 1e9 / 0.9, AskedDelayUS: 1000, AskedLoss: 0.1} // the rate of all that was sent
	for range 3 {
		try(&m, 30)
	}
	if !m.OK || m.Probes != 900 || m.Loss != 0.1 || m.DelayUS != 1000 {
		t.Errorf("%+v", m)
	}
}
