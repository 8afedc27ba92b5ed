package huygens

import (
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// slowLink is a link that takes a while for each packet of its sender.
type slowLink struct {
	packet units.Time
	free   *units.Time // when the last one is through
}

func (s slowLink) Delay(t units.Time, _ *clocksync.Outgoing) units.Time {
	at := t + units.Microsecond
	*s.free = max(at, *s.free) + s.packet
	return *s.free - t
}

// The reference, or another node, is behind a link that takes 1 us per probe, five gaps of a pair:
// pairs arrive stretched whether they queued or not, and are sent farther apart from then on.
// Probes keep one direction of the link busy for a third of the time.
func TestASlowLink(t *testing.T) {
	for _, node := range []clocksync.Node{0, 3} {
		l := eightNodes()
		l.jitter = 5 * ns
		l.change = func(c *Config) { c.Degree, c.Pairs, c.Window = 7, 250, 10*ms }
		l.world = func(c *testnet.Config) {
			var free units.Time
			c.PathOf = func(from, to clocksync.Node, _ *rand.Rand) testnet.Path {
				switch node {
				case to:
					return slowLink{units.Microsecond, &free}
				case from:
					return fixedPath{2 * units.Microsecond}
				}
				return fixedPath{units.Microsecond}
			}
		}
		w := l.newWorld(t)
		v := watchErrors(w, l.nodes, 80*ms, 700*units.Microsecond)
		w.Run(200 * ms)
		v.sort()
		t.Logf("node %d: p99 %v, bounds up to %v", node, v.quantile(0.99), v.width)
		if v.quantile(0.99) > 5*ns || v.outside > 0 || v.checks < 1000 {
			t.Errorf("node %d behind a slow link: p99 %v, want at most 5 ns; %d of %d outside of their bounds", node, v.quantile(0.99), v.outside, v.checks)
		}
		for i := range w.Protocol(5).(*Agent).neighbours {
			n := &w.Protocol(5).(*Agent).neighbours[i]
			if wide := n.spacing >= units.Microsecond; wide != (n.node == node) {
				t.Errorf("pairs to node %d are %v apart", n.node, n.spacing)
			}
		}
	}
}

// All pairs that pass the filter have met the same queue from the start, so that no round trip was
// ever shorter. One packet that did not, of a pair that was dropped, shows it.
func TestGateKnowsWhatTheFilterLeftOut(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{Jitter: ns})
	late := func(float64) units.Time { return 800 * ns }
	for _, faster := range []bool{false, true} {
		n, f, r := &neighbour{node: 1, owned: true}, &fitter{}, rand.New(rand.NewPCG(1, 2))
		for k := range 8 {
			if faster {
				n.see(true, middleOf(k), units.Microsecond)
				n.see(false, middleOf(k), -units.Microsecond)
			}
			addWindow(n, r, k, late, noDelay)
			if _, ok := n.fit(f, middleOf(k), units.Never, &cfg, ns); k > cfg.Memory && ok == faster {
				t.Fatalf("window %d, with packets that were faster %v: fitted %v", k, faster, ok)
			}
		}
	}
}

// If one direction keeps more of its points than the other, the fit uses the same share of both, so
// that the noise of stamps shifts both alike.
func TestOneWayLoadIsNoOffset(t *testing.T) {
	const jitter = 20 * ns
	cfg := defaultConfig(clocksync.Setup{Jitter: jitter})
	n, f, r := &neighbour{node: 1, owned: true}, &fitter{}, rand.New(rand.NewPCG(1, 2))
	var mean float64
	for k := range 30 {
		for i := range 1000 {
			x := units.Time(k)*20*ms + units.Time(r.Int64N(int64(20*ms)))
			noise := func() units.Time { return units.Time(r.NormFloat64() * float64(jitter)) }
			n.lower = append(n.lower, point{x, -units.Microsecond + noise()})
			if i%10 == 0 {
				n.upper = append(n.upper, point{x, units.Microsecond + noise()})
			}
		}
		e, ok := n.fit(f, middleOf(k), units.Never, &cfg, jitter)
		if !ok {
			t.Fatalf("window %d is not fitted", k)
		}
		mean += float64(e.beta) / 30
	}
	if d := units.Time(mean); d > 2*ns || d < -2*ns { // with as many points of each it is 8.6 ns
		t.Errorf("a tenth of the probes one way, and the offset is %v on average", d)
	}
}

