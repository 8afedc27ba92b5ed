package ptp

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/clocksync/servo"
	"weft/units"
)

// queueingPath returns a path of two switches under load, with or without transparent clocks.
func queueingPath(load float64, transparent bool) func(r *rand.Rand) testnet.Path {
	return func(r *rand.Rand) testnet.Path {
		return testnet.NewQueues(r, units.Microsecond, 2, load, transparent)
	}
}

// pairOver returns a master and a slave with common imperfections and the given path between them.
func pairOver(path func(r *rand.Rand) testnet.Path) pairWorld {
	return pairWorld{interval: ms, base: units.Microsecond, skew: 20e-6, offset: 300 * units.Microsecond, wander: 1e-8,
		stamp: 10 * units.Nanosecond, path: path}
}

// Queues are noise to PTP: it fails under load without transparent clocks, and does not suffer with
// them.
func TestLoadAndTransparentClocks(t *testing.T) {
	for _, load := range []float64{0.3, 0.5, 0.9} {
		without, worst := measureErrors(pairOver(queueingPath(load, false)).world(t), ms, 100, 1000)
		with, best := measureErrors(pairOver(queueingPath(load, true)).world(t), ms, 100, 1000)
		t.Logf("load %v: rms %v, max %v; with transparent clocks %v, %v", load, without, worst, with, best)
		if without < 300*units.Nanosecond || with > 20*units.Nanosecond || best > 60*units.Nanosecond {
			t.Errorf("load %v: rms %v without transparent clocks, %v with (max %v)", load, without, with, best)
		}
	}
}

// oneWay is a path that is longer in one direction.
type oneWay struct{ delay units.Time }

func (o oneWay) Delay(units.Time, *clocksync.Outgoing) units.Time { return o.delay }

// An asymmetry a of the two directions is an error of a/2 that no clock can see. A known asymmetry
// is corrected, and a bounded one is in the bound.
func TestAsymmetryIsHalfAnError(t *testing.T) {
	for _, a := range []units.Time{0, 100 * units.Nanosecond, units.Microsecond, -units.Microsecond} {
		paths := 0
		p := pairOver(func(*rand.Rand) testnet.Path { // the first path used is that of the master's Announce
			paths++
			if paths == 1 {
				return oneWay{2*units.Microsecond + a}
			}
			return oneWay{2 * units.Microsecond}
		})
		p.stamp, p.wander = 0, 0
		p.change = func(c *Config) { c.AsymmetryBound = max(a, -a) / 2 }
		w := p.world(t)
		w.Run(300 * ms)
		e := w.Time(1) - w.Time(0) // late by a/2
		if d := e + a/2; max(d, -d) > units.Nanosecond {
			t.Errorf("asymmetry %v: error %v, want %v", a, e, -a/2)
		}
		if b, ok := w.Bound(1); !ok || max(e, -e) > b {
			t.Errorf("asymmetry %v: error %v is outside of %v", a, e, b)
		}
	}
}

// Steps of either clock, detected with the monotonic clock or only by the offset.
func TestClockSteps(t *testing.T) {
	for _, alarm := range []units.Time{0, units.Microsecond} {
		for _, node := range []clocksync.Node{0, 1} {
			for _, by := range []units.Time{2 * units.Microsecond, -20 * units.Microsecond, ms, -units.Second, units.Second} {
				p := pairOver(nil)
				p.change = func(c *Config) { c.StepAlarm = alarm }
				w := p.world(t)
				w.Run(200*ms + 300*units.Microsecond) // between two messages
				w.Step(node, by)
				w.Run(500 * ms)
				e := w.Time(1) - w.Time(0)
				if max(e, -e) > 60*units.Nanosecond {
					t.Errorf("alarm %v: 300 ms after node %d stepped by %v the error is %v", alarm, node, by, e)
				}
				if c := w.Protocol(node).Counters(); alarm > 0 && c.Resets == 0 {
					t.Errorf("node %d stepped by %v and nobody noticed", node, by)
				}
			}
		}
	}
}

// A step is detected within an eighth of an interval, whenever the next message comes.
func TestStepsAreSeenSoon(t *testing.T) {
	for into := range units.Time(10) {
		w := pairOver(nil).world(t)
		w.Run(200*ms + into*100*units.Microsecond)
		w.Step(1, ms)
		w.Run(w.Now + 126*units.Microsecond)
		if e := w.Time(1) - w.Time(0); max(e, -e) > 100*units.Nanosecond {
			t.Errorf("stepped %v after a Sync, an eighth of an interval later the error is %v", into*100*units.Microsecond, e)
		}
	}
}

