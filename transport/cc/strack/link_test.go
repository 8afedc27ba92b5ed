package strack_test

import (
	"testing"

	"weft/internal/golden"
	"weft/params"
	"weft/transport/cc/cctest"
	"weft/transport/cc/strack"
	"weft/units"
)

// bottleneck is a port of the paper's network (section 4): 400 Gb/s, about 8 us, marks between a
// quarter and three quarters of the bandwidth-delay product, in between with a probability that
// rises to 1.
func bottleneck() cctest.Bottleneck {
	const bdp = 400 * units.KB
	return cctest.Bottleneck{
		Line: 400 * gbps, Delay: 3850 * units.Nanosecond, Packet: 4198, Seed: 1,
		Mark: func(queued units.Bytes, draw float64) bool { return float64(queued-bdp/4)/float64(bdp/2) > draw },
	}
}

func flows(b cctest.Bottleneck, starts ...units.Time) []*cctest.Flow {
	l := b.Link()
	l.NetRTT = 8 * us
	var all []*cctest.Flow
	for _, at := range starts {
		all = append(all, &cctest.Flow{Controller: strack.NewSender(params.Defaults[strack.Params](), l), Start: at})
	}
	return all
}

// One flow, joined by a second after 100 us: who sends what, every 50 us.
func TestTrace(t *testing.T) {
	b := bottleneck()
	golden.Table(t, "two-flows", "STrack: a flow on a link of 400 Gb/s, joined by a second after 100 us.",
		cctest.NewNet(b, flows(b, 0, 100*us)...).Trace(units.Millisecond, 50*us))
}

// Fig. 20: "STrack is able to stabilize at the target queuing delay across different incast
// degrees"; 128 to 1 is "slightly higher", since 1.3 packets are one or two in flight. Here nothing
// is lost, so that the control alone shows.
func TestQueueSettlesAtTheTarget(t *testing.T) {
	for _, c := range []struct {
		n        int
		from, to float64 // us
	}{{8, 7, 10}, {32, 7, 11}, {128, 8, 16}} {
		b := bottleneck()
		net := cctest.NewNet(b, flows(b, make([]units.Time, c.n)...)...)
		net.Run(3 * units.Millisecond)
		var sum units.Time
		const samples = 400
		for range samples {
			net.Run(net.Now + 5*us)
			sum += b.Line.TransmitTime(net.Queued)
		}
		got := (sum / samples).Microseconds()
		jain, used := net.Fairness(net.Now + 2*units.Millisecond)
		t.Logf("%d to 1: queue of %.1f us, Jain %.3f, %.1f %% of the line", c.n, got, jain, 100*used)
		if got < c.from || got > c.to || used < 0.99 || jain < 0.85 {
			t.Errorf("%d to 1: queue of %.1f us, not %.0f to %.0f; Jain %.3f, %.1f %% of the line", c.n, got, c.from, c.to, jain, 100*used)
		}
	}
}
