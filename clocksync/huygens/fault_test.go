package huygens

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

const (
	ns = units.Nanosecond
	ms = units.Millisecond
)

// eightNodes returns a mesh of eight nodes with four edges each, under a load of 0.3.
func eightNodes() lab {
	return lab{nodes: 8, seed: 3, load: 0.3, jitter: 10 * ns, wander: 1e-8, change: func(c *Config) { c.Degree, c.Pairs = 4, 120 }}
}

// largestDifference returns the largest difference between nodes that are up, except some.
func largestDifference(w *testnet.World, nodes int, except ...clocksync.Node) units.Time {
	least, most := units.Never, -units.Never
	for n := range clocksync.Node(nodes) {
		skip := w.Protocol(n) == nil
		for _, e := range except {
			skip = skip || n == e
		}
		if !skip {
			least, most = min(least, w.Time(n)), max(most, w.Time(n))
		}
	}
	return most - least
}

// worstDifference runs until a time and returns the largest difference from an instant on.
func worstDifference(w *testnet.World, nodes int, from, until units.Time, except ...clocksync.Node) units.Time {
	var worst units.Time
	w.At(from, func() {})
	w.Run(from)
	for at := from; at <= until; at += ms {
		w.Run(at)
		worst = max(worst, largestDifference(w, nodes, except...))
	}
	return worst
}

// wantWithin logs a difference of clocks and checks that it is at most a limit.
func wantWithin(t *testing.T, what string, got, most units.Time) {
	t.Helper()
	t.Logf("%s: %v", what, got)
	if got > most {
		t.Errorf("%s: clocks differ by up to %v, want at most %v", what, got, most)
	}
}

// When the reference crashes no clock steps and the mesh keeps its mean; afterwards the reference
// joins with the time of the others.
func TestReferenceCrash(t *testing.T) {
	l := eightNodes()
	w := l.newWorld(t)
	wantWithin(t, "before", worstDifference(w, l.nodes, 300*ms, 320*ms), 30*ns)
	steps := make([]int64, l.nodes)
	for n := range steps {
		steps[n] = w.Protocol(clocksync.Node(n)).Counters().Steps
	}
	before := w.Time(5)
	at := w.Now
	w.Crash(0)
	wantWithin(t, "without the reference", worstDifference(w, l.nodes, 320*ms, 600*ms), 40*ns)
	for n := 1; n < l.nodes; n++ {
		p := w.Protocol(clocksync.Node(n))
		if p.Counters().Steps != steps[n] || p.Correction().State != clocksync.Locked {
			t.Errorf("node %d: %d steps, %v", n, p.Counters().Steps-steps[n], p.Correction().State)
		}
	}
	if d := w.Time(5) - before - (w.Now - at); max(d, -d) > 10*units.Microsecond {
		t.Errorf("without a reference the mesh ran away by %v in %v", d, w.Now-at)
	}
	w.Restart(0)
	wantWithin(t, "with the reference back", worstDifference(w, l.nodes, 760*ms, 800*ms), 100*ns)
}

// A node that crashes costs the others nothing, and is back within three windows.
func TestNodeCrash(t *testing.T) {
	l := eightNodes()
	w := l.newWorld(t)
	w.Run(300 * ms)
	w.Crash(5)
	wantWithin(t, "the others", worstDifference(w, l.nodes, 301*ms, 400*ms), 40*ns)
	w.Restart(5)
	wantWithin(t, "four windows after it is back", worstDifference(w, l.nodes, 490*ms, 600*ms), 100*ns)
}

// The coordinator and its backup both crash: nodes hold over, and say so.
func TestCoordinatorsCrash(t *testing.T) {
	l := eightNodes()
	w := l.newWorld(t)
	w.Run(300 * ms)
	w.Crash(0)
	w.Crash(1)
	w.Run(900 * ms)
	for n := clocksync.Node(2); int(n) < l.nodes; n++ {
		if s := w.Protocol(n).Correction().State; s != clocksync.Holdover {
			t.Errorf("node %d is %v without any coordinator", n, s)
		}
		if b, _ := w.Bound(n); largestDifference(w, l.nodes)/2 > b {
			t.Errorf("node %d: bound %v, clocks differ by %v", n, b, largestDifference(w, l.nodes))
		}
	}
	w.Restart(1)
	w.Restart(0)
	wantWithin(t, "with both back", worstDifference(w, l.nodes, 1200*ms, 1250*ms), 100*ns)
}

