package ptp

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

const ms = units.Millisecond

// PortState returns the state of port n, counted from 1.
func (c *Clock) PortState(n int) PortState { return c.ports[n-1].state }

// Grandmaster returns the identity of the grandmaster that the clock follows, or its own.
func (c *Clock) Grandmaster() ClockIdentity {
	if c.parent.ok {
		return c.parent.set.Grandmaster
	}
	return c.id
}

// IEEE 1588-2019, figure 34: the first attribute that differs decides, and the lower one wins.
func TestDataSetsCompareInOrder(t *testing.T) {
	base := DataSet{Priority1: 5, Class: 5, Accuracy: 5, Variance: 5, Priority2: 5, Grandmaster: 5}
	worse := []func(*DataSet){
		func(d *DataSet) { d.Priority1++ }, func(d *DataSet) { d.Class++ }, func(d *DataSet) { d.Accuracy++ },
		func(d *DataSet) { d.Variance++ }, func(d *DataSet) { d.Priority2++ }, func(d *DataSet) { d.Grandmaster++ },
	}
	for i, w := range worse {
		d := base
		w(&d)
		for _, b := range worse[i+1:] { // later attributes do not count
			e := base
			b(&e)
			e.Grandmaster = min(e.Grandmaster, 4)
			if i < len(worse)-1 && compare(&claim{set: d}, &claim{set: e}) != bBetter {
				t.Errorf("attribute %d: %+v is not worse than %+v", i, d, e)
			}
		}
	}
}

// Figure 35: for the same grandmaster the shorter path wins, then the sender, then the receiving
// port.
func TestTopologyDecidesBetweenWays(t *testing.T) {
	at := func(steps uint16, sender, receiver ClockIdentity, port uint16) *claim {
		return &claim{set: DataSet{Grandmaster: 1, Steps: steps}, sender: PortIdentity{sender, 1}, receiver: PortIdentity{receiver, port}}
	}
	for _, c := range []struct {
		a, b *claim
		want order
	}{
		{at(1, 2, 9, 1), at(3, 2, 9, 1), aBetter},
		{at(3, 2, 9, 1), at(1, 2, 9, 1), bBetter},
		{at(1, 2, 9, 1), at(2, 3, 9, 2), aByTopology}, // the receiver of the farther one is not below its sender
		{at(2, 3, 9, 2), at(1, 2, 9, 1), bByTopology},
		{at(2, 9, 3, 2), at(1, 2, 3, 1), bBetter},
		{at(1, 2, 3, 1), at(2, 9, 3, 2), aBetter},
		{at(1, 2, 9, 1), at(1, 3, 9, 1), aByTopology},
		{at(1, 2, 9, 2), at(1, 2, 9, 1), bByTopology},
		{at(1, 2, 9, 1), at(1, 2, 9, 1), same},
	} {
		if got := compare(c.a, c.b); got != c.want {
			t.Errorf("%+v against %+v: %d, want %d", *c.a, *c.b, got, c.want)
		}
	}
}

func TestComparisonIsAntisymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string) uint8 { return rapid.Uint8Range(0, 2).Draw(t, name) }
		some := func() *claim {
			return &claim{set: DataSet{Priority1: small("p"), Grandmaster: ClockIdentity(small("g")), Steps: uint16(small("s"))},
				sender: PortIdentity{ClockIdentity(small("from")), uint16(small("fp"))}, receiver: PortIdentity{ClockIdentity(small("to")), uint16(small("tp"))}}
		}
		a, b := some(), some()
		if a.set.Grandmaster == b.set.Grandmaster {
			b.set.Priority1 = a.set.Priority1
		}
		if x, y := compare(a, b), compare(b, a); x != -y {
			t.Fatalf("%d one way and %d the other: %+v, %+v", x, y, *a, *b)
		}
	})
}

// Figure 33, one decision at a time.
func TestStateDecision(t *testing.T) {
	own := &claim{set: DataSet{Priority1: 5, Class: 248, Grandmaster: 5}}
	atomic := &claim{set: DataSet{Priority1: 5, Class: 6, Grandmaster: 5}}
	better := &claim{set: DataSet{Priority1: 1, Class: 6, Grandmaster: 1}, sender: PortIdentity{1, 1}, receiver: PortIdentity{5, 1}}
	other := &claim{set: DataSet{Priority1: 1, Class: 6, Grandmaster: 1}, sender: PortIdentity{2, 1}, receiver: PortIdentity{5, 2}}
	worse := &claim{set: DataSet{Priority1: 9, Class: 248, Grandmaster: 9}}
	for _, c := range []struct {
		rule           string
		d0, port, best *claim
		listening      bool
		want           PortState
	}{
		{"nothing is heard yet", own, nil, nil, true, Listening},
		{"M1", atomic, worse, worse, false, Master},
		{"P1", atomic, better, better, false, Passive},
		{"M2", own, worse, worse, false, Master},
		{"M2 without anyone", own, nil, nil, false, Master},
		{"S1", own, better, better, false, Slave},
		{"P2", own, other, better, false, Passive},
		{"M3", own, worse, better, false, Master},
		{"M3 without anyone there", own, nil, better, false, Master},
	} {
		if got := decide(c.d0, c.port, c.best, c.listening); got != c.want {
			t.Errorf("%s: %v, want %v", c.rule, got, c.want)
		}
	}
}

