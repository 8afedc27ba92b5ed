package swift_test

import (
	"fmt"
	"math"
	"testing"

	"weft/internal/golden"
	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/swift"
	"weft/units"
)

func bottleneck() cctest.Bottleneck {
	return cctest.Bottleneck{Line: 100 * gbps, Delay: 2 * us, Packet: 4096}
}

func flows(p swift.Params, b cctest.Bottleneck, at ...units.Time) []*cctest.Flow {
	return b.Start(func(l cc.Link) cc.Controller { return swift.NewSender(p, l) }, at...)
}

// One flow, joined by a second after 100 us: who sends what, every 50 us.
func TestTrace(t *testing.T) {
	p := params.Defaults[swift.Params]()
	b := bottleneck()
	const title = "Swift, %s: a flow on a link of 100 Gb/s, joined by a second after 100 us."
	golden.Table(t, "paper", fmt.Sprintf(title, "the paper's parameters"),
		cctest.NewNet(b, flows(p, b, 0, 100*us)...).Trace(units.Millisecond, 50*us))
	p.BoltCompat = true
	golden.Table(t, "bolt", fmt.Sprintf(title, "as Bolt's authors simulate it"),
		cctest.NewNet(b, flows(p, b, 0, 100*us)...).Trace(units.Millisecond, 50*us))
}

// Scenario B5: the mean delay of N flows is at the target, within 10 %, and the target grows as the
// window shrinks. N flows together add AI·N packets per round trip: an AI of 1 is a burst of 33 us
// on this link when they are 100.
func TestDelayStaysAtTheTarget(t *testing.T) {
	var last units.Time
	for _, n := range []int{8, 20, 50, 100, 200} {
		p := params.Defaults[swift.Params]()
		if n > 50 {
			p.AI = 0.1
		}
		b := bottleneck()
		var starts []units.Time
		for i := range n {
			starts = append(starts, units.Time(i)*us)
		}
		net := cctest.NewNet(b, flows(p, b, starts...)...)
		net.Run(10 * units.Millisecond)
		var count int
		var sum, target units.Time
		for _, f := range net.Flows {
			count, sum = count-f.Delivered, sum-f.Delays
		}
		for range 200 {
			net.Run(net.Now + 50*us)
			for _, f := range net.Flows {
				target += f.Controller.(*swift.Sender).Target() / units.Time(200*n)
			}
		}
		for _, f := range net.Flows {
			count, sum = count+f.Delivered, sum+f.Delays
		}
		mean := sum / units.Time(count)
		if math.Abs(float64(mean)/float64(target)-1) > 0.1 {
			t.Errorf("%d flows: mean round trip %v, mean target %v", n, mean, target)
		}
		if target <= last {
			t.Errorf("%d flows: target %v is not above that of fewer", n, target)
		}
		last = target
		if jain, used := net.Fairness(net.Now + 10*units.Millisecond); jain < 0.9 || used < 0.99 {
			t.Errorf("%d flows: Jain %.3f, %.1f %% of the line", n, jain, 100*used)
		}
	}
}
