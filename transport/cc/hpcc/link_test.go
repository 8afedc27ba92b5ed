package hpcc_test

import (
	"math"
	"testing"

	"weft/internal/golden"
	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/hpcc"
	"weft/units"
)

func bottleneck() cctest.Bottleneck {
	return cctest.Bottleneck{Line: 100 * gbps, Delay: 2 * us, Packet: 1000}
}

func flows(p hpcc.Params, b cctest.Bottleneck, at ...units.Time) []*cctest.Flow {
	return b.Start(func(l cc.Link) cc.Controller { return hpcc.NewSender(p, l) }, at...)
}

// One flow, joined by a second after 100 us: who sends what, every 20 us.
func TestTrace(t *testing.T) {
	p := params.Defaults[hpcc.Params]()
	p.Flows = 2
	b := bottleneck()
	golden.Table(t, "two-flows", "HPCC: a flow on a link of 100 Gb/s, joined by a second after 100 us.",
		cctest.NewNet(b, flows(p, b, 0, 100*us)...).Trace(400*us, 20*us))
}

// Scenario B4: two flows: U goes to 0.95, the queue stays below one bandwidth-delay product after
// the first round trip, each has 47.5 Gb/s.
func TestTwoFlows(t *testing.T) {
	p := params.Defaults[hpcc.Params]()
	p.Flows = 10
	b := bottleneck()
	n := cctest.NewNet(b, flows(p, b, 0, 3*us)...)
	n.Run(50 * us)
	n.MaxQueue = 0
	n.Run(5 * units.Millisecond)
	if n.MaxQueue > 50*units.KB {
		t.Errorf("queue of up to %v, the path holds 52 kB", n.MaxQueue)
	}
	jain, used := n.Fairness(10 * units.Millisecond)
	if jain < 0.999 || math.Abs(used-0.95) > 0.02 {
		t.Errorf("Jain %.4f, %.2f %% of the line", jain, 100*used)
	}
	for _, f := range n.Flows {
		if u := f.Controller.(*hpcc.Sender).Utilization(); math.Abs(u-0.95) > 0.03 {
			t.Errorf("U is %.3f", u)
		}
	}
}

// Scenario B4: the queue of a 16 to 1 incast drains in a few round trips after the first burst, and
// then stays small.
func TestIncastDrains(t *testing.T) {
	p := params.Defaults[hpcc.Params]()
	b := bottleneck()
	n := cctest.NewNet(b, flows(p, b, make([]units.Time, 16)...)...)
	n.Run(10 * us)
	if n.MaxQueue < 500*units.KB {
		t.Errorf("burst of %v: 16 windows arrived", n.MaxQueue)
	}
	n.Run(100 * us) // 65 us of them is what the line needs for the burst
	n.MaxQueue = 0
	n.Run(units.Millisecond)
	if n.MaxQueue > 52*units.KB {
		t.Errorf("queue of up to %v after the burst", n.MaxQueue)
	}
	if jain, used := n.Fairness(3 * units.Millisecond); used < 0.9 || jain < 0.9 {
		t.Errorf("Jain %.3f, %.1f %% of the line", jain, 100*used)
	}
}

// The authors' script sets a least rate of 1 Gb/s: 200 flows would be twice the line. The window of
// a least rate of 100 Mb/s is less than a packet, which leaves the queue at a packet of each at
// most; so does none.
func TestManyFlowsDoNotOverrunTheLine(t *testing.T) {
	for _, least := range []units.Bandwidth{0, 100 * units.Mbps} {
		manyFlows(t, least)
	}
}

func manyFlows(t *testing.T, least units.Bandwidth) {
	p := params.Defaults[hpcc.Params]()
	p.Flows, p.MinRate.Rate = 200, least
	b := bottleneck()
	n := cctest.NewNet(b, flows(p, b, make([]units.Time, 200)...)...)
	n.Run(3 * units.Millisecond)
	n.MaxQueue = 0
	n.Run(4 * units.Millisecond)
	if n.MaxQueue > 200*units.KB { // a packet of each
		t.Errorf("queue of up to %v", n.MaxQueue)
	}
}
