package ptp

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// Tests of the filters, one by one: each fails without its filter.

// recordingServo is a servo that records its samples.
type recordingServo struct {
	samples  []servo.Sample
	resets   int
	restarts int
}

func (t *recordingServo) Update(s servo.Sample) (float64, servo.State) {
	t.samples = append(t.samples, s)
	return 0, servo.Locked
}
func (t *recordingServo) Holdover() float64  { return 0 }
func (t *recordingServo) RateRatio() float64 { return 1 }
func (t *recordingServo) Reset()             { t.resets++ }
func (t *recordingServo) Restart()           { t.restarts++ }

// follower returns a clock that has just begun to follow node 0.
func follower(t *testing.T, change func(*Config)) (*Clock, *recordingServo) {
	t.Helper()
	s := clocksync.Setup{Self: 1, Nodes: 2}
	cfg := Default(s, 0)
	if change != nil {
		change(&cfg)
	}
	c, err := New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Start(clocksync.Now{})
	c.parent = parent{ok: true, source: PortIdentity{IdentityOf(0), 1}, peer: &c.peers[0], port: &c.ports[0], set: DataSet{Accuracy: accuracyExact}}
	c.slave.start(0, c)
	k := &recordingServo{}
	c.servo = k
	return c, k
}

// atTrueTime returns an instant at which a node's clocks show true time.
func atTrueTime(t units.Time) clocksync.Now { return clocksync.Now{Mono: t, Hard: t} }

// A negative delay is not used, and a clock whose frequency is unknown takes it as 0. A delay
// longer than that of any network is not used.
func TestImpossibleDelays(t *testing.T) {
	for _, c := range []struct {
		state clocksync.State
		delay units.Time
		want  units.Time // negative if it is not used
	}{
		{clocksync.Locked, -1, -1}, {clocksync.Free, -1, 0}, {clocksync.Holdover, -units.Second, 0},
		{clocksync.Locked, maxCorrection + 1, -1}, {clocksync.Free, maxCorrection + 1, -1}, {clocksync.Locked, 0, 0},
	} {
		k, _ := follower(t, nil)
		k.correction.State = c.state
		k.addDelay(atTrueTime(ms), k.parent.peer, c.delay)
		got, ok := k.parent.peer.delay.Value()
		if ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("a delay of %v, %v: %v %v", c.delay, c.state, got, ok)
		}
		if (k.counters.Filtered > 0) != (c.delay < 0 || c.delay > maxCorrection) {
			t.Errorf("a delay of %v, %v: %d counted", c.delay, c.state, k.counters.Filtered)
		}
	}
}

// With stamps of 100 ns a link without delay measures delays on both sides of 0. The median of
// those above 0 alone would be 67 ns. The median of all is as often below 0 as above, and is
// clamped.
func TestDelaysAroundZero(t *testing.T) {
	noise := rand.New(rand.NewPCG(3, 4))
	k, _ := follower(t, func(c *Config) { c.Limits.FirstStep = units.Second })
	k.setup.Jitter, k.correction.State = 100*units.Nanosecond, clocksync.Locked
	b, err := NewBridge(9, 1, ms)
	if err != nil {
		t.Fatal(err)
	}
	var clocks, bridges float64
	const n = 4000
	for range n {
		d := units.Time(noise.NormFloat64() * float64(k.setup.Jitter))
		k.addDelay(atTrueTime(ms), k.parent.peer, d)
		b.links[0].delay.Add(d)
		clock, _ := filteredDelay(k.parent.peer.delay)
		bridge, _ := b.Delay(0)
		if clock < 0 || bridge != clock {
			t.Fatalf("a delay of %v at a clock, of %v at a bridge", clock, bridge)
		}
		clocks, bridges = clocks+clock.Nanoseconds()/n, bridges+bridge.Nanoseconds()/n
	}
	if clocks > 20 || k.counters.Filtered > 0 { // 0.4 deviations of a median of ten, 37 ns
		t.Errorf("links of 0 are measured as %.1f ns on average, %d left aside", clocks, k.counters.Filtered)
	}
	k.addDelay(atTrueTime(ms), k.parent.peer, -8*k.setup.Jitter-1)
	if k.counters.Filtered != 1 {
		t.Error("what is no noise of stamps was used")
	}
}