func TestQualificationTakesTwoAnnounces(t *testing.T) {
	s := clocksync.Setup{Self: 1, Nodes: 2}
	c, err := New(s, Default(s, 0))
	if err != nil {
		t.Fatal(err)
	}
	c.Start(clocksync.Now{})
	tell := func(at units.Time, sequence uint16) {
		m := Message{Type: Announce, Source: PortIdentity{IdentityOf(0), 1}, Sequence: sequence, Announce: DataSet{Grandmaster: IdentityOf(0)}}
		var b [MaxSize]byte
		if err := c.Receive(clocksync.Now{Mono: at, Hard: at}, &clocksync.Message{From: 0, Port: clocksync.GeneralPort, Data: b[:m.Encode(b[:])]}); err != nil {
			t.Fatal(err)
		}
	}
	tell(0, 0)
	if c.PortState(1) != Listening {
		t.Fatalf("%v after one Announce", c.PortState(1))
	}
	tell(2*ms, 1)
	if c.PortState(1) != Uncalibrated || c.Grandmaster() != IdentityOf(0) {
		t.Fatalf("%v after two", c.PortState(1))
	}
	// announceReceiptTimeout: 3 intervals.
	at, ok := c.Deadline()
	for ; ok && at < 8*ms; at, ok = c.Deadline() {
		c.Advance(clocksync.Now{Mono: at, Hard: at})
	}
	c.Advance(clocksync.Now{Mono: 8 * ms, Hard: 8 * ms})
	if c.PortState(1) != Listening || c.Counters().Lost != 1 {
		t.Errorf("%v, lost %d, 6 ms after the last", c.PortState(1), c.Counters().Lost)
	}
}

