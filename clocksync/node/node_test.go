package node

import (
	"errors"
	"math"
	"slices"
	"testing"

	"weft/clocksync"
	"weft/clocksync/clock"
	"weft/clocksync/huygens"
	"weft/clocksync/noise"
	"weft/clocksync/ptp"
	"weft/clocksync/servo"
	"weft/params"
	"weft/units"
)

// echo is a minimal protocol: the others ask the reference every interval, and step to its answer.
type echo struct {
	self  clocksync.Setup
	every units.Time
	next  units.Time
	ask   bool
	reply clocksync.Node // -1: none
	sent  units.Time
	line  clocksync.Correction
	count clocksync.Counters
}

var errNotMine = errors.New("not mine")

func (e *echo) Start(now clocksync.Now) { e.next, e.reply = now.Mono+e.every, -1 }

func (e *echo) Receive(now clocksync.Now, m *clocksync.Message) error {
	if m.Port != clocksync.ProbePort || len(m.Data) != 9 {
		e.count.Malformed++
		return errNotMine
	}
	e.count.Received++
	if m.Data[0] == 'q' {
		e.reply = m.From
		return nil
	}
	var theirs units.Time
	for _, b := range m.Data[1:] {
		theirs = theirs<<8 | units.Time(b)
	}
	e.line = clocksync.Correction{From: m.Stamp, Offset: theirs - (e.sent+m.Stamp)/2, Bound: m.Stamp - e.sent, Drift: 1e-4, State: clocksync.Locked}
	return nil
}

func (e *echo) Transmit(now clocksync.Now, m *clocksync.Outgoing) bool {
	*m = clocksync.Outgoing{Port: clocksync.ProbePort, Event: true, N: 9}
	switch {
	case e.reply >= 0:
		m.To, m.Data[0] = e.reply, 'a'
		for i := range 8 {
			m.Data[1+i] = byte(now.Hard >> (56 - 8*i))
		}
		e.reply = -1
	case e.ask:
		m.To, m.Data[0] = e.self.Reference, 'q'
		e.ask = false
	default:
		return false
	}
	e.count.Sent++
	return true
}

func (e *echo) Sent(_ clocksync.Now, _ uint32, stamp units.Time) { e.sent = stamp }
func (e *echo) Deadline() (units.Time, bool)                     { return e.next, e.self.Self != e.self.Reference }
func (e *echo) Advance(clocksync.Now)                            { e.ask, e.next = true, e.next+e.every }
func (e *echo) Correction() clocksync.Correction                 { return e.line }
func (e *echo) Counters() clocksync.Counters                     { return e.count }

const delay = 3 * units.Microsecond

// pair is a node that follows another over a wire.
type pair struct {
	t     *testing.T
	nodes [2]*Node
	now   units.Time
}