// A host accepts only the answer to its own request: from the node it asked, with the sequence
// number of the request, and the follow-up from the same port as the response.
func TestAnswersArePairedBySource(t *testing.T) {
	k, _ := follower(t, func(c *Config) { c.PeerDelay = true })
	p := k.parent.peer
	say := func(when units.Time, m Message) error {
		var buf [MaxSize]byte
		port := uint16(clocksync.GeneralPort)
		if m.Type.Event() {
			port = clocksync.EventPort
		}
		return k.Receive(atTrueTime(when), &clocksync.Message{From: 0, Port: port, Stamp: when, Data: buf[:m.Encode(buf[:])]})
	}
	asked := func(when units.Time) {
		p.sequence++
		p.exchange = exchange{t1: when, sent: true}
	}
	stamp := func(at units.Time) Timestamp { s, _ := stampOf(at); return s }
	me, they, others := k.ports[0].id, PortIdentity{IdentityOf(0), 1}, PortIdentity{IdentityOf(0), 2}
	response := func(from, to PortIdentity, sequence uint16, t2 units.Time) Message {
		return Message{Type: PDelayResp, Flags: FlagTwoStep, Source: from, Requesting: to, Sequence: sequence, Timestamp: stamp(t2)}
	}
	followUp := func(from, to PortIdentity, sequence uint16, t3 units.Time) Message {
		return Message{Type: PDelayRespFollowUp, Source: from, Requesting: to, Sequence: sequence, Timestamp: stamp(t3)}
	}
	expect := func(what string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	const us = units.Microsecond
	asked(10 * ms)
	n := p.sequence
	expect("a response to another", say(10*ms+4*us, response(they, PortIdentity{7, 1}, n, 20*ms)), ErrForeign)
	expect("a response to the question before", say(10*ms+4*us, response(they, me, n-1, 20*ms)), ErrStale)
	expect("a Follow_Up before its response", say(10*ms+4*us, followUp(they, me, n, 20*ms)), ErrStale)
	expect("the response", say(10*ms+4*us, response(they, me, n, 20*ms)), nil)
	expect("the response again", say(10*ms+4*us, response(they, me, n, 20*ms)), ErrStale)
	expect("the Follow_Up of another port", say(10*ms+5*us, followUp(others, me, n, 20*ms+us)), ErrForeign)
	expect("a Follow_Up to another", say(10*ms+5*us, followUp(they, PortIdentity{7, 1}, n, 20*ms+us)), ErrForeign)
	expect("the Follow_Up of another answer", say(10*ms+5*us, followUp(they, me, n+1, 20*ms+us)), ErrStale)
	if _, ok := p.delay.Value(); ok {
		t.Fatal("something of that was used")
	}
	expect("the Follow_Up", say(10*ms+5*us, followUp(they, me, n, 20*ms+us)), nil)
	if d, ok := p.delay.Value(); !ok || d != 1500*units.Nanosecond { // 4 us round trip, 1 us turnaround
		t.Errorf("the link is measured as %v", d)
	}
	expect("the Follow_Up again", say(10*ms+5*us, followUp(they, me, n, 20*ms+us)), ErrStale)
	p.delay.Reset()
	asked(20 * ms)
	n = p.sequence
	expect("a response", say(20*ms+4*us, response(they, me, n, 30*ms)), nil)
	expect("a Follow_Up of long before", say(20*ms+5*us, followUp(they, me, n, 29*ms)), nil)
	if d, ok := p.delay.Value(); ok || k.counters.Filtered != 1 {
		t.Errorf("an answer that left before the question came: %v, %d counted", d, k.counters.Filtered)
	}
}

// A delay of four first steps above the filtered one is an outlier, unless half of the last ten
// are.
func TestDetours(t *testing.T) {
	k, _ := follower(t, nil)
	p, first := k.parent.peer, k.cfg.Limits.FirstStep
	usual := units.Microsecond
	for range 10 {
		k.addDelay(atTrueTime(ms), p, usual)
	}
	k.addDelay(atTrueTime(2*ms), p, usual+outlierSteps*first)
	if p.delayAt != 2*ms || k.counters.Filtered != 0 {
		t.Errorf("a delay at the limit was left aside: the last is of %v", p.delayAt)
	}
	k.addDelay(atTrueTime(2*ms), p, usual)
	far := usual + outlierSteps*first + 1
	for i := range 4 {
		k.addDelay(atTrueTime(3*ms), p, far)
		if d, _ := p.delay.Value(); d != usual || p.delayAt != 2*ms || k.counters.Filtered != int64(i+1) {
			t.Fatalf("detour %d was used: %v, %d counted", i, p.delayAt, k.counters.Filtered)
		}
	}
	k.addDelay(atTrueTime(4*ms), p, far)
	if p.delayAt != 4*ms || k.counters.Filtered != 4 {
		t.Errorf("a path that is longer five times of ten is still left aside: the last is of %v", p.delayAt)
	}
}

// An offset is a spike if it exceeds the first step and twice the typical offset, once eight are
// known. It makes no sample and no delay, but shows that the parent is alive. If half of the last
// ten are that large, they are no spikes.
func TestOffsetsThatAreSpikes(t *testing.T) {
	for _, c := range []struct {
		name  string
		known int
		usual units.Time // size of the offsets so far
		size  units.Time
		spike bool
	}{
		{"beyond both", 20, 10 * units.Nanosecond, 1001 * units.Nanosecond, true},
		{"before the others", 20, 10 * units.Nanosecond, -1001 * units.Nanosecond, true},
		{"within the first step", 20, 10 * units.Nanosecond, units.Microsecond, false},
		{"as far as others", 20, units.Microsecond, 5 * units.Microsecond, false},
		{"nothing known", 7, 10 * units.Nanosecond, 5 * units.Microsecond, false},
	} {
		k, servo := follower(t, nil)
		for i := range c.known {
			sign := units.Time(1 - 2*(i%2))
			k.bound.Add(sign*c.usual, 0)
		}
		k.addDelay(atTrueTime(ms), k.parent.peer, units.Microsecond)
		k.slave.t1, k.slave.t2, k.slave.measured = ms, ms+units.Microsecond+c.size, true
		k.slave.parentTimeoutAt = 1
		k.measure(atTrueTime(2 * ms))
		if spike := len(servo.samples) == 0; spike != c.spike || spike == k.slave.measured || spike != (k.counters.Filtered == 1) {
			t.Errorf("%s: left aside %v, good for a delay %v, %d counted", c.name, spike, k.slave.measured, k.counters.Filtered)
		}
		if k.slave.parentTimeoutAt != 2*ms+k.measurementTimeout() {
			t.Errorf("%s: the parent is given up at %v", c.name, k.slave.parentTimeoutAt)
		}
	}
	k, servo := follower(t, nil)
	for range 20 {
		k.bound.Add(10*units.Nanosecond, 0)
	}
	k.addDelay(atTrueTime(ms), k.parent.peer, units.Microsecond)
	for i := range units.Time(5) {
		k.slave.t1, k.slave.t2, k.slave.measured = i*ms, i*ms+3*units.Microsecond, true
		k.measure(atTrueTime(ms + i))
	}
	if len(servo.samples) != 1 || servo.samples[0].Offset != 2*units.Microsecond {
		t.Errorf("a master that moved: %+v", servo.samples)
	}
}

// A master that does not know the time is followed all the same. Measurements of it say nothing
// about the reference, whether that is another master or the same one once it knows the time: the
// servo restarts once, and may step.
func TestReferenceAfterAMasterThatKnowsNothing(t *testing.T) {
	k, servo := follower(t, nil)
	k.addDelay(atTrueTime(ms), k.parent.peer, units.Microsecond)
	for i, c := range []struct {
		accuracy uint8
		restarts int
		samples  int // that the bound is of
	}{{accuracyExact, 0, 1}, {accuracyUnknown, 0, 2}, {accuracyUnknown, 0, 3}, {accuracyExact, 1, 1}, {accuracyExact, 1, 2}} {
		k.parent.set.Accuracy = c.accuracy
		when := units.Time(i+2) * ms
		k.slave.t1, k.slave.t2, k.slave.measured = when, when+units.Microsecond, true
		k.measure(atTrueTime(when))
		if servo.restarts != c.restarts || k.bound.Samples() != c.samples {
			t.Errorf("sample %d: %d restarts, a bound of %d samples; want %+v", i, servo.restarts, k.bound.Samples(), c)
		}
	}
}

// A new master of the same time ends the measurements of the last one, but the frequency stays: two
// samples of the new one, a millisecond apart, would be wrong by parts per million, and no more may
// come for long.
func TestFrequencyOutlastsAMaster(t *testing.T) {
	k, servo := follower(t, func(c *Config) { c.PeerDelay = true })
	k.bound.Add(10, 0)
	p := k.parent.peer
	p.exchange, k.slave.measured = exchange{t1: 1, sent: true}, true
	next := foreign{peer: p, claim: claim{set: k.parent.set, sender: PortIdentity{IdentityOf(7), 1}}}
	k.follow(atTrueTime(ms), &next, &claim{set: k.cfg.DataSet})
	if k.parent.source != next.claim.sender || p.exchange.sent || k.slave.measured || k.bound.Samples() != 0 {
		t.Errorf("%+v, an exchange %+v, measured %v", k.parent, p.exchange, k.slave.measured)
	}
	if servo.resets+servo.restarts > 0 || k.counters.Resets > 0 || k.counters.Lost != 1 {
		t.Errorf("%+v, %+v", servo, k.counters)
	}
}

// The rate of a neighbour's clock is that of the last eight exchanges. An impossible rate is
// ignored.
func TestPace(t *testing.T) {
	for rate, want := range map[float64]float64{50e-6: 1 + 50e-6, -200e-6: 1 - 200e-6, 0.02: 1, -0.5: 1} {
		var p neighborRate
		var got float64
		for i := range units.Time(ratioSamples + 1) {
			got = p.add(i*ms+units.Time(float64(i*ms)*rate), i*ms)
			if i < ratioSamples && got != 1 {
				t.Errorf("a ratio of %g after %d exchanges", got, i+1)
			}
		}
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("rate %g: ratio %.9f, want %.9f", rate, got, want)
		}
	}
}