// Lost, repeated and late messages are counted and do not change the time.
func TestLossRepetitionAndReordering(t *testing.T) {
	for name, change := range map[string]func(*testnet.Config){
		"loss":     func(c *testnet.Config) { c.Loss = 0.33 },
		"repeated": func(c *testnet.Config) { c.Twice = 0.5 },
		"late":     func(c *testnet.Config) { c.Late, c.LateBy = 0.1, 2500*units.Microsecond },
		"all":      func(c *testnet.Config) { c.Loss, c.Twice, c.Late, c.LateBy = 0.1, 0.1, 0.05, 1500*units.Microsecond },
	} {
		for _, peer := range []bool{false, true} {
			p := pairOver(nil)
			p.change = func(c *Config) { c.PeerDelay, c.AnnounceTimeout, c.SyncTimeout, c.Filter = peer, 6, 30, servo.Minimum }
			cfg := p.config(t, 2)
			change(&cfg)
			w := testnet.New(cfg)
			w.Run(600 * ms)
			worst := units.Time(0)
			w.Every(600*ms, ms, func() {
				e := w.Time(1) - w.Time(0)
				if name == "repeated" {
					worst = max(worst, e, -e)
				}
			})
			w.Run(1000 * ms)
			c := w.Protocol(1).Counters()
			if worst > 100*units.Nanosecond {
				t.Errorf("%s, peer delay %v: error up to %v", name, peer, worst)
			}
			if name != "loss" && c.Stale == 0 || c.Malformed != 0 {
				t.Errorf("%s, peer delay %v: %+v; refused %v", name, peer, c, w.Errors)
			}
			if state := w.Protocol(1).Correction().State; state == clocksync.Free {
				t.Errorf("%s, peer delay %v: %v", name, peer, state)
			}
		}
	}
}

// When one direction fails for good, no clock hangs, and the state says that time is no longer
// kept.
func TestOneWayLoss(t *testing.T) {
	for _, from := range []clocksync.Node{0, 1} {
		p := pairOver(nil)
		cfg := p.config(t, 2)
		cfg.Blocked = func(f, _ clocksync.Node, at units.Time) bool { return f == from && at > 200*ms }
		w := testnet.New(cfg)
		w.Run(400 * ms)
		if s := w.Protocol(1).Correction().State; s != clocksync.Holdover {
			t.Errorf("nothing comes from node %d: the slave is %v", from, s)
		}
		e := w.Time(1) - w.Time(0)
		if b, _ := w.Bound(1); max(e, -e) > b {
			t.Errorf("nothing comes from node %d: error %v outside of %v", from, e, b)
		}
	}
}

// Replayed and forged messages change nothing but counters.
func TestReplayAndForgery(t *testing.T) {
	type record struct {
		m    clocksync.Message
		from clocksync.Node
	}
	var tape []record
	p := pairOver(nil)
	cfg := p.config(t, 2)
	cfg.OnWire = func(_ units.Time, from clocksync.Node, m *clocksync.Outgoing) {
		if m.To == 1 && len(tape) < 200 {
			data := append([]byte(nil), m.Data[:m.N]...)
			tape = append(tape, record{clocksync.Message{From: from, Port: m.Port, Data: data}, from})
		}
	}
	w := testnet.New(cfg)
	w.Run(200 * ms)
	c := w.Protocol(1).(*Clock)
	before, stale := c.Correction(), c.Counters().Stale
	refused := 0
	for _, r := range tape {
		if err := w.Inject(1, r.m); err != nil {
			refused++
		}
	}
	if refused != len(tape) || c.Correction() != before || c.Counters().Stale+c.Counters().Foreign < stale+int64(refused) {
		t.Errorf("%d of %d old messages were refused; the correction changed: %v", refused, len(tape), c.Correction() != before)
	}
	for name, forge := range map[string]func(m *Message, in *clocksync.Message){
		"another domain":         func(m *Message, _ *clocksync.Message) { m.Domain = 9 },
		"its own identity":       func(m *Message, _ *clocksync.Message) { m.Source.Clock = IdentityOf(1) },
		"another clock":          func(m *Message, _ *clocksync.Message) { m.Source.Clock++ },
		"no such node":           func(_ *Message, in *clocksync.Message) { in.From = 7 },
		"the wrong port":         func(_ *Message, in *clocksync.Message) { in.Port = clocksync.GeneralPort },
		"negative correction":    func(m *Message, _ *clocksync.Message) { m.Correction = -1 << 40 },
		"an hour of correction":  func(m *Message, _ *clocksync.Message) { m.Correction = 3600 << 16 * 1e9 },
		"garbage of an interval": func(m *Message, _ *clocksync.Message) { m.LogInterval = -100 },
	} {
		m := Message{Type: Sync, Flags: FlagTwoStep, Source: PortIdentity{IdentityOf(0), 1}, Sequence: c.slave.sequence.last + 1}
		in := clocksync.Message{From: 0, Port: clocksync.EventPort}
		forge(&m, &in)
		var b [MaxSize]byte
		in.Data = b[:m.Encode(b[:])]
		if err := w.Inject(1, in); err == nil {
			t.Errorf("a Sync with %s was taken", name)
		}
	}
	if c.Correction() != before {
		t.Error("forged messages changed the correction")
	}
	w.Run(400 * ms)
	if e := w.Time(1) - w.Time(0); max(e, -e) > 100*units.Nanosecond {
		t.Errorf("after all that the error is %v", e)
	}
}