// A step of a hardware clock is detected, and causes an error of at most the alarm's threshold.
func TestClockSteps(t *testing.T) {
	for _, node := range []clocksync.Node{0, 5} {
		for _, by := range []units.Time{-30 * ns, 300 * ns, 5 * units.Microsecond, -ms, units.Second} {
			l := eightNodes()
			w := l.newWorld(t)
			w.Run(305 * ms)
			w.Step(node, by)
			wantWithin(t, "after a step", worstDifference(w, l.nodes, 306*ms, 450*ms), 100*ns)
			if w.Protocol(node).Counters().Resets != 1 {
				t.Errorf("node %d stepped by %v: %+v", node, by, w.Protocol(node).Counters())
			}
		}
	}
}

// Steps that the monotonic clock does not show are found by the edges.
func TestStepsWithoutAlarm(t *testing.T) {
	l := eightNodes()
	l.change = func(c *Config) { c.Degree, c.Pairs, c.StepAlarm = 4, 120, 0 }
	w := l.newWorld(t)
	w.Run(305 * ms)
	w.Step(5, 50*units.Microsecond)
	wantWithin(t, "a while after", worstDifference(w, l.nodes, 600*ms, 650*ms), 100*ns)
}

func TestLossRepetitionAndReordering(t *testing.T) {
	for name, change := range map[string]func(*testnet.Config){
		"loss":     func(c *testnet.Config) { c.Loss = 0.2 },
		"repeated": func(c *testnet.Config) { c.Twice = 0.3 },
		"late":     func(c *testnet.Config) { c.Late, c.LateBy = 0.05, 300*units.Microsecond },
	} {
		l := eightNodes()
		l.world = change
		w := l.newWorld(t)
		wantWithin(t, name, worstDifference(w, l.nodes, 400*ms, 600*ms), 60*ns)
		if c := w.Protocol(3).Counters(); name == "repeated" && c.Stale < 1000 || c.Malformed > 0 {
			t.Errorf("%s: %+v, refused %v", name, c, w.Errors)
		}
	}
}

// fixedPath is a path with a constant delay.
type fixedPath struct{ delay units.Time }

func (f fixedPath) Delay(units.Time, *clocksync.Outgoing) units.Time { return f.delay }

// asymmetric returns a lab whose paths have extra delays.
func asymmetric(extra func(from, to clocksync.Node) units.Time) lab {
	l := eightNodes()
	l.jitter, l.wander = 0, 0
	l.change = func(c *Config) { c.Degree, c.Pairs = 7, 60 }
	l.world = func(c *testnet.Config) {
		c.PathOf = func(from, to clocksync.Node, _ *rand.Rand) testnet.Path {
			return fixedPath{units.Microsecond + extra(from, to)}
		}
	}
	return l
}

// One asymmetric edge contradicts the loops, and is dropped. A node whose edges are all equally
// asymmetric fits, and is wrong by half of the difference: no loop shows a gradient.
func TestAsymmetry(t *testing.T) {
	w := asymmetric(func(from, to clocksync.Node) units.Time {
		if from == 3 && to == 4 {
			return 5 * units.Microsecond
		}
		return 0
	}).newWorld(t)
	wantWithin(t, "one edge of 28", worstDifference(w, 8, 300*ms, 320*ms), 10*ns)
	if before := w.Protocol(0).Counters().Filtered; before == 0 {
		t.Error("no edge was dropped")
	}
	w = asymmetric(func(from, to clocksync.Node) units.Time {
		if to == 3 {
			return units.Microsecond
		}
		return 0
	}).newWorld(t)
	wantWithin(t, "the others", worstDifference(w, 8, 300*ms, 320*ms, 3), 10*ns)
	if e := w.Time(3) - w.Time(0); max(e+500*ns, -e-500*ns) > 10*ns {
		t.Errorf("a node with 1 us more on every way in is off by %v, want -500 ns", e)
	}
}

// A node that reports a different time to every other harms only itself: its edges do not fit,
// those of the others do.
func TestFalseticker(t *testing.T) {
	w := asymmetric(func(from, to clocksync.Node) units.Time {
		if from == 3 {
			return units.Time(to) * 3 * units.Microsecond
		}
		return 0
	}).newWorld(t)
	wantWithin(t, "the others", worstDifference(w, 8, 300*ms, 320*ms, 3), 20*ns)
}