// newPair returns a node that follows another over a wire.
func newPair(t *testing.T, change func(*Config)) *pair {
	p := &pair{t: t}
	for i := range p.nodes {
		cfg := Config{
			Clock: clock.Config{Grid: units.Millisecond}, Sample: units.Millisecond,
			Setup: clocksync.Setup{Self: clocksync.Node(i), Nodes: 2, Seed: 1},
		}
		if i == 1 {
			cfg.Clock.Offset, cfg.Clock.Skew = 5*units.Microsecond, 20e-6
			if change != nil {
				change(&cfg)
			}
		}
		n, err := newNode(cfg, func() (clocksync.Protocol, error) {
			return &echo{self: cfg.Setup, every: units.Millisecond}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		n.Start(0)
		p.nodes[i] = n
	}
	return p
}

// run advances time to an instant. A message takes delay.
func (p *pair) run(at units.Time) {
	var out clocksync.Outgoing
	for {
		next, who := at+1, -1
		for i, n := range p.nodes {
			if d, ok := n.Deadline(); ok && d < next {
				next, who = d, i
			}
		}
		if who < 0 {
			p.now = at
			return
		}
		p.now = max(p.now, next)
		p.nodes[who].Advance(p.now)
		for from := who; p.nodes[from].Transmit(p.now, &out); from = int(out.To) {
			p.now += delay
			_ = p.nodes[out.To].Receive(p.now, p.now, clocksync.Node(from), out.Port, out.Data[:out.N])
		}
	}
}

// lastSample returns the last sample of a node.
func (p *pair) lastSample(i int) Sample {
	r := p.nodes[i].Report(p.now)
	return r.Samples[len(r.Samples)-1]
}

func TestNodeFollowsAndKnowsTheTruth(t *testing.T) {
	p := newPair(t, nil)
	p.run(500 * units.Microsecond)
	if s := p.lastSample(1); s.Error != 5*units.Microsecond || s.State != clocksync.Free || s.Bound != 0 {
		t.Errorf("at first %+v, want its offset of 5 us and no bound", s)
	}
	p.run(10 * units.Millisecond)
	s := p.lastSample(1)
	if s.State != clocksync.Locked || math.Abs(float64(s.Error)) > float64(25*units.Nanosecond) || s.Bound < s.Error {
		t.Errorf("after ten exchanges %+v, want the 20 ns that 20 ppm make in a millisecond, within the bound", s)
	}
	r := p.nodes[1].Report(p.now)
	if len(r.Samples) != 11 || r.Packets != 10 || r.Wire != 640 || r.Counters.Sent != 10 {
		t.Errorf("%d samples, %d packets of %d bytes, %+v", len(r.Samples), r.Packets, r.Wire, r.Counters)
	}
	if got := p.nodes[0].Received(p.now); got != 0 {
		t.Errorf("the reference's clock is right, and stamps %d ps off", got)
	}
	if got := p.nodes[1].Sent(p.now); got < -25*units.Nanosecond || got > 25*units.Nanosecond {
		t.Errorf("a packet is stamped %d ps off", got)
	}
}

func TestCrashedNodeHoldsAndComesBack(t *testing.T) {
	p := newPair(t, func(c *Config) {
		c.Outages = []Outage{{At: 5 * units.Millisecond, For: 20 * units.Millisecond}, {At: 40 * units.Millisecond}}
	})
	p.run(24 * units.Millisecond)
	s := p.lastSample(1)
	if !s.Down || s.State != clocksync.Holdover || s.Error < 300*units.Nanosecond || s.Bound < s.Error {
		t.Errorf("while it is down %+v, want 20 ppm of 19 ms and a bound that grew", s)
	}
	if err := p.nodes[1].Receive(p.now, p.now, 0, clocksync.ProbePort, []byte("a")); !errors.Is(err, ErrDown) {
		t.Errorf("it takes a message: %v", err)
	}
	p.run(30 * units.Millisecond)
	if s := p.lastSample(1); s.Down || s.State != clocksync.Locked || s.Error > 25*units.Nanosecond {
		t.Errorf("when it is back %+v", s)
	}
	p.run(60 * units.Millisecond)
	if s := p.lastSample(1); !s.Down || s.Error < 300*units.Nanosecond {
		t.Errorf("gone for good, %+v", s)
	}
	if r := p.nodes[1].Report(p.now); r.Counters.Sent < 15 || r.Rejected == 0 {
		t.Errorf("what crashed processes did is lost: %+v", r.Counters)
	}
	if _, ok := p.nodes[1].Deadline(); ok {
		t.Error("a process that is gone for good wants to be woken")
	}
}

func TestStepIsSeenByStampsAlone(t *testing.T) {
	p := newPair(t, func(c *Config) { c.Clock.Steps = []clock.Step{{At: 10*units.Millisecond + 1, By: units.Second}} })
	p.run(10*units.Millisecond + 500*units.Microsecond)
	if e := p.nodes[1].Sent(p.now); e < units.Second/2 {
		t.Errorf("the clock stepped, and stamps are %d ps off", e)
	}
	p.run(12 * units.Millisecond)
	if s := p.lastSample(1); s.Error > 25*units.Nanosecond || s.Error < -25*units.Nanosecond {
		t.Errorf("an exchange later %+v: timers did not step, and it should be right again", s)
	}
}

func TestRefusedMessagesAreCounted(t *testing.T) {
	p := newPair(t, nil)
	for _, data := range [][]byte{nil, []byte("x"), make([]byte, 200)} {
		if err := p.nodes[1].Receive(p.now, p.now, 0, clocksync.ProbePort, data); err == nil {
			t.Errorf("%d bytes were taken", len(data))
		}
	}
	if r := p.nodes[1].Report(p.now); r.Rejected != 3 || r.Counters.Malformed != 3 {
		t.Errorf("%d refused, %+v", r.Rejected, r.Counters)
	}
}

func TestNoiseIsOfMeasuredDelaysAlone(t *testing.T) {
	n, err := New(Config{Clock: clock.Config{Grid: units.Millisecond}, Delay: noise.Delay{Kind: noise.Uniform, Low: 100, High: 200}, Sync: Perfect})
	if err != nil {
		t.Fatal(err)
	}
	n.Start(0)
	if n.Received(5) != 0 || n.Sent(5) != 0 {
		t.Error("perfect clocks are off")
	}
	if d := n.Measured(5); d < 100 || d > 200 {
		t.Errorf("noise of %d ps", d)
	}
	if _, ok := n.Deadline(); ok || len(n.Report(units.Second).Samples) != 0 {
		t.Error("a perfect clock wants to be woken, or sampled")
	}
	var out clocksync.Outgoing
	if n.Transmit(5, &out) || n.Control() {
		t.Error("a perfect clock sends messages")
	}
}

func TestEveryKindOfSyncStarts(t *testing.T) {
	var mesh huygens.Params
	params.SetDefaults(&mesh)
	mesh.Degree, mesh.Pairs = 2, 10
	var pairs ptp.Params
	params.SetDefaults(&pairs)
	pairs.AnnounceInterval, pairs.Filter, pairs.Servo, pairs.Limits.Step, pairs.Backups = units.Millisecond, servo.Minimum, ptp.LinReg, 0, 0
	for _, sync := range []Sync{None, PTP, Huygens} {
		for self := range clocksync.Node(3) {
			cfg := Config{
				Clock: clock.Config{Grid: units.Millisecond, Skew: 1e-5}, Sync: sync, Setup: clocksync.Setup{Self: self, Nodes: 3, Seed: 1, Skew: 1e-5},
				Protocols: Protocols{PTP: pairs,
					Huygens: mesh},
			}
			if err := cfg.CheckParams(); err != nil {
				t.Error(err)
			}
			n, err := New(cfg)
			if err != nil {
				t.Fatalf("%s: %v", sync, err)
			}
			n.Start(0)
			if _, ok := n.Deadline(); ok == (sync == None) {
				t.Errorf("%s: a deadline is %v", sync, ok)
			}
			if (cfg.Rate() > 0) == (sync == None) || (len(Ports(sync)) > 0) == (sync == None) {
				t.Errorf("%s: %g messages/s on ports %v", sync, cfg.Rate(), Ports(sync))
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := clock.Config{Grid: units.Millisecond}
	for name, cfg := range map[string]Config{
		"clock": {}, "stamps": {Clock: good, Stamp: noise.Stamp{Jitter: -1}}, "delay": {Clock: good, Delay: noise.Delay{Kind: "pink"}},
		"sample": {Clock: good, Sample: -1}, "outage": {Clock: good, Outages: []Outage{{At: 5}, {At: 9}}}, "sync": {Clock: good, Sync: "ntp"},
		"nodes": {Clock: good, Sync: Huygens},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("a bad %s is accepted", name)
		}
	}
	bad := Config{Sync: Huygens, Setup: clocksync.Setup{Nodes: 1}}
	if bad.CheckParams() == nil || bad.Rate() != 0 {
		t.Error("one node keeps its clock with nobody")
	}
	if worse := (Config{Sync: PTP}); worse.CheckParams() == nil {
		t.Error("no node keeps its clock")
	}
}

// fixedCorrection is a protocol that publishes one correction.
type fixedCorrection struct{ line clocksync.Correction }

func (*fixedCorrection) Start(clocksync.Now)                              {}
func (*fixedCorrection) Receive(clocksync.Now, *clocksync.Message) error  { return nil }
func (*fixedCorrection) Transmit(clocksync.Now, *clocksync.Outgoing) bool { return false }
func (*fixedCorrection) Sent(clocksync.Now, uint32, units.Time)           {}
func (*fixedCorrection) Deadline() (units.Time, bool)                     { return 0, false }
func (*fixedCorrection) Advance(clocksync.Now)                            {}
func (f *fixedCorrection) Correction() clocksync.Correction               { return f.line }
func (*fixedCorrection) Counters() clocksync.Counters                     { return clocksync.Counters{} }

// When a process crashes during a slew, the correction keeps the frequency without the slew, which
// nothing would end.
func TestACrashEndsASlew(t *testing.T) {
	n, err := newNode(Config{Clock: clock.Config{Grid: units.Millisecond}, Outages: []Outage{{At: units.Millisecond}}}, func() (clocksync.Protocol, error) {
		return &fixedCorrection{clocksync.Correction{Rate: 110e-6, Slew: 100e-6, State: clocksync.Locked, Bound: 50}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Start(0)
	n.Advance(units.Millisecond)
	if k := n.correction; k.Rate < 9.9e-6 || k.Rate > 10.1e-6 || k.Slew != 0 || k.State != clocksync.Holdover {
		t.Errorf("left behind: %+v", k)
	}
}

// Further instants of samples come once each, between those of the interval, and none without one.
func TestFurtherSamples(t *testing.T) {
	also := []units.Time{0, 7, 10, 10, 19, 20, 99}
	for every, want := range map[units.Time][]units.Time{10: {0, 7, 10, 19, 20, 30}, 0: nil} {
		n, err := New(Config{Sync: None, Clock: clock.Config{Grid: 10}, Sample: every, Also: also})
		if err != nil {
			t.Fatal(err)
		}
		var got []units.Time
		for _, s := range n.Report(30).Samples {
			got = append(got, s.At)
		}
		if !slices.Equal(got, want) {
			t.Errorf("every %d: samples at %v, want %v", every, got, want)
		}
	}
	if _, err := New(Config{Sync: None, Clock: clock.Config{Grid: 10}, Also: []units.Time{2, 1}}); err == nil {
		t.Error("instants out of order are accepted")
	}
}
