package huygens

import (
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// With half of all messages lost reports and solutions leave three times, and no clock misses many windows.
func TestHalfOfAllMessagesLost(t *testing.T) {
	l := usual()
	l.load = 0
	l.world = func(c *testnet.Config) { c.Loss = 0.5 }
	w := l.make(t)
	w.Run(100 * ms)
	v := watch(w, l.nodes, 200*ms, ms)
	w.Run(600 * ms)
	v.sort()
	if got := v.quantile(0.99); got > 50*ns || v.outside > v.checks/10000 {
		t.Errorf("p99 is %v; %d of %d are outside of their bounds", got, v.outside, v.checks)
	}
	for n := range clocksync.Node(l.nodes) {
		p := w.Protocol(n)
		if c := p.Counters(); c.Lost > 0 || p.Correction().State != clocksync.Locked {
			t.Errorf("node %d is %v, %+v", n, p.Correction().State, c)
		}
	}
}

// Without loss nothing leaves twice.
func TestNothingIsRepeatedWithoutLoss(t *testing.T) {
	l := usual()
	w := l.make(t)
	for k := range 40 {
		w.Run(units.Time(k+1) * 10 * ms)
		for n := range clocksync.Node(l.nodes) {
			if a := w.Protocol(n).(*Agent); len(a.again.letters) > 0 && a.toldOK {
				t.Fatalf("node %d repeats %d messages at %v", n, len(a.again.letters), w.Now)
			}
		}
	}
}