// A node that lies by the same amount to all others gets a solution that is wrong by that amount,
// and follows it. No other node moves, and no other bound fails, whatever the lie and the number of
// liars, except that all nodes follow the reference (docs/adr/0175).
func TestConsistentLies(t *testing.T) {
	for _, c := range []struct {
		by    units.Time
		liars []clocksync.Node
	}{{50 * ns, []clocksync.Node{3}}, {10 * units.Microsecond, []clocksync.Node{3}}, {-units.Second, []clocksync.Node{3}},
		{10 * units.Microsecond, []clocksync.Node{1, 3, 4, 5, 7}}} {
		l := eightNodes()
		l.change, l.load = shortWindows, 0
		w := l.newWorld(t)
		w.Run(100 * ms)
		for _, n := range c.liars {
			w.Protocol(n).(*Agent).Lie(c.by)
		}
		wantWithin(t, "the others", worstDifference(w, l.nodes, 101*ms, 160*ms, c.liars...), 20*ns)
		for n := range clocksync.Node(l.nodes) {
			e := w.Time(n) - w.Time(0)
			if b, _ := w.Bound(n); max(e, -e) > b && !slices.Contains(c.liars, n) {
				t.Errorf("a lie of %v: node %d is off by %v, and states %v", c.by, n, e, b)
			}
		}
		if e := w.Time(c.liars[0]) - w.Time(0); c.by > -ms && c.by < ms && max(e+c.by, -e-c.by) > 30*ns {
			t.Errorf("who lied by %v is off by %v, want as much the other way", c.by, e)
		}
	}
	l := eightNodes()
	l.change, l.load = shortWindows, 0
	w := l.newWorld(t)
	w.Run(100 * ms)
	w.Protocol(0).(*Agent).Lie(units.Microsecond)
	wantWithin(t, "who follows a reference that lies", worstDifference(w, l.nodes, 400*ms, 420*ms, 0), 30*ns)
	if e := w.Time(5) - w.Time(0); max(e-units.Microsecond, units.Microsecond-e) > 30*ns {
		t.Errorf("the reference lies by 1 us, and who follows it is off by %v", e)
	}
}

// A partition and its end.
func TestPartition(t *testing.T) {
	l := eightNodes()
	l.world = func(c *testnet.Config) {
		c.Blocked = func(from, to clocksync.Node, at units.Time) bool {
			return (from < 4) != (to < 4) && at > 300*ms && at < 500*ms
		}
	}
	w := l.newWorld(t)
	w.Run(499 * ms)
	for n := clocksync.Node(4); n < 8; n++ {
		if s := w.Protocol(n).Correction().State; s != clocksync.Holdover {
			t.Errorf("cut off, node %d is %v", n, s)
		}
	}
	wantWithin(t, "after the partition", worstDifference(w, l.nodes, 800*ms, 850*ms), 100*ns)
}

// Replayed probes are counted and ignored, as are messages from nodes that may not send them.
func TestReplayAndForgery(t *testing.T) {
	type taped struct{ m clocksync.Message }
	var tape []taped
	l := eightNodes()
	l.world = func(c *testnet.Config) {
		c.OnWire = func(at units.Time, from clocksync.Node, m *clocksync.Outgoing) {
			if m.To == 3 && at > 100*ms && len(tape) < 500 {
				tape = append(tape, taped{clocksync.Message{From: from, Port: m.Port, Data: append([]byte(nil), m.Data[:m.N]...)}})
			}
		}
	}
	w := l.newWorld(t)
	w.Run(300 * ms)
	before := w.Protocol(3).Counters()
	for _, x := range tape {
		_ = w.Inject(3, x.m)
	}
	after := w.Protocol(3).Counters()
	if got := after.Stale - before.Stale; got < int64(len(tape))*9/10 {
		t.Errorf("%d of %d old messages were refused", got, len(tape))
	}
	for name, m := range map[string]clocksync.Message{
		"wrong port":         {From: 1, Port: clocksync.EventPort, Data: sampleMessages()[0]},
		"no such node":       {From: 70, Port: clocksync.ProbePort, Data: sampleMessages()[0]},
		"itself":             {From: 3, Port: clocksync.ProbePort, Data: sampleMessages()[0]},
		"report to nobody":   {From: 1, Port: clocksync.ProbePort, Data: sampleMessages()[3]},
		"join to nobody":     {From: 1, Port: clocksync.ProbePort, Data: sampleMessages()[1]},
		"solution of a node": {From: 6, Port: clocksync.ProbePort, Data: sampleMessages()[4]},
		"welcome of a node":  {From: 6, Port: clocksync.ProbePort, Data: sampleMessages()[2]},
	} {
		if err := w.Inject(3, m); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, want it refused as foreign", name, err)
		}
	}
	wantWithin(t, "after all that", worstDifference(w, l.nodes, 400*ms, 450*ms), 60*ns)
}

