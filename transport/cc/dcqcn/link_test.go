package dcqcn_test

import (
	"testing"

	"weft/internal/golden"
	"weft/transport/cc/cctest"
	"weft/transport/cc/dcqcn"
	"weft/units"
)

// bottleneck marks as a set's source does, or from one kmin to kmax.
func bottleneck(m marking) cctest.Bottleneck {
	return cctest.Bottleneck{
		Line: 100 * gbps, Delay: 2 * us, Packet: 4096, Seed: 1,
		Mark: func(q units.Bytes, draw float64) bool {
			switch {
			case q <= m.Kmin:
				return false
			case q > m.Kmax:
				return true
			default:
				return draw < m.Pmax*float64(q-m.Kmin)/float64(m.Kmax-m.Kmin)
			}
		},
	}
}

func flows(p dcqcn.Params, b cctest.Bottleneck, starts ...units.Time) []*cctest.Flow {
	var all []*cctest.Flow
	for _, at := range starts {
		all = append(all, &cctest.Flow{Controller: dcqcn.NewSender(p, b.Link()), Receiver: dcqcn.NewNotifier(p), Start: at})
	}
	return all
}

// One flow, joined by a second after 200 us: who sends what, every 100 us.
func TestTrace(t *testing.T) {
	for _, name := range []string{"paper", "nvidia", "mellanox"} {
		b := bottleneck(marking{Kmin: 400 * units.KB, Kmax: 1600 * units.KB, Pmax: 0.2})
		p := set(t, name)
		n := cctest.NewNet(b, flows(p, b, 0, 200*us)...)
		title := "DCQCN, set " + name + ": a flow on a link of 100 Gb/s, joined by a second after 200 us."
		golden.Table(t, name, title, n.Trace(3*units.Millisecond, 100*us))
	}
}

// Scenario B3: 2, 4 and 8 long flows in the paper's mode: Jain's index above 0.9 after 100 ms, at
// least 90 % of the line.
func TestLongFlowsShareFairly(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		b := bottleneck(marking{Kmin: 5 * units.KB, Kmax: 200 * units.KB, Pmax: 0.01})
		var starts []units.Time
		for i := range n {
			starts = append(starts, units.Time(i)*us)
		}
		net := cctest.NewNet(b, flows(set(t, "paper"), b, starts...)...)
		net.Run(100 * units.Millisecond)
		jain, used := net.Fairness(150 * units.Millisecond)
		if jain < 0.9 || used < 0.9 {
			t.Errorf("%d flows: Jain %.3f, %.1f %% of the line", n, jain, 100*used)
		}
	}
}