// The answer to an open request shows that the parent's clock was set back: its earlier readings no
// longer count, and the last Sync is no good for a delay.
func TestParentThatWasSetBack(t *testing.T) {
	k, _ := follower(t, nil)
	answer := func(t4 units.Time) error {
		k.slave.request, k.slave.asked, k.slave.t3, k.slave.measured, k.slave.t1, k.slave.t2 = 7, true, ms, true, 0, units.Microsecond
		m := Message{Type: DelayResp, Source: k.parent.source, Sequence: 7, Requesting: k.ports[0].id}
		m.Timestamp, _ = stampOf(t4)
		return k.onDelayResp(atTrueTime(ms), k.parent.peer, &m)
	}
	k.parent.peer.lastOrigin = clockReading{ok: true, at: 10 * ms}
	if err := answer(10*ms - k.cfg.Interval); err != nil || k.parent.peer.lastOrigin.at != 10*ms || !k.slave.measured {
		t.Errorf("an answer of about now: %v, %+v", err, k.parent.peer.lastOrigin)
	}
	if err := answer(2 * ms); err != nil || k.parent.peer.lastOrigin.at != 2*ms || k.slave.measured {
		t.Errorf("an answer of long ago: %v, %+v, good for a delay: %v", err, k.parent.peer.lastOrigin, k.slave.measured)
	}
}

