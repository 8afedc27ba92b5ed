package huygens

import (
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/units"
)

// constant returns a function that adds the same delay at every instant.
func constant(d units.Time) func(float64) units.Time { return func(float64) units.Time { return d } }

// The excess of a round trip over the shortest, without the noise of stamps, may be in one
// direction: half of it is in the edge's deviation.
func TestQueuesAreInTheDeviation(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{Jitter: ns})
	n, f, r := idleEdge(t, &cfg)
	addWindow(n, r, 6, noDelay, noDelay)
	e, ok := n.fit(f, middleOf(6), units.Never, &cfg, ns)
	if !ok || e.sigma > 2*ns {
		t.Fatalf("idle: %+v, fitted %v", e, ok)
	}
	addWindow(n, r, 7, constant(60*ns), noDelay)
	e, ok = n.fit(f, middleOf(7), units.Never, &cfg, ns)
	if want := (30*ns - 2*ns) / 2; !ok || e.sigma < want-ns || e.sigma > want+ns {
		t.Errorf("a round trip 60 ns longer: %+v, fitted %v, want a deviation of %v", e, ok, want)
	}
}

// If nineteen of twenty points queued, a tenth of them is too many for a fit.
func TestFewPointsWhereThereAreQueues(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{Jitter: ns})
	n, f, r := idleEdge(t, &cfg)
	addWindow(n, r, 6, func(float64) units.Time {
		if r.IntN(20) == 0 {
			return 0
		}
		return 50*ns + units.Time(r.Int64N(int64(300*ns)))
	}, noDelay)
	e, ok := n.fit(f, middleOf(6), units.Never, &cfg, ns)
	if !ok || max(e.beta, -e.beta) > 2*ns {
		t.Errorf("%+v, fitted %v: off by the queues that most points met", e, ok)
	}
}

// An edge with too few points is not fitted; the points wait for those of the next windows, but
// only for a few.
func TestTooFewPointsWait(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{Jitter: ns})
	add := func(n *neighbour, k, count int) {
		r := rand.New(rand.NewPCG(3, uint64(k)))
		for range count {
			x := units.Time(k)*cfg.Window + units.Time(r.Int64N(int64(cfg.Window)))
			n.upper = append(n.upper, point{x, units.Microsecond})
			n.lower = append(n.lower, point{x, -units.Microsecond})
		}
	}
	for _, c := range []struct {
		counts []int
		ok     bool // of the last window
	}{
		{[]int{cfg.MinPoints}, true}, {[]int{cfg.MinPoints - 1}, false}, {[]int{cfg.MinPoints - 1, 1}, true},
		{[]int{cfg.MinPoints - 1, 0, 0, 0, 0, 1}, false}, // the first are older than patience
	} {
		n, f := &neighbour{node: 1, owned: true}, &fitter{}
		var e edgeFit
		var ok bool
		for k, count := range c.counts {
			add(n, k, count)
			e, ok = n.fit(f, middleOf(k), units.Time(k+1)*cfg.Window, &cfg, ns)
		}
		if ok != c.ok || ok && int(e.points) < cfg.MinPoints {
			t.Errorf("%v points in windows: fitted %v of %d, want %v", c.counts, ok, e.points, c.ok)
		}
	}
	n, f := &neighbour{node: 1, owned: true}, &fitter{} // and those of one direction do not make up for the other
	add(n, 0, 2*cfg.MinPoints)
	n.lower = n.lower[:cfg.MinPoints-1]
	if _, ok := n.fit(f, middleOf(0), cfg.Window, &cfg, ns); ok {
		t.Errorf("fitted with %d points of one direction, of at least %d", len(n.lower), cfg.MinPoints)
	}
}

// An offset that changes more than a clock can means that a clock was stepped or the path changed:
// the edge starts again. A smaller change is believed.
func TestAnEdgeThatStepsIsBegunAnew(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{Jitter: ns})
	for _, sign := range []units.Time{1, -1} {
		for _, c := range []struct {
			by units.Time
			ok bool
		}{{cfg.StepLimit * 9 / 10, true}, {cfg.StepLimit * 11 / 10, false}} {
			n, f, r := idleEdge(t, &cfg)
			d := sign * c.by
			addWindow(n, r, 6, constant(d), constant(-d)) // the other clock is ahead by d
			_, ok := n.fit(f, middleOf(6), units.Never, &cfg, ns)
			if ok != c.ok || !ok && (n.fits != 0 || n.last.ok) {
				t.Errorf("the other clock steps by %v: fitted %v, want %v; %d windows are known", d, ok, c.ok, n.fits)
			}
		}
	}
}

// A change of the line above the limit is stepped; a smaller one is slewed over a window.
func TestStepOrSlew(t *testing.T) {
	s := clocksync.Setup{Self: 1, Nodes: 4, Seed: 1}
	for _, sign := range []units.Time{1, -1} {
		for _, more := range []units.Time{-ns, ns} {
			cfg := defaultConfig(s)
			a, err := New(s, cfg)
			if err != nil {
				t.Fatal(err)
			}
			now := clocksync.Now{Mono: units.Second, Hard: units.Second}
			by := sign * (cfg.StepLimit + more)
			a.track.target = clocksync.Correction{From: now.Hard, Offset: by}
			a.follow(now, ns)
			k, steps := a.Correction(), a.Counters().Steps
			at, later := k.At(now.Hard)-now.Hard, k.At(now.Hard+cfg.Window)-now.Hard-cfg.Window
			if step := more > 0; step && (at != by || steps != 1 || k.Slew != 0) || !step && (at != 0 || steps != 0) || max(later-by, by-later) > 10 {
				t.Errorf("to move by %v: %v at once and %v a window later, %d steps", by, at, later, steps)
			}
		}
	}
}
