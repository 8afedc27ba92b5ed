package ptp

import (
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

const (
	us     = units.Microsecond
	client = 5 // the first node that is no server
)

// timeServers returns a world of five time servers and two clients, in which some servers lie from
// an instant on.
func timeServers(t *testing.T, from units.Time, lies ...units.Time) *testnet.World {
	t.Helper()
	p := defaults()
	p.Servers, p.Agree = 5, 100*units.Nanosecond
	w := testnet.New(testnet.Config{
		Nodes: 7, Seed: 3,
		Path: func(r *rand.Rand) testnet.Path {
			return &testnet.Jittery{Base: us, Jitter: 10 * units.Nanosecond, Random: r}
		},
		Oscillator: func(n clocksync.Node) testnet.Oscillator {
			if n < client {
				return testnet.Oscillator{Jitter: 5 * units.Nanosecond}
			}
			return testnet.Oscillator{Offset: units.Time(n) * 100 * us, Skew: 20e-6, Wander: 1e-9, Jitter: 5 * units.Nanosecond}
		},
		Start: func(n clocksync.Node) clocksync.Protocol {
			c, err := p.Clock(clocksync.Setup{Self: n, Nodes: 7, Seed: 9, Skew: 20e-6, Jitter: 5 * units.Nanosecond})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	})
	w.At(from, func() {
		for i, by := range lies {
			w.Protocol(clocksync.Node(i)).(interface{ Lie(units.Time) }).Lie(by)
		}
	})
	return w
}

// largestError runs the world and returns the largest error of a client, after it had time to
// settle.
func largestError(w *testnet.World, until units.Time) (worst units.Time) {
	w.Every(50*ms, 100*us, func() {
		for n := clocksync.Node(client); n < 7; n++ {
			e := w.Time(n) - w.Time(0) // server 0 keeps its own time right, whatever it tells
			worst = max(worst, e, -e)
		}
	})
	w.Run(until)
	return worst
}

// One or two of five servers may lie, by little or by much, from the start or later,
// together or against each other.
func TestTwoOfFiveServersMayLie(t *testing.T) {
	for _, from := range []units.Time{0, 80 * ms} {
		for _, lies := range [][]units.Time{nil, {10 * us}, {-3 * us}, {units.Second}, {10 * us, 10 * us}, {-10 * us, 2 * us}, {500 * units.Nanosecond, 400 * us}} {
			w := timeServers(t, from, lies...)
			worst := largestError(w, 200*ms)
			for n := clocksync.Node(client); n < 7; n++ {
				p := w.Protocol(n)
				c := p.Counters()
				if p.Correction().State != clocksync.Locked || worst > 100*units.Nanosecond || c.NoMajority > 0 || c.Falsetickers < int64(len(lies)) {
					t.Errorf("lies %v from %v on: node %d is %v, error up to %v, %+v", lies, from, n, p.Correction().State, worst, c)
				}
			}
			if b, ok := w.Bound(client); !ok || b > us {
				t.Errorf("lies %v from %v on: bound %v", lies, from, b)
			}
		}
	}
}

// Three or four that contradict each other leave no majority: a clock that has none yet
// stays as it is, and one that had goes on by itself, and says so.
func TestThreeOfFiveServersAreRefused(t *testing.T) {
	for _, lies := range [][]units.Time{{10 * us, -10 * us, 30 * us}, {10 * us, -10 * us, 30 * us, 50 * us}, {3 * us, -2 * us, 5 * us}, {2 * us, 4 * us, 6 * us, 8 * us}} {
		w := timeServers(t, 0, lies...)
		w.Run(200 * ms)
		p := w.Protocol(client)
		if c := p.Counters(); p.Correction().State != clocksync.Free || c.NoMajority == 0 || c.Updates != 0 {
			t.Errorf("lies %v from the start: %v, %+v", lies, p.Correction().State, c)
		}
		w = timeServers(t, 80*ms, lies...)
		worst := largestError(w, 300*ms)
		p = w.Protocol(client)
		e := w.Time(client) - w.Time(0)
		bound, _ := w.Bound(client)
		t.Logf("lies %v: error up to %v, %v at the end, within %v; %+v", lies, worst, e, bound, p.Counters())
		if c := p.Counters(); p.Correction().State != clocksync.Holdover || c.NoMajority == 0 || max(e, -e) > bound {
			t.Errorf("lies %v: %v, error %v, bound %v, %+v", lies, p.Correction().State, e, bound, c)
		}
	}
}

// Servers that fall silent are no liars, and the rest are a majority as long as they are
// more than half of all.
func TestServersFallSilent(t *testing.T) {
	w := timeServers(t, 0)
	for k := range clocksync.Node(3) {
		w.At(units.Time(80+40*k)*ms, func() { w.Crash(k) })
	}
	for _, c := range []struct {
		until units.Time
		state clocksync.State
	}{{150 * ms, clocksync.Locked}, {230 * ms, clocksync.Holdover}} {
		w.Run(c.until)
		p := w.Protocol(client)
		if n := p.Counters(); p.Correction().State != c.state || n.NoMajority > 0 || n.Falsetickers > 0 {
			t.Errorf("after %v: %v, %+v", c.until, p.Correction().State, n)
		}
	}
}

// A step of the clock that stamps is taken out of what is published, for all servers at once.
func TestVoterSeesSteps(t *testing.T) {
	w := timeServers(t, 0)
	w.Run(100 * ms)
	w.Step(client, 3*ms)
	w.Run(101 * ms)
	if e := w.Time(client) - w.Time(0); max(e, -e) > 2*us {
		t.Errorf("error of %v after a step", e)
	}
	w.Run(200 * ms)
	if e := w.Time(client) - w.Time(0); max(e, -e) > 100*units.Nanosecond || w.Protocol(client).Correction().State != clocksync.Locked {
		t.Errorf("error of %v long after a step, %v", e, w.Protocol(client).Correction().State)
	}
}
