package huygens

import (
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// With half of all messages lost reports and solutions leave three times, and no clock misses many
// windows.
func TestHalfOfAllMessagesLost(t *testing.T) {
	l := eightNodes()
	l.load = 0
	l.world = func(c *testnet.Config) { c.Loss = 0.5 }
	w := l.newWorld(t)
	w.Run(100 * ms)
	v := watchErrors(w, l.nodes, 200*ms, ms)
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
	l := eightNodes()
	w := l.newWorld(t)
	for k := range 40 {
		w.Run(units.Time(k+1) * 10 * ms)
		for n := range clocksync.Node(l.nodes) {
			if a := w.Protocol(n).(*Agent); len(a.again.letters) > 0 && a.reportedOK {
				t.Fatalf("node %d repeats %d messages at %v", n, len(a.again.letters), w.Now)
			}
		}
	}
}

// If 97 of 100 questions and answers are lost, a node joins with one answer, and its bound holds.
func TestOneAnswerIsEnoughWhereMostAreLost(t *testing.T) {
	l := eightNodes()
	l.load = 0
	l.world = func(c *testnet.Config) { c.Loss = 0.85 }
	w := l.newWorld(t)
	v := watchErrors(w, l.nodes, 0, 700*units.Microsecond)
	w.Run(100 * ms) // 500 questions, of which 11 are answered
	for n := range clocksync.Node(l.nodes) {
		if a := w.Protocol(n).(*Agent); !a.join.done || n > 1 && a.join.count >= joinAnswers {
			t.Errorf("node %d: begun %v after %d answers to %d questions", n, a.join.done, a.join.count, a.join.tries)
		}
	}
	if v.outside > 0 {
		t.Errorf("%d of %d outside of their bounds", v.outside, v.checks)
	}
}
