package ptp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// boundaryChain returns a world of four nodes of which 1 and 2 are boundary clocks:
// 0 <- 1 <- 2 <- 3.
func boundaryChain(t *testing.T, peer bool) *testnet.World {
	t.Helper()
	return testnet.New(testnet.Config{
		Nodes: 4, Seed: 5,
		Path: func(r *rand.Rand) testnet.Path {
			return &testnet.Jittery{Base: us, Jitter: 10 * units.Nanosecond, Random: r}
		},
		Oscillator: func(n clocksync.Node) testnet.Oscillator {
			return testnet.Oscillator{Offset: units.Time(n) * 100 * us, Skew: float64(n) * 5e-6, Wander: 1e-9, Jitter: 5 * units.Nanosecond}
		},
		Start: func(n clocksync.Node) clocksync.Protocol {
			p := defaults()
			p.PeerDelay = peer
			place := &clocksync.Place{Master: max(0, n-1)}
			if n < 3 {
				place.Followers = []clocksync.Node{n + 1}
			}
			c, err := p.Clock(clocksync.Setup{Self: n, Nodes: 4, Seed: 9, Skew: 20e-6, Jitter: 5 * units.Nanosecond, Place: place})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	})
}

// worstError returns the largest error of a node against node 0.
func worstError(w *testnet.World) (worst units.Time) {
	for n := range clocksync.Node(4) {
		e := w.Time(n) - w.Time(0)
		worst = max(worst, e, -e)
	}
	return worst
}

func TestAChainOfBoundaryClocksKeepsTime(t *testing.T) {
	for name, peer := range map[string]bool{"end to end": false, "peer": true} {
		w := boundaryChain(t, peer)
		worst, outside := units.Time(0), 0
		w.Every(150*ms, 100*us, func() {
			worst = max(worst, worstError(w))
			for n := range clocksync.Node(4) {
				e := w.Time(n) - w.Time(0)
				if b, ok := w.Bound(n); !ok || max(e, -e) > b {
					outside++
				}
			}
		})
		w.Run(300 * ms)
		if worst > 150*units.Nanosecond || outside > 0 {
			t.Errorf("%s: up to %v off, %d times outside of the bound", name, worst, outside)
		}
	}
}

// A node behind a crashed boundary clock goes on by its frequency, says so, and is taken up again.
func TestABoundaryClockCrashes(t *testing.T) {
	w := boundaryChain(t, false)
	w.Run(150 * ms)
	w.Crash(1)
	w.Run(200 * ms)
	last := w.Protocol(3).Correction()
	e := w.Time(3) - w.Time(0)
	if b, ok := w.Bound(3); !ok || max(e, -e) > b || e == 0 {
		t.Errorf("50 ms after the crash: %v off, bound %v, %v", e, b, last.State)
	}
	w.Restart(1)
	w.Run(400 * ms)
	if worst := worstError(w); worst > 150*units.Nanosecond || w.Protocol(3).Correction().State != clocksync.Locked {
		t.Errorf("after the restart: up to %v off, %v", worst, w.Protocol(3).Correction().State)
	}
}

func TestPortsOfBoundaryClocks(t *testing.T) {
	s := clocksync.Setup{Self: 1, Nodes: 4, Skew: 20e-6, Place: &clocksync.Place{Master: 0, Followers: []clocksync.Node{2, 3}}}
	p := defaults()
	cfg := p.Config(s)
	if cfg.SlaveOnly || len(cfg.Ports) != 2 || !slices.Equal(cfg.Ports[0], []clocksync.Node{0}) || !slices.Equal(cfg.Ports[1], []clocksync.Node{2, 3}) {
		t.Errorf("a boundary clock: %v, slave only %v", cfg.Ports, cfg.SlaveOnly)
	}
	if r := p.Rate(s); r != 7000 { // a Delay_Req, and three messages for each follower
		t.Errorf("%v messages per second", r)
	}
	s.Place = &clocksync.Place{Master: 1, Followers: []clocksync.Node{0}}
	if cfg = p.Config(s); cfg.SlaveOnly || len(cfg.Ports) != 1 {
		t.Errorf("the reference: %v, slave only %v", cfg.Ports, cfg.SlaveOnly)
	}
	s.Place = &clocksync.Place{}
	if cfg = p.Config(s); !cfg.SlaveOnly || len(cfg.Ports) != 1 {
		t.Errorf("a host at the end: %v, slave only %v", cfg.Ports, cfg.SlaveOnly)
	}
}