// linuxptp-testsuite 13: a Follow_Up after a wrap of the sequence number is not paired with the
// wrong Sync.
func TestSequenceWraps(t *testing.T) {
	p := pairOver(nil)
	w := p.world(t)
	w.Run(50 * ms)
	w.Protocol(0).(*Clock).ports[0].syncSeq = 0xfff0
	w.Protocol(1).(*Clock).slave.sequence.ok = false
	w.Run(150 * ms)
	c := w.Protocol(1).Counters()
	if e := w.Time(1) - w.Time(0); max(e, -e) > 60*units.Nanosecond || w.Protocol(0).(*Clock).ports[0].syncSeq > 0x1000 || c.Lost > 0 {
		t.Errorf("error %v, next sequence number %x, %+v", e, w.Protocol(0).(*Clock).ports[0].syncSeq, c)
	}
}

// A Follow_Up that overtakes its Sync belongs to it; one of another Sync does not.
func TestPairing(t *testing.T) {
	p := pairOver(nil)
	w := p.world(t)
	w.Run(100 * ms)
	c := w.Protocol(1).(*Clock)
	base := c.slave.sequence.last
	send := func(typ Type, sequence uint16) error {
		m := Message{Type: typ, Source: PortIdentity{IdentityOf(0), 1}, Sequence: sequence}
		if typ == Sync {
			m.Flags = FlagTwoStep
		}
		m.Timestamp, m.Correction = stampOf(w.Time(0) - units.Microsecond + units.Time(sequence-base)*units.Nanosecond)
		var b [MaxSize]byte
		port := clocksync.GeneralPort
		if typ == Sync {
			port = clocksync.EventPort
		}
		return w.Inject(1, clocksync.Message{From: 0, Port: port, Data: b[:m.Encode(b[:])]})
	}
	for _, s := range []struct {
		typ      Type
		sequence uint16
		stale    bool
		measures bool
	}{
		{FollowUp, 1, false, false}, {Sync, 1, false, true}, // out of order
		{FollowUp, 1, true, false},                           // again
		{Sync, 2, false, false}, {FollowUp, 3, false, false}, // of another Sync: the older is dropped
		{Sync, 3, false, true},
		{Sync, 3, true, false}, {FollowUp, 200, true, false}, // far ahead
		{Sync, 5, false, false}, {FollowUp, 4, true, false}, {FollowUp, 5, false, true},
	} {
		c.slave.measured = false
		err := send(s.typ, base+s.sequence)
		if errors.Is(err, ErrStale) != s.stale {
			t.Fatalf("%v %d: %v", s.typ, s.sequence, err)
		}
		if c.slave.measured != s.measures {
			t.Fatalf("%v %d: measured %v", s.typ, s.sequence, c.slave.measured)
		}
	}
}