// The reference is there when the others begin, and is cut off from then on, as behind a link that
// is slower than its probes. Its rate was never measured: the others follow their mean, and their
// bounds grow by the largest difference of two clocks.
func TestAReferenceThatWasNeverMeasured(t *testing.T) {
	for _, seed := range []uint64{0, 3} {
		l := eightNodes()
		l.seed, l.load = seed, 0
		l.change = func(c *Config) { c.Degree, c.Pairs, c.Window = 7, 40, 10*ms }
		l.world = func(c *testnet.Config) {
			c.Blocked = func(from, to clocksync.Node, at units.Time) bool {
				return (from == 0 || to == 0) && at > 4*ms && at < 600*ms
			}
		}
		w := l.newWorld(t)
		v := watchErrors(w, l.nodes, 5*ms, 700*units.Microsecond)
		w.Run(590 * ms)
		v.sort()
		if v.quantile(1) < 2*units.Microsecond {
			t.Errorf("seed %d: the others are %v from the reference: there is nothing to be seen", seed, v.quantile(1))
		}
		wantWithin(t, "with the reference back", worstDifference(w, l.nodes, 660*ms, 700*ms), 100*ns)
		v.sort()
		t.Logf("seed %d: up to %v off, bounds up to %v", seed, v.quantile(1), v.width)
		if v.outside > 0 || v.checks < 5000 {
			t.Errorf("seed %d: %d of %d outside of their bounds", seed, v.outside, v.checks)
		}
	}
}

// A link that is slow for a while widens the gap of pairs; when it is fast again the gap narrows
// after some windows. While it is slow, only one pair of sixteen tries a narrower gap.
func TestAGapNarrowsAgain(t *testing.T) {
	const fast = 300 * ms
	l := eightNodes()
	l.jitter, l.load = 5*ns, 0
	l.change = func(c *Config) { c.Degree, c.Pairs, c.Window = 7, 120, 10*ms }
	l.world = func(c *testnet.Config) {
		var free units.Time
		c.PathOf = func(_, to clocksync.Node, _ *rand.Rand) testnet.Path {
			if to == 3 {
				return pathUntil{fast, slowLink{units.Microsecond, &free}, fixedPath{units.Microsecond}}
			}
			return fixedPath{units.Microsecond}
		}
	}
	w := l.newWorld(t)
	n := func() *neighbour { a := w.Protocol(5).(*Agent); return &a.neighbours[a.of[3]] }
	narrow := 0
	w.Every(60*ms, 10*ms, func() {
		if w.Now < fast && n().spacing < units.Microsecond {
			narrow++
		}
	})
	w.Run(fast)
	if narrow > 0 {
		t.Errorf("over a slow link pairs were too close %d times of 24", narrow)
	}
	w.Run(fast + 120*ms)
	if cfg := &w.Protocol(5).(*Agent).cfg; n().spacing != cfg.Spacing {
		t.Errorf("twelve windows after the link is fast again pairs are %v apart, want %v", n().spacing, cfg.Spacing)
	}
}

// pathUntil is one path up to an instant, and then another.
type pathUntil struct {
	at            units.Time
	before, after testnet.Path
}

func (u pathUntil) Delay(t units.Time, m *clocksync.Outgoing) units.Time {
	if t < u.at {
		return u.before.Delay(t, m)
	}
	return u.after.Delay(t, m)
}
