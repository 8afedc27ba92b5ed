package huygens

import (
	"errors"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// shortWindows configures a mesh whose windows are short, so that faults are over soon.
func shortWindows(c *Config) { c.Degree, c.Pairs, c.Window = 4, 40, 5*ms }

// However noisy stamps are, no other node leads, and only the reference's bound is 0.
func TestNobodyElseIsTheAnchor(t *testing.T) {
	for seed := range uint64(20) {
		l := eightNodes()
		l.seed, l.jitter, l.load = seed, units.Microsecond, 0
		l.change = shortWindows
		w := l.newWorld(t)
		w.Every(0, ms, func() {
			for n := clocksync.Node(1); int(n) < l.nodes; n++ {
				if bound, ok := w.Bound(n); ok && bound == 0 || w.Protocol(n).(*Agent).anchor {
					t.Fatalf("seed %d: at %v node %d states a bound of %v, anchor %v", seed, w.Now, n, bound, w.Protocol(n).(*Agent).anchor)
				}
			}
		})
		v := watchErrors(w, l.nodes, 10*ms, ms)
		w.Run(40 * ms)
		if v.outside > 0 || v.checks == 0 {
			t.Errorf("seed %d: %d of %d are outside of their bounds", seed, v.outside, v.checks)
		}
	}
}

// The reference is cut off when the others begin. One of them leads in its place, with a bound of
// the initial offset of clocks, and yields when the reference is back, even if they are windows
// apart.
func TestSplitBrainHeals(t *testing.T) {
	for _, offset := range []units.Time{10 * units.Microsecond, 300 * ms} {
		l := eightNodes()
		l.change, l.load = shortWindows, 0
		l.world = func(c *testnet.Config) {
			c.Blocked = func(from, to clocksync.Node, at units.Time) bool { return (from == 0) != (to == 0) && at < 50*ms }
			was := c.Oscillator
			c.Oscillator = func(n clocksync.Node) testnet.Oscillator {
				o := was(n)
				o.Offset = units.Time(n%5) * offset / 4
				return o
			}
		}
		l.offset = offset
		w := l.newWorld(t)
		v := watchErrors(w, l.nodes, 20*ms, ms)
		w.Run(49 * ms)
		if a := w.Protocol(1).(*Agent); !a.anchor || !a.lone {
			t.Errorf("node 1 does not lead: %+v", a.correction)
		}
		w.Run(180 * ms)
		for n := clocksync.Node(1); int(n) < l.nodes; n++ {
			if a := w.Protocol(n).(*Agent); a.anchor || a.lone || a.correction.State != clocksync.Locked {
				t.Errorf("offset %v: node %d: anchor %v, lone %v, %v", offset, n, a.anchor, a.lone, a.correction.State)
			}
		}
		wantWithin(t, "healed", worstDifference(w, l.nodes, 180*ms, 190*ms), 60*ns)
		if v.outside > 0 {
			t.Errorf("offset %v: %d of %d are outside of their bounds", offset, v.outside, v.checks)
		}
		for n := clocksync.Node(1); int(n) < l.nodes; n++ {
			if b, _ := w.Bound(n); b > units.Microsecond {
				t.Errorf("offset %v: node %d still states %v", offset, n, b)
			}
		}
	}
}

// While the reference is gone bounds grow: nothing measures how far the mesh's mean is from its
// clock.
func TestBoundsGrowWithoutTheReference(t *testing.T) {
	l := eightNodes()
	l.change, l.load = shortWindows, 0
	l.world = func(c *testnet.Config) {
		c.Blocked = func(from, to clocksync.Node, at units.Time) bool {
			return (from == 0) != (to == 0) && at > 100*ms && at < 300*ms
		}
	}
	w := l.newWorld(t)
	w.Run(100 * ms)
	v := watchErrors(w, l.nodes, 100*ms, ms)
	w.Run(130 * ms)
	early, _ := w.Bound(5)
	w.Run(290 * ms)
	late, _ := w.Bound(5)
	if a := w.Protocol(5).(*Agent); late <= early || a.adrift < 3*ns {
		t.Errorf("160 ms later the bound is %v, after %v; the mesh may be off by %v", late, early, a.adrift)
	}
	w.Run(400 * ms)
	if v.outside > 0 {
		t.Errorf("%d of %d are outside of their bounds", v.outside, v.checks)
	}
	if back, _ := w.Bound(5); back > late {
		t.Errorf("with the reference back the bound is %v, before %v", back, late)
	}
}

// A node can report only its own edges, each once, and no claim gives an edge more weight than the
// minimum deviation allows.
func TestReportsOfOthersEdges(t *testing.T) {
	l := eightNodes()
	l.change = shortWindows
	w := l.newWorld(t)
	w.Run(32 * ms)
	c := w.Protocol(0).(*Agent).coordinator
	mesh := Mesh(l.nodes, 4, l.seed)
	e := mesh[0]
	for mesh[0].Owner == 0 || e.Owner == 0 {
		mesh = mesh[1:]
		e = mesh[0]
	}
	forge := func(from clocksync.Node, edges ...edgeFit) error {
		r := report{window: c.window, part: 7, x0: c.nodes[from].x0, rate: c.nodes[from].rate, edges: edges}
		var b [clocksync.MaxMessage]byte
		return w.Inject(0, clocksync.Message{From: from, Port: clocksync.ProbePort, Data: b[:r.encode(b[:])]})
	}
	for _, stranger := range []struct{ from, to clocksync.Node }{{e.Peer, e.Owner}, {e.Owner, e.Owner}} {
		if err := forge(stranger.from, edgeFit{to: stranger.to, sigma: 1}); !errors.Is(err, ErrForeign) {
			t.Errorf("%d reports an edge to %d: %v", stranger.from, stranger.to, err)
		}
	}
	before := len(c.edges)
	one := edgeFit{to: e.Peer, beta: ms, sigma: 1}
	if err := forge(e.Owner, one, one, one); err != nil {
		t.Fatal(err)
	}
	if got := c.edges[before:]; len(got) != 1 || got[0].sigma != defaultConfig(clocksync.Setup{}).Sigma {
		t.Errorf("kept %+v", got)
	}
}

// The second coordinator misses the reference's first report, and a node misses the reference's
// solution and applies the second's: the mean of nodes that have just joined, about 200 ns off. The
// bound covers that, and the next solution restarts the line.
func TestTheMeanOfThoseWhoHaveJustJoined(t *testing.T) {
	for seed := range uint64(8) {
		l := eightNodes()
		l.change, l.load, l.seed = shortWindows, 0, seed
		l.world = func(c *testnet.Config) {
			c.Blocked = func(from, to clocksync.Node, at units.Time) bool {
				return from == 0 && (to == 1 || to == 5) && at > 4*ms && at < 13*ms
			}
			was := c.Oscillator
			c.Oscillator = func(n clocksync.Node) testnet.Oscillator {
				o := was(n)
				o.Skew = 15e-6
				if n == 0 {
					o.Skew = -15e-6
				}
				return o
			}
		}
		w := l.newWorld(t)
		v := watchErrors(w, l.nodes, 5*ms, 100*units.Microsecond)
		w.Run(40 * ms)
		if v.outside > 0 {
			t.Errorf("seed %d: %d of %d are outside of their bounds", seed, v.outside, v.checks)
		}
		wantWithin(t, "with the reference", worstDifference(w, l.nodes, 40*ms, 60*ms), 30*ns)
	}
}