// No input makes an invalid correction or leaves a state without a timer.
func TestGarbageNeverBreaksAClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := clocksync.Setup{Self: 1, Nodes: 3, Seed: rapid.Uint64().Draw(t, "seed")}
		cfg := Default(s, rapid.IntRange(0, 2).Draw(t, "backups"))
		cfg.PeerDelay = rapid.Bool().Draw(t, "peer")
		cfg.Servo = rapid.SampledFrom([]ServoKind{PI, LinReg}).Draw(t, "servo")
		c, err := New(s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var now clocksync.Now
		c.Start(now)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now.Mono += units.Time(rapid.Int64Range(0, 2e9).Draw(t, "dt"))
			now.Hard = now.Mono + units.Time(rapid.SampledFrom([]int64{0, 0, 0, 1e6, -1e12, 1e15}).Draw(t, "hard"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if at, ok := c.Deadline(); ok && at <= now.Mono {
					c.Advance(now)
				}
			case 1:
				var out clocksync.Outgoing
				if c.Transmit(now, &out) && out.Event {
					c.Sent(now, out.ID, now.Hard)
				}
			default:
				m := drawMessage(t, rapid.SampledFrom(types).Draw(t, "type"))
				from := clocksync.Node(rapid.SampledFrom([]int32{0, 2}).Draw(t, "from"))
				m.Domain, m.Source, m.LogInterval = 0, PortIdentity{IdentityOf(from), 1}, 0
				m.Correction %= 1 << 50
				m.Requesting = PortIdentity{IdentityOf(1), 1}
				m.Sequence = rapid.Uint16Range(0, 20).Draw(t, "sequence")
				m.Timestamp.Seconds = epoch + rapid.Uint64Range(0, 3e6).Draw(t, "seconds")
				var b [MaxSize]byte
				in := clocksync.Message{From: from, Port: clocksync.GeneralPort, Stamp: now.Hard, Data: b[:m.Encode(b[:])]}
				if m.Type.Event() {
					in.Port = clocksync.EventPort
				}
				_ = c.Receive(now, &in)
			}
			k := c.Correction()
			if err := k.Check(); err != nil || math.IsNaN(k.Rate) {
				t.Fatalf("%+v: %v", k, err)
			}
			if _, ok := c.Deadline(); !ok {
				t.Fatal("nothing is awaited any more")
			}
		}
	})
}

func TestSameSeedSameRun(t *testing.T) {
	run := func() (out []units.Time, c clocksync.Counters) {
		p := pairOver(queueingPath(0.5, false))
		w := p.world(t)
		w.Every(0, ms, func() { out = append(out, w.Time(1)) })
		w.Run(100 * ms)
		return out, w.Protocol(1).Counters()
	}
	a, ca := run()
	b, cb := run()
	if !reflect.DeepEqual(a, b) || ca != cb {
		t.Error("two runs of one seed differ")
	}
}

func TestRefusedConfigurations(t *testing.T) {
	s := clocksync.Setup{Self: 1, Nodes: 3}
	for name, change := range map[string]func(*Config, *clocksync.Setup){
		"no interval":      func(c *Config, _ *clocksync.Setup) { c.Interval = 0 },
		"long interval":    func(c *Config, _ *clocksync.Setup) { c.AnnounceInterval = units.Never },
		"no such node":     func(_ *Config, s *clocksync.Setup) { s.Self = 3 },
		"announce timeout": func(c *Config, _ *clocksync.Setup) { c.AnnounceTimeout = 1 },
		"sync timeout":     func(c *Config, _ *clocksync.Setup) { c.SyncTimeout = -1 },
		"asymmetry":        func(c *Config, _ *clocksync.Setup) { c.AsymmetryBound = -1 },
		"rate":             func(c *Config, _ *clocksync.Setup) { c.Limits.MaxRate = 0.1 },
		"itself":           func(c *Config, _ *clocksync.Setup) { c.Ports = [][]clocksync.Node{{1}} },
		"twice":            func(c *Config, _ *clocksync.Setup) { c.Ports = [][]clocksync.Node{{0}, {0}} },
		"gains":            func(c *Config, _ *clocksync.Setup) { c.Gains = servo.Gains{P: 3} },
		"filter":           func(c *Config, _ *clocksync.Setup) { c.FilterSize = 0 },
		"regression":       func(c *Config, _ *clocksync.Setup) { c.Servo, c.Limits.Step = LinReg, -1 },
	} {
		cfg, setup := Default(s, 1), s
		change(&cfg, &setup)
		if _, err := New(setup, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The published bound also holds under noise that PTP cannot filter.
func TestBoundsHold(t *testing.T) {
	for name, p := range map[string]pairWorld{
		"idle": pairOver(nil), "half load": pairOver(queueingPath(0.5, false)), "full load": pairOver(queueingPath(0.9, false)), "transparent": pairOver(queueingPath(0.9, true)),
	} {
		for _, kind := range []ServoKind{PI, LinReg} {
			p.change = func(c *Config) { c.Servo = kind }
			w := p.world(t)
			outside, checks := 0, 0
			var widest units.Time
			w.Every(0, 500*units.Microsecond, func() {
				if w.Protocol(1).Correction().State == clocksync.Free {
					return
				}
				e := w.Time(1) - w.Time(0)
				bound, _ := w.Bound(1)
				checks++
				widest = max(widest, bound)
				if max(e, -e) > bound {
					outside++
				}
			})
			w.Run(3000 * ms)
			t.Logf("%s, servo %d: %d of %d outside, bounds up to %v", name, kind, outside, checks, widest)
			if checks < 5000 || outside*10000 > checks {
				t.Errorf("%s, servo %d: %d of %d errors are outside of their bound", name, kind, outside, checks)
			}
		}
	}
}