// A repeated request is answered once, in both mechanisms.
func TestQuestionsAreAnsweredOnce(t *testing.T) {
	for _, typ := range []Type{DelayReq, PDelayReq} {
		k, _ := follower(t, func(c *Config) { c.PeerDelay = typ == PDelayReq })
		k.ports[0].state = Master
		for k.out.Pop() != nil {
		}
		var buf [MaxSize]byte
		m := Message{Type: typ, Source: PortIdentity{IdentityOf(0), 1}, Sequence: 40, LogInterval: noInterval}
		in := clocksync.Message{From: 0, Port: clocksync.EventPort, Data: buf[:m.Encode(buf[:])]}
		if err := k.Receive(atTrueTime(ms), &in); err != nil {
			t.Fatal(err)
		}
		answers := k.out.Len()
		if err := k.Receive(atTrueTime(ms), &in); !errors.Is(err, ErrStale) || k.out.Len() != answers || answers != 1 {
			t.Errorf("type %d twice: %v, %d answers", typ, err, k.out.Len())
		}
	}
}

// An invalid correction is not published.
func TestOnlyLinesArePublished(t *testing.T) {
	k, _ := follower(t, nil)
	before := k.correction
	for _, bad := range []clocksync.Correction{{Rate: math.NaN()}, {Rate: 2 * clocksync.MaxRate}, {Bound: -1}, {Drift: -1}} {
		k.publish(bad)
	}
	if k.correction != before || k.counters.Filtered != 4 || k.counters.Updates != 0 {
		t.Errorf("%+v, %+v", k.correction, k.counters)
	}
}