// newMesh returns a world of one grandmaster, backups and slaves.
func newMesh(t testing.TB, nodes, backups int, change func(*testnet.Config)) *testnet.World {
	cfg := testnet.Config{
		Nodes: nodes, Seed: 5,
		Oscillator: func(n clocksync.Node) testnet.Oscillator {
			return testnet.Oscillator{Offset: units.Time(n) * 37 * units.Microsecond, Skew: float64(int(n)%7-3) * 5e-6, Wander: 1e-8, Jitter: 10 * units.Nanosecond}
		},
		Path: func(r *rand.Rand) testnet.Path {
			return &testnet.Jittery{Base: units.Microsecond, Jitter: 5 * units.Nanosecond, Random: r}
		},
		Start: func(n clocksync.Node) clocksync.Protocol {
			s := clocksync.Setup{Self: n, Nodes: nodes, Seed: 5, Jitter: 10 * units.Nanosecond, Skew: 20e-6}
			c, err := New(s, Default(s, backups))
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	}
	if change != nil {
		change(&cfg)
	}
	return testnet.New(cfg)
}

// largestDifference returns the largest difference between the clocks of two nodes that are up.
func largestDifference(w *testnet.World, nodes int) units.Time {
	var least, most units.Time
	first := true
	for n := range nodes {
		if w.Protocol(clocksync.Node(n)) == nil {
			continue
		}
		at := w.Time(clocksync.Node(n))
		if first {
			least, most, first = at, at, false
		}
		least, most = min(least, at), max(most, at)
	}
	return most - least
}

// When a grandmaster crashes, its backup takes over within the announce timeout, no clock steps,
// and once it is back all follow it again.
func TestGrandmasterCrash(t *testing.T) {
	const nodes = 8
	w := newMesh(t, nodes, 1, nil)
	w.Run(100 * ms)
	if s := largestDifference(w, nodes); s > 150*units.Nanosecond {
		t.Fatalf("before the crash clocks differ by %v", s)
	}
	steps := w.Protocol(3).Counters().Steps
	w.Crash(0)
	var worst units.Time
	w.Every(100*ms, 500*units.Microsecond, func() {
		if w.Now < 198*ms {
			worst = max(worst, largestDifference(w, nodes))
		}
	})
	w.Run(115 * ms)
	for n := clocksync.Node(1); n < nodes; n++ {
		if gm := w.Protocol(n).(*Clock).Grandmaster(); gm != IdentityOf(1) {
			t.Errorf("15 ms after the crash node %d follows %x", n, gm)
		}
	}
	w.Run(199 * ms)
	if worst > 300*units.Nanosecond {
		t.Errorf("clocks differ by up to %v while the grandmaster is away", worst)
	}
	if got := w.Protocol(3).Counters().Steps; got != steps {
		t.Errorf("a slave stepped %d times", got-steps)
	}
	w.Restart(0)
	w.Run(400 * ms)
	if s := largestDifference(w, nodes); s > 150*units.Nanosecond {
		t.Errorf("with the grandmaster back clocks differ by %v", s)
	}
	for n := range clocksync.Node(nodes) {
		if gm := w.Protocol(n).(*Clock).Grandmaster(); gm != IdentityOf(0) {
			t.Errorf("node %d follows %x", n, gm)
		}
	}
}

// Without a backup, slaves go into holdover: the state says so, and the growing bound covers the
// error.
func TestHoldover(t *testing.T) {
	w := newMesh(t, 3, 0, nil)
	w.Run(200 * ms)
	before, _ := w.Bound(1)
	w.Crash(0)
	w.Run(300 * ms)
	k := w.Protocol(1).Correction()
	after, _ := w.Bound(1)
	if k.State != clocksync.Holdover || after <= before || w.Protocol(1).(*Clock).PortState(1) != Listening {
		t.Errorf("100 ms without a master: %v, bound %v after %v, %v", k.State, after, before, w.Protocol(1).(*Clock).PortState(1))
	}
	if s := largestDifference(w, 3); s > 2*after {
		t.Errorf("clocks differ by %v, bounds are %v", s, after)
	}
}

// Seven clocks in a row with boundary clocks in between: linuxptp-testsuite allows 5 us.
func TestBoundaryChain(t *testing.T) {
	const nodes = 7
	for _, peer := range []bool{false, true} {
		w := newMesh(t, nodes, 0, func(cfg *testnet.Config) {
			cfg.Start = func(n clocksync.Node) clocksync.Protocol {
				s := clocksync.Setup{Self: n, Nodes: nodes, Seed: 5}
				c := Default(s, nodes)
				c.PeerDelay = peer
				c.Ports = nil
				if n > 0 {
					c.Ports = append(c.Ports, []clocksync.Node{n - 1})
				}
				if n < nodes-1 {
					c.Ports = append(c.Ports, []clocksync.Node{n + 1})
				}
				clock, err := New(s, c)
				if err != nil {
					t.Fatal(err)
				}
				return clock
			}
		})
		w.Run(400 * ms)
		var worst units.Time
		outside := 0
		w.Every(400*ms, ms, func() {
			worst = max(worst, largestDifference(w, nodes))
			for n := clocksync.Node(1); n < nodes; n++ {
				e := w.Time(n) - w.Time(0)
				if b, ok := w.Bound(n); !ok || max(e, -e) > b {
					outside++
				}
			}
		})
		w.Run(800 * ms)
		if worst > units.Microsecond || outside > 0 {
			t.Errorf("peer delay %v: clocks of the chain differ by up to %v; %d errors outside the bounds", peer, worst, outside)
		}
		for n := clocksync.Node(1); n < nodes; n++ {
			c := w.Protocol(n).(*Clock)
			if c.PortState(1) != Slave || n < nodes-1 && c.PortState(2) != Master || c.parent.set.Steps != uint16(n-1) {
				t.Errorf("clock %d: %v, %v, %d steps from the grandmaster", n, c.PortState(1), c.PortState(2), c.parent.set.Steps)
			}
		}
	}
}

// Three boundary clocks in a ring: one port is passive, or Announces would loop.
func TestRingHasAPassivePort(t *testing.T) {
	const nodes = 3
	w := newMesh(t, nodes, 0, func(cfg *testnet.Config) {
		cfg.Start = func(n clocksync.Node) clocksync.Protocol {
			s := clocksync.Setup{Self: n, Nodes: nodes, Seed: 5}
			c := Default(s, nodes)
			c.Ports = [][]clocksync.Node{{(n + 1) % nodes}, {(n + 2) % nodes}}
			clock, err := New(s, c)
			if err != nil {
				t.Fatal(err)
			}
			return clock
		}
	})
	w.Run(200 * ms)
	states := map[PortState]int{}
	var text string
	for n := range clocksync.Node(nodes) {
		c := w.Protocol(n).(*Clock)
		states[c.PortState(1)]++
		states[c.PortState(2)]++
		text += fmt.Sprint(" ", c.PortState(1), "/", c.PortState(2))
	}
	if states[Passive] != 1 || states[Slave] != 2 || states[Master] != 3 {
		t.Errorf("ports are%s; want 3 masters, 2 slaves, 1 passive", text)
	}
}

// Clocks may show less than 0, that of the reference too: they agree as soon as clocks with small
// offsets do.
func TestClocksBelowZero(t *testing.T) {
	for _, far := range []units.Time{ms, 50 * ms, units.Second} {
		w := newMesh(t, 4, 1, func(cfg *testnet.Config) {
			cfg.Oscillator = func(n clocksync.Node) testnet.Oscillator {
				return testnet.Oscillator{Offset: (units.Time(n) - 2) * far / 2, Skew: float64(n) * 5e-6, Jitter: 10 * units.Nanosecond}
			}
		})
		w.Run(20 * ms)
		if s := largestDifference(w, 4); s > 300*units.Nanosecond {
			t.Errorf("with offsets of up to %v clocks differ by %v after 20 ms", far, s)
		}
	}
}