// No message makes the correction invalid.
func TestGarbageNeverBreaksAnAgent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := clocksync.Setup{Self: clocksync.Node(rapid.IntRange(0, 3).Draw(t, "self")), Nodes: 4, Seed: 1, Jitter: 10 * ns}
		cfg := defaultConfig(s)
		cfg.Pairs, cfg.MinPoints = 20, 2
		a, err := New(s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var now clocksync.Now
		a.Start(now)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			now.Mono += units.Time(r.Int64N(5e8))
			now.Hard = now.Mono
			if r.IntN(50) == 0 {
				now.Hard += units.Time(r.Int64N(2e12) - 1e12)
			}
			switch r.IntN(4) {
			case 0:
				if at, ok := a.Deadline(); ok && at <= now.Mono {
					a.Advance(now)
				}
			case 1:
				var out clocksync.Outgoing
				if a.Transmit(now, &out) && out.Event {
					a.Sent(now, out.ID, now.Hard)
				}
			default:
				data := append([]byte(nil), sampleMessages()[r.IntN(5)]...)
				for range r.IntN(3) {
					data[3+r.IntN(len(data)-3)] = byte(r.Uint32())
				}
				switch kind(data[2]) {
				case kindSolution, kindReport: // of a window that is awaited
					putHead(data, kind(data[2]), 0, a.reported)
				case kindWelcome:
					putHead(data, kindWelcome, 1, a.join.number)
					putTime(data[headSize:], a.join.asked)
				}
				_ = a.Receive(now, &clocksync.Message{From: clocksync.Node(r.IntN(4)), Port: clocksync.ProbePort, Stamp: now.Hard, Data: data})
			}
			if err := a.Correction().Check(); err != nil {
				t.Fatalf("%+v: %v", a.Correction(), err)
			}
		}
	})
}

func TestSameSeedSameRun(t *testing.T) {
	run := func() (out []units.Time, c clocksync.Counters) {
		l := eightNodes()
		w := l.newWorld(t)
		w.Every(0, ms, func() { out = append(out, w.Time(5)) })
		w.Run(100 * ms)
		return out, w.Protocol(5).Counters()
	}
	a, ca := run()
	b, cb := run()
	if !reflect.DeepEqual(a, b) || ca != cb {
		t.Error("two runs of one seed differ")
	}
}

func TestRefusedConfigurations(t *testing.T) {
	s := clocksync.Setup{Self: 1, Nodes: 8}
	for name, change := range map[string]func(*Config, *clocksync.Setup){
		"alone":        func(_ *Config, s *clocksync.Setup) { s.Nodes = 1 },
		"reference":    func(_ *Config, s *clocksync.Setup) { s.Reference = 8 },
		"degree":       func(c *Config, _ *clocksync.Setup) { c.Degree = 0 },
		"pairs":        func(c *Config, _ *clocksync.Setup) { c.Pairs = 0 },
		"window":       func(c *Config, _ *clocksync.Setup) { c.Window = 0 },
		"spacing":      func(c *Config, _ *clocksync.Setup) { c.Spacing = ms },
		"epsilon":      func(c *Config, _ *clocksync.Setup) { c.Epsilon = 0 },
		"share":        func(c *Config, _ *clocksync.Setup) { c.Share = 2 },
		"slope":        func(c *Config, _ *clocksync.Setup) { c.SlopeTrust = 0 },
		"coordinators": func(c *Config, _ *clocksync.Setup) { c.Coordinators = 3 },
		"limits":       func(c *Config, _ *clocksync.Setup) { c.StepLimit = -1 },
	} {
		cfg, setup := defaultConfig(s), s
		change(&cfg, &setup)
		if _, err := New(setup, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Two nodes, three, another reference, one coordinator: the small cases.
func TestSmallLabs(t *testing.T) {
	for _, c := range []struct {
		nodes, coordinators int
		reference           clocksync.Node
	}{{2, 2, 0}, {2, 1, 1}, {3, 2, 2}, {5, 1, 3}} {
		l := eightNodes()
		l.nodes, l.reference = c.nodes, c.reference
		l.change = func(cfg *Config) { cfg.Degree, cfg.Pairs, cfg.Coordinators = 10, 120, c.coordinators }
		w := l.newWorld(t)
		wantWithin(t, "a small lab", worstDifference(w, l.nodes, 300*ms, 350*ms), 40*ns)
		if k := w.Protocol(c.reference).Correction(); k.Offset != 0 || k.Rate != 0 || k.State != clocksync.Locked {
			t.Errorf("%+v: the reference follows others: %+v", c, k)
		}
	}
}
