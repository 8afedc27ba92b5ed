package huygens

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/internal/golden"
	"weft/params"
	"weft/units"
)

// defaultConfig returns the configuration of a node whose lab sets nothing.
func defaultConfig(s clocksync.Setup) Config {
	var p Params
	params.SetDefaults(&p)
	return p.Config(s)
}

// lab is a mesh of imperfect clocks with queues between.
type lab struct {
	nodes     int
	seed      uint64
	reference clocksync.Node
	load      float64
	jitter    units.Time
	offset    units.Time // that nodes are told; 0: that of make
	wander    float64
	change    func(*Config)
	world     func(*testnet.Config)
}

func (l lab) config(n clocksync.Node) (clocksync.Setup, Config) {
	s := clocksync.Setup{Self: n, Nodes: l.nodes, Reference: l.reference, Seed: l.seed, Jitter: l.jitter, Skew: 30e-6, Offset: max(l.offset, units.Millisecond)}
	cfg := defaultConfig(s)
	if l.change != nil {
		l.change(&cfg)
	}
	return s, cfg
}

// newWorld returns the mesh as a simulated world.
func (l lab) newWorld(t testing.TB) *testnet.World {
	t.Helper()
	w := testnet.Config{
		Nodes: l.nodes, Seed: l.seed, Grid: units.Millisecond,
		Oscillator: func(n clocksync.Node) testnet.Oscillator {
			r := rand.New(rand.NewPCG(l.seed, 77+uint64(n)))
			return testnet.Oscillator{Offset: units.Time((r.Float64()*2 - 1) * 1e9), Skew: (r.Float64()*2 - 1) * 15e-6,
				Wander: l.wander, Jitter: l.jitter}
		},
		Start: func(n clocksync.Node) clocksync.Protocol {
			a, err := New(l.config(n))
			if err != nil {
				t.Fatal(err)
			}
			return a
		},
		Path: func(r *rand.Rand) testnet.Path { return testnet.NewQueues(r, units.Microsecond, 2, l.load, false) },
	}
	if l.world != nil {
		l.world(&w)
	}
	return testnet.New(w)
}

// verdict are the errors of a run from a true time on.
type verdict struct {
	errors  []units.Time // of all pairs, absolute, sorted
	outside int          // of a bound, against node 0
	checks  int
	width   units.Time // largest bound
}

// quantile returns a quantile of the errors, which must be sorted.
func (v *verdict) quantile(q float64) units.Time {
	if len(v.errors) == 0 {
		return units.Never
	}
	return v.errors[min(len(v.errors)-1, int(q*float64(len(v.errors))))]
}

// watchErrors samples all nodes that are up, at an interval of true time, and returns their errors
// and bounds.
func watchErrors(w *testnet.World, nodes int, from, interval units.Time) *verdict {
	v := &verdict{}
	w.Every(from, interval, func() {
		var at []units.Time
		for n := range nodes {
			if w.Protocol(clocksync.Node(n)) == nil {
				continue
			}
			mine := w.Time(clocksync.Node(n))
			for _, other := range at {
				v.errors = append(v.errors, max(mine-other, other-mine))
			}
			at = append(at, mine)
			if bound, ok := w.Bound(clocksync.Node(n)); ok && w.Protocol(0) != nil {
				v.checks++
				e := mine - w.Time(0)
				v.width = max(v.width, bound)
				if max(e, -e) > bound {
					v.outside++
				}
			}
		}
	})
	return v
}

func (v *verdict) sort() *verdict { slices.Sort(v.errors); return v }

// The more load, the fewer probes meet empty queues; the published bounds hold nevertheless.
func TestLoads(t *testing.T) {
	for _, c := range []struct {
		load  float64
		pairs int
		p99   units.Time
	}{{0, 120, 10 * units.Nanosecond}, {0.5, 250, 30 * units.Nanosecond}, {0.9, 500, 100 * units.Nanosecond}} {
		l := lab{nodes: 8, seed: 3, load: c.load, jitter: 10 * units.Nanosecond, wander: 1e-8,
			change: func(cfg *Config) { cfg.Degree, cfg.Pairs = 6, c.pairs }}
		w := l.newWorld(t)
		v := watchErrors(w, l.nodes, 300*units.Millisecond, 700*units.Microsecond)
		w.Run(500 * units.Millisecond)
		v.sort()
		t.Logf("load %v: p50 %v p99 %v max %v; bounds up to %v", c.load, v.quantile(0.5), v.quantile(0.99), v.quantile(1), v.width)
		if v.quantile(0.99) > c.p99 || v.outside > 0 || v.checks < 2000 {
			t.Errorf("load %v: p99 %v, want at most %v; %d of %d errors outside of their bound", c.load, v.quantile(0.99), c.p99, v.outside, v.checks)
		}
	}
}

// Noise of the stamps is averaged, not only rejected: the limit is 0.35 of it and 5 ns.
func TestStampNoise(t *testing.T) {
	for _, jitter := range []units.Time{30 * units.Nanosecond, 100 * units.Nanosecond, 300 * units.Nanosecond} {
		l := lab{nodes: 8, seed: 4, load: 0.3, jitter: jitter, wander: 1e-8, change: func(cfg *Config) { cfg.Degree, cfg.Pairs = 6, 250 }}
		w := l.newWorld(t)
		v := watchErrors(w, l.nodes, 300*units.Millisecond, 700*units.Microsecond)
		w.Run(500 * units.Millisecond)
		v.sort()
		limit := units.Time(0.35*float64(jitter)) + 5*units.Nanosecond
		t.Logf("stamps of %v: p99 %v of %v", jitter, v.quantile(0.99), limit)
		if v.quantile(0.99) > limit || v.outside > 0 {
			t.Errorf("stamps of %v: p99 %v, want at most %v; %d outside of their bound", jitter, v.quantile(0.99), limit, v.outside)
		}
	}
}

// TestConvergence shows how eight clocks within 1 ms and 15 ppm converge.
func TestConvergence(t *testing.T) {
	var text strings.Builder
	fmt.Fprintf(&text, "%4s  %7s  %9s  %16s\n", "load", "time", "spread ns", "largest bound ns")
	for _, load := range []float64{0, 0.5} {
		l := lab{nodes: 8, seed: 3, load: load, jitter: 10 * units.Nanosecond, wander: 1e-8, change: func(cfg *Config) { cfg.Degree, cfg.Pairs = 6, 120 }}
		w := l.newWorld(t)
		for window := units.Time(1); window <= 16; window++ {
			w.Run(window * 20 * units.Millisecond)
			var bound units.Time
			for n := range clocksync.Node(l.nodes) {
				b, _ := w.Bound(n)
				bound = max(bound, b)
			}
			fmt.Fprintf(&text, "%4.1f  %7v  %9d  %16d\n", load, w.Now,
				largestDifference(w, l.nodes)/units.Nanosecond, bound/units.Nanosecond)
		}
	}
	golden.Table(t, "convergence",
		"Huygens: the spread of eight clocks and their largest error bound after each window of 20 ms.", text.String())
}
