package huygens

import (
	"math"
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/units"
)

// Synchronized time is continuous: it never jumps by more than rounding to picoseconds, except
// where a step is counted.
func TestPublicationIsContinuous(t *testing.T) {
	l := eightNodes()
	l.jitter = 100 * ns
	l.change = shortWindows
	w := l.newWorld(t)
	w.Run(100 * ms)
	const node = 5
	published := 0
	was := w.Protocol(node).Correction()
	steps := w.Protocol(node).Counters().Steps
	for at := w.Now; at < 200*ms; at += 50 * units.Microsecond {
		w.Run(at)
		k := w.Protocol(node).Correction()
		if k != was {
			published++
			between := 5 + units.Time(50e6*math.Abs(k.Rate-was.Rate)) // another one may have come and gone since the last look
			if jump := k.At(k.From) - was.At(k.From); jump > between || jump < -between {
				t.Fatalf("at %v time jumps by %d ps", w.Now, jump)
			}
		}
		was = k
	}
	if published < 9 || w.Protocol(node).Counters().Steps != steps {
		t.Errorf("%d corrections, %d steps", published, w.Protocol(node).Counters().Steps-steps)
	}
}

// addWindow adds a window's points to an edge: pairs of a path of delay 1 us, with what each
// direction adds at an instant.
func addWindow(n *neighbour, r *rand.Rand, window int, forward, reverse func(x float64) units.Time) {
	const width = 20 * ms
	for range 200 {
		for up, to := range map[bool]*[]point{true: &n.upper, false: &n.lower} {
			x := units.Time(window)*width + units.Time(r.Int64N(int64(width)))
			into := float64(x-units.Time(window)*width)/float64(width) - 0.5
			if up {
				*to = append(*to, point{x, units.Microsecond + forward(into) + units.Time(r.Int64N(1000))})
			} else {
				*to = append(*to, point{x, -units.Microsecond - reverse(into) - units.Time(r.Int64N(1000))})
			}
		}
	}
}

// noDelay adds no delay.
func noDelay(float64) units.Time { return 0 }

// idleEdge returns an edge after six idle windows between clocks that agree.
func idleEdge(t *testing.T, cfg *Config) (*neighbour, *fitter, *rand.Rand) {
	t.Helper()
	n, f, r := &neighbour{node: 1, owned: true}, &fitter{}, rand.New(rand.NewPCG(1, 2))
	for k := range 6 {
		addWindow(n, r, k, noDelay, noDelay)
		if _, ok := n.fit(f, middleOf(k), units.Never, cfg, ns); !ok {
			t.Fatalf("window %d is not fitted", k)
		}
	}
	return n, f, r
}

func middleOf(window int) units.Time { return units.Time(window)*20*ms + 10*ms }

// If all pairs of a window met the same queue, the filter passes them, but the round trip shows it.
func TestGateRefusesWhatQueued(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{Jitter: ns})
	n, f, r := idleEdge(t, &cfg)
	addWindow(n, r, 6, func(float64) units.Time { return 800 * ns }, noDelay)
	if e, ok := n.fit(f, middleOf(6), units.Never, &cfg, ns); ok {
		t.Errorf("an edge on which every probe queued for 800 ns is believed: %v", e.beta)
	}
	addWindow(n, r, 7, noDelay, noDelay)
	if e, ok := n.fit(f, middleOf(7), units.Never, &cfg, ns); !ok || e.beta > ns || e.beta < -ns {
		t.Errorf("the window after is %v, %v", e.beta, ok)
	}
}

// A queue at the beginning of a window only would tilt the line. The slope of earlier windows
// prevents that.
func TestPriorKeepsTheSlope(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{Jitter: ns})
	n, f, r := idleEdge(t, &cfg)
	tilted := func(x float64) units.Time { return units.Time(150 * float64(ns) * (0.5 - x)) }
	addWindow(n, r, 6, tilted, noDelay)
	e, ok := n.fit(f, middleOf(6), units.Never, &cfg, ns)
	if limit := cfg.SlopeTrust + 45e-9; !ok || math.Abs(e.alpha) > limit {
		t.Errorf("the slope became %.0f ppb, want at most %.0f; fitted %v", e.alpha*1e9, limit*1e9, ok)
	}
	free := f.fit(n.upperOf(r, tilted), n.lowerOf(r), 20, 20, middleOf(6), -1e-3, 1e-3)
	if math.Abs(free.alpha) < 5*cfg.SlopeTrust {
		t.Errorf("without a prior the slope is %.0f ppb: the window shows nothing", free.alpha*1e9)
	}
}

func (n *neighbour) upperOf(r *rand.Rand, forward func(float64) units.Time) []point {
	n.upper = n.upper[:0]
	addWindow(n, r, 6, forward, noDelay)
	return n.upper
}

func (n *neighbour) lowerOf(*rand.Rand) []point { return n.lower }

// A bound is four deviations of the errors that results found, and little more: not smaller, and
// not uselessly wide.
func TestBoundFollowsWhatWasFound(t *testing.T) {
	for _, deviation := range []units.Time{ns, 30 * ns} {
		s := clocksync.Setup{Self: 3, Nodes: 8, Skew: 15e-6, Jitter: 5 * ns}
		a, err := New(s, defaultConfig(s))
		if err != nil {
			t.Fatal(err)
		}
		var now clocksync.Now
		a.Start(now)
		a.join = joining{best: 2 * units.Microsecond}
		a.joined(now)
		r := rand.New(rand.NewPCG(3, 4))
		for w := uint32(1); w <= 120; w++ {
			now.Mono += a.cfg.Window
			now.Hard = now.Mono
			a.reportedOK, a.reported, a.x0 = true, w, now.Hard-a.cfg.Window/2
			wrong := a.track.target.At(a.x0) - a.x0 + units.Time(r.NormFloat64()*float64(deviation))
			if err := a.apply(now, 0, &solution{window: w, err: wrong, sigma: deviation / 4}); err != nil {
				t.Fatal(err)
			}
			if w > 100 {
				found := 4 * float64(deviation)
				if got := float64(a.correction.Bound); got < 0.9*found || got > 4*found {
					t.Fatalf("results of a deviation of %v, and a bound of %v", deviation, a.correction.Bound)
				}
			}
		}
	}
}