// A clock behind a bridge measures and answers only the bridge, which answers in the domain of the
// request.
func TestOnlyTheBridgeIsAtTheOtherEnd(t *testing.T) {
	k, _ := follower(t, func(c *Config) { c.PeerDelay, c.Bridge, c.Domain = true, 5, 3 })
	say := func(from clocksync.Node, m Message) error {
		var buf [MaxSize]byte
		m.Source = PortIdentity{IdentityOf(from), 1}
		return k.Receive(atTrueTime(ms), &clocksync.Message{From: from, Port: clocksync.EventPort, Data: buf[:m.Encode(buf[:])]})
	}
	for name, c := range map[string]struct {
		from clocksync.Node
		m    Message
		want error
	}{
		"another host asks":         {0, Message{Type: PDelayReq, Domain: 3}, ErrForeign},
		"another switch asks":       {4, Message{Type: PDelayReq}, ErrForeign},
		"the bridge gives the time": {5, Message{Type: Sync, Domain: 3}, ErrForeign},
		"it answers elsewhere":      {5, Message{Type: PDelayResp, Requesting: k.ports[0].id}, ErrForeign},
		"it answers nothing":        {5, Message{Type: PDelayResp, Domain: 3, Requesting: k.ports[0].id}, ErrStale},
		"it asks":                   {5, Message{Type: PDelayReq, Sequence: 1}, nil},
	} {
		if err := say(c.from, c.m); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	j := k.out.Pop()
	if j == nil || j.message.Type != PDelayResp || j.message.Domain != 0 || j.peer.node != 5 {
		t.Errorf("%+v", j)
	}
	for _, bad := range []func(*Config){
		func(c *Config) { c.Bridge = 1; c.PeerDelay = true }, func(c *Config) { c.Bridge = 5 },
	} {
		cfg := Default(clocksync.Setup{Self: 1, Nodes: 2}, 0)
		bad(&cfg)
		if _, err := New(clocksync.Setup{Self: 1, Nodes: 2}, cfg); err == nil {
			t.Errorf("bridge %d, peer delay %v: taken", cfg.Bridge, cfg.PeerDelay)
		}
	}
}

// A step ends the exchanges in progress: their stamps are from two clocks.
func TestStepsEndExchanges(t *testing.T) {
	for _, bridge := range []clocksync.Node{0, 5} {
		k, _ := follower(t, func(c *Config) { c.PeerDelay, c.Bridge = true, bridge })
		source := k.delaySource()
		source.exchange = exchange{t1: 1, sent: true}
		k.watch(clocksync.Now{Mono: ms, Hard: 3 * ms})
		if source.exchange.sent || k.counters.Resets != 1 {
			t.Errorf("bridge %d: the clock was set: %+v", bridge, source.exchange)
		}
		source.exchange = exchange{t1: 1, sent: true}
		source.delay.Add(units.Microsecond)
		k.steer(clocksync.Now{Mono: ms, Hard: 3 * ms}, units.Millisecond, 0, servo.Jump)
		if _, ok := source.delay.Value(); source.exchange.sent || ok {
			t.Errorf("bridge %d: time jumped: %+v, delay known %v", bridge, source.exchange, ok)
		}
	}
}

// With the peer delay mechanism a Sync is as long as peer delay messages, and decodes as before.
func TestSyncsArePadded(t *testing.T) {
	for _, peer := range []bool{false, true} {
		k, _ := follower(t, func(c *Config) { c.PeerDelay = peer })
		for k.out.Pop() != nil {
		}
		want := Message{Type: Sync, Flags: FlagTwoStep | FlagUnicast, Source: k.ports[0].id, Sequence: 5}
		k.send(&k.peers[0], want)
		var out clocksync.Outgoing
		var got Message
		if !k.Transmit(atTrueTime(ms), &out) || got.Decode(out.Data[:out.N]) != nil || got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if length := map[bool]int{false: Sync.size(), true: PDelayReq.size()}[peer]; out.N != length || int(out.Data[2])<<8|int(out.Data[3]) != length {
			t.Errorf("peer delay %v: %d bytes, % x", peer, out.N, out.Data[:out.N])
		}
		if peer && string(out.Data[44:54]) != "\x80\x08\x00\x06\x00\x00\x00\x00\x00\x00" {
			t.Errorf("% x is no PAD TLV", out.Data[44:54])
		}
	}
}
