package transport_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/wire"
	"weft/units"
)

func TestOneMessage(t *testing.T) {
	s := newScript(t, pc4Spec(5))
	s.now = 10 * us
	s.send(5, 9, 2500)
	all := s.transmit(s.a)
	if len(all) != 3 {
		t.Fatalf("%d packets, want 3", len(all))
	}
	first, last := s.data(all[0]), s.data(all[2])
	full := units.Bytes(1000) + wire.DataSize + wire.Overhead
	want := wire.Data{
		Flags: wire.Announce, Conn: 5, PSN: 0, Payload: 1000, Message: 9, Tag: 79, Offset: 0, Size: 2500,
		SentAt: 10 * us, Baseline: 2*us + 2*(100*units.Gbps).TransmitTime(full),
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	// PC4, section III-B: the baseline holds the serialization of this packet, which is shorter.
	want = wire.Data{
		Flags: wire.Fin, Conn: 5, PSN: 2, Payload: 500, Message: 9, Tag: 79, Offset: 2000, Size: 2500,
		SentAt: 10 * us, Baseline: 2*us + 2*(100*units.Gbps).TransmitTime(full-500),
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
	if o := all[0].out; o.Dst != 1 || o.SrcPort != 50000 || o.Class != 1 || o.ECT || o.Size != full || o.Conn != 5 || o.Message != 9 {
		t.Errorf("%+v", o)
	}

	s.now = 15 * us
	placed := s.deliver(s.b, all...)
	if diff := cmp.Diff(transport.Placement{Conn: 5, Message: 9, Tag: 79, Size: 2500, Offset: 2000, Payload: 500}, placed[2]); diff != "" {
		t.Error(diff)
	}
	s.wantEvents(s.b, transport.MessageReceived)
	acks := s.transmit(s.b)
	if len(acks) != 3 {
		t.Fatalf("%d acknowledgements, want one per packet", len(acks))
	}
	if o := acks[0].out; o.Dst != 0 || o.Class != 0 || o.Payload != 0 || o.Size != wire.AckSize+wire.Overhead {
		t.Errorf("%+v", o)
	}
	// PC4, Algorithm 1, line 3: now - tx_time - baseline.
	if a := s.ack(acks[2]); a.Expected != 3 || a.PSN != 2 || a.SentAt != 10*us || a.OneWay != 5*us-last.Baseline || a.BaseRate != 100*units.Gbps {
		t.Errorf("%+v", a)
	}

	s.now = 20 * us
	s.deliver(s.a, acks...)
	e := s.wantEvents(s.a, transport.MessageAcked)[0]
	if e.Message != (transport.Message{ID: 9, Tag: 79, Size: 2500}) || e.At != 20*us || e.Queued != 10*us || e.Resent != 0 {
		t.Errorf("%+v", e)
	}
	if at, ok := s.a.Deadline(); ok {
		t.Errorf("a deadline at %d ps when everything is done", at)
	}
	c := s.a.Counters()
	if c.DataPackets != 3 || c.DataBytes != 2500 || c.AcksIn != 3 || c.Retransmits != 0 {
		t.Errorf("%+v", c)
	}
	if c := s.b.Counters(); c.Received != 3 || c.Delivered != 2500 || c.Acks != 3 || c.Naks != 0 {
		t.Errorf("%+v", c)
	}
}

func TestFinSaysThatNothingIsBehind(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	s.send(1, 1, 1500)
	s.send(1, 2, 800)
	var flags []wire.Flags
	for _, p := range s.transmit(s.a) {
		flags = append(flags, s.data(p).Flags)
	}
	if diff := cmp.Diff([]wire.Flags{wire.Announce, 0, wire.Announce | wire.Fin}, flags); diff != "" {
		t.Error(diff)
	}
}

func TestConnectionsTakeTurns(t *testing.T) {
	s := newScript(t, pc4Spec(1), pc4Spec(2), pc4Spec(3))
	for c := transport.ConnID(1); c <= 3; c++ {
		s.send(c, 1, 3000)
	}
	var order []uint32
	for _, p := range s.transmit(s.a) {
		order = append(order, s.data(p).Conn)
	}
	if diff := cmp.Diff([]uint32{1, 2, 3, 1, 2, 3, 1, 2, 3}, order); diff != "" {
		t.Error(diff)
	}
}

func TestAcknowledgementsGoBeforeData(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	back := pc4Spec(2)
	back.Src, back.Dst = 1, 0
	for _, e := range []*transport.Endpoint{s.a, s.b} {
		if err := e.Open(back); err != nil {
			t.Fatal(err)
		}
	}
	s.send(1, 1, 1000)
	if err := s.b.Send(s.now, 2, transport.Message{ID: 1, Size: 1000}); err != nil {
		t.Fatal(err)
	}
	s.deliver(s.b, s.transmitOne(s.a))
	all := s.transmit(s.b)
	if len(all) != 2 || all[0].out.Class != 0 || all[1].out.Class != 1 {
		t.Errorf("%d packets leave, the first of class %d", len(all), all[0].out.Class)
	}
}

func TestWindowHoldsBack(t *testing.T) {
	c := pc4Spec(1)
	changeParams(&c, func(p *pc4.Params) { p.Initial, p.InitialWindow = pc4.AtWindow, 6000 })
	s := newScript(t, c)
	s.send(1, 1, 100_000)
	// A packet is 1102 bytes; while less than 6000 are in flight one more may leave.
	sent := s.transmit(s.a)
	if len(sent) != 6 {
		t.Fatalf("%d packets, want 6", len(sent))
	}
	if s.transmit(s.a) != nil {
		t.Error("more left without an acknowledgement")
	}
	s.now = 5 * us
	s.deliver(s.b, sent[0])
	s.now = 10 * us
	s.deliver(s.a, s.transmitOne(s.b))
	if got := s.transmit(s.a); len(got) == 0 {
		t.Error("nothing leaves although the window opened")
	}
}

// PC4, Algorithm 2, line 14: "pacing_delay ← rtt / cwnd".
func TestPacingSpacesPackets(t *testing.T) {
	c := pc4Spec(1)
	c.Initial = 100 * units.Mbps // 88.16 us per packet of 1102 bytes
	s := newScript(t, c)
	s.send(1, 1, 3000)
	first := s.transmitOne(s.a)
	at, ok := s.a.Deadline()
	if !ok || at < 100*us {
		t.Errorf("deadline at %d ps: the window is full, only the retransmission timeout is ahead", at)
	}
	s.now = 5 * us
	s.deliver(s.b, first)
	s.now = 6 * us
	acked := s.transmitOne(s.b)
	a := s.ack(acked)
	a.BaseRate = 100 * units.Mbps
	s.deliver(s.a, forgeAck(a))
	if at, ok = s.a.Deadline(); !ok || at <= 80*us || at > 200*us {
		t.Fatalf("deadline at %d ps, %v", at, ok)
	}
	s.now = at - 1
	if s.transmit(s.a) != nil {
		t.Error("left a picosecond early")
	}
	s.now = at
	s.transmitOne(s.a)
}

func TestExpectedFlowsShareTheLine(t *testing.T) {
	s := newScript(t, pc4Spec(1), pc4Spec(2), pc4Spec(3))
	baseRate := func(c transport.ConnID) units.Bandwidth {
		s.send(c, 1, 10)
		s.deliver(s.b, s.transmitOne(s.a))
		s.now += us
		return s.ack(s.transmitOne(s.b)).BaseRate
	}
	s.b.Expect(1, 1)
	s.b.Expect(2, 1)
	s.b.Expect(2, 1) // a second flow on a connection takes no second share
	if got := baseRate(1); got != 50*units.Gbps {
		t.Errorf("two connections: %d", got)
	}
	s.b.Expect(3, 1)
	if got := baseRate(2); got != 33333333333 {
		t.Errorf("three connections: %d", got)
	}
	s.b.Expect(2, -1)
	s.b.Expect(1, -1)
	if got := baseRate(3); got != 50*units.Gbps {
		t.Errorf("two connections again: %d", got)
	}
	s.b.Expect(2, -1)
	s.b.Expect(3, -1)
}

func TestExpectRefusesWhatCannotBe(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	for name, f := range map[string]func(){
		"unknown connection":        func() { s.b.Expect(2, 1) },
		"connection that goes away": func() { s.a.Expect(1, 1) },
		"fewer than none":           func() { s.b.Expect(1, -1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// PC4, section III-A: "the addition of new flows or the completion of existing flows", seen by the
// receiver.
func TestObservedFlowsShareTheLine(t *testing.T) {
	c1, c2 := pc4Spec(1), pc4Spec(2)
	for _, c := range []*transport.Spec{&c1, &c2} {
		changeParams(c, func(p *pc4.Params) { p.BaseRate = pc4.Observed })
	}
	s := newScript(t, c1, c2)
	s.send(1, 1, 3000)
	long := s.transmit(s.a)
	s.send(2, 1, 2000)
	short := s.transmit(s.a)
	s.now = 5 * us
	for i, c := range []struct {
		p    packet
		want units.Bandwidth
	}{
		{long[0], 100 * units.Gbps},
		{short[0], 50 * units.Gbps},
		{long[1], 50 * units.Gbps},
		{short[1], 50 * units.Gbps},  // its last packet still counts itself
		{short[1], 100 * units.Gbps}, // a copy of it does not
		{long[2], 100 * units.Gbps},
	} {
		s.deliver(s.b, c.p)
		if got := s.ack(s.transmitOne(s.b)).BaseRate; got != c.want {
			t.Errorf("packet %d: base rate %d, want %d", i, got, c.want)
		}
	}
}

func TestRefusedPackets(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	s.now = us
	s.send(1, 1, 5000)
	sent := s.transmit(s.a)
	change := func(f func(d *wire.Data)) packet {
		p := sent[0]
		d := s.data(p)
		f(&d)
		d.Encode(p.out.Header[:])
		return p
	}
	s.now = 6 * us
	bad := 0
	refuse := func(name string, e *transport.Endpoint, p packet, want error) {
		t.Helper()
		bad++
		if pl, err := s.receive(e, &p); !errors.Is(err, want) || pl != (transport.Placement{}) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	foreign := sent[0]
	foreign.from = 7
	refuse("data from elsewhere", s.b, foreign, transport.ErrForeign)
	refuse("data at the sender", s.a, sent[0], transport.ErrUnknownConn)
	refuse("unknown connection", s.b, change(func(d *wire.Data) { d.Conn = 9 }), transport.ErrUnknownConn)
	refuse("message from the middle", s.b, change(func(d *wire.Data) { d.Offset, d.Flags = 1000, 0 }), transport.ErrProtocol)
	truncated := sent[0]
	truncated.out.Payload--
	refuse("payload cut short", s.b, truncated, transport.ErrProtocol)
	cut := sent[0]
	cut.out.N = 20
	refuse("header cut short", s.b, cut, wire.ErrShort)
	s.deliver(s.b, sent[0])
	refuse("another message in between", s.b, change(func(d *wire.Data) { d.PSN, d.Message = 1, 2 }), transport.ErrProtocol)
	refuse("message that changes its size", s.b, change(func(d *wire.Data) { d.PSN, d.Offset, d.Flags, d.Size = 1, 1000, 0, 9000 }), transport.ErrProtocol)
	if got := s.b.Counters().BadPackets; got != int64(bad)-1 {
		t.Errorf("%d bad packets counted, want %d", got, bad-1)
	}

	good := s.ack(s.transmitOne(s.b))
	ack := func(f func(a *wire.Ack)) packet {
		a := good
		f(&a)
		return forgeAck(a)
	}
	foreign = forgeAck(good)
	foreign.from = 7
	refuse("ack from elsewhere", s.a, foreign, transport.ErrForeign)
	refuse("ack for what was not sent", s.a, ack(func(a *wire.Ack) { a.Expected = 6 }), transport.ErrProtocol)
	refuse("ack from before the beginning", s.a, ack(func(a *wire.Ack) { a.Expected = ^uint32(0) }), transport.ErrProtocol)
	refuse("ack of the future", s.a, ack(func(a *wire.Ack) { a.SentAt = s.now }), transport.ErrProtocol)
	refuse("ack at the receiver", s.b, forgeAck(good), transport.ErrUnknownConn)
	refuse("ack cut short", s.a, packet{from: 1, out: transport.Outgoing{Header: forgeAck(good).out.Header, N: 51}}, wire.ErrShort)
	s.deliver(s.a, forgeAck(good))
}

func TestOpenAndSendRefusals(t *testing.T) {
	e := newEndpoint(t, 0)
	if err := e.Open(pc4Spec(1)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*transport.Spec){
		"open already":  func(s *transport.Spec) { s.ID = 1 },
		"to itself":     func(s *transport.Spec) { s.Dst = 0 },
		"not ours":      func(s *transport.Spec) { s.Src, s.Dst = 3, 4 },
		"unknown kind":  func(s *transport.Spec) { s.Kind = "carrier pigeon" },
		"bad params":    func(s *transport.Spec) { changeParams(s, func(p *pc4.Params) { p.Beta = 2 }) },
		"negative rto":  func(s *transport.Spec) { s.RTOMin = -1 },
		"no links":      func(s *transport.Spec) { s.Forward.Rates = nil },
		"dead link":     func(s *transport.Spec) { s.Reverse.Rates = []units.Bandwidth{0} },
		"time machine":  func(s *transport.Spec) { s.Forward.Propagation = -1 },
		"link to Mars":  func(s *transport.Spec) { s.Forward.Propagation = 1000 * units.Second },
		"slowest link":  func(s *transport.Spec) { s.Forward.Rates = []units.Bandwidth{1} },
		"negative plan": func(s *transport.Spec) { s.Initial = -1 },
	} {
		c := pc4Spec(2)
		change(&c)
		if e.Open(c) == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if err := e.Send(0, 2, transport.Message{Size: 1}); !errors.Is(err, transport.ErrUnknownConn) {
		t.Errorf("unknown connection: %v", err)
	}
	if err := e.Send(0, 1, transport.Message{Size: 0}); err == nil {
		t.Error("an empty message was accepted")
	}
	for _, c := range []transport.Config{{MTU: 0, LineRate: 1}, {MTU: 70000, LineRate: 1}, {MTU: 1000}} {
		if _, err := transport.New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// countingObserver counts the calls of an observer.
type countingObserver struct {
	acked, windows, arrived int
	rtt, oneWay             units.Time
	limits                  transport.Limits
}

func (w *countingObserver) Acked(_ units.Time, _ transport.ConnID, a transport.Acked) {
	w.acked, w.rtt = w.acked+1, a.RTT
}

func (w *countingObserver) Arrived(_ units.Time, _ transport.ConnID, oneWay units.Time) {
	w.arrived, w.oneWay = w.arrived+1, oneWay
}

func (w *countingObserver) Limited(_ units.Time, _ transport.ConnID, l transport.Limits) {
	w.windows, w.limits = w.windows+1, l
}

func TestObserver(t *testing.T) {
	w := &countingObserver{}
	s := newScript(t)
	for h, e := range []**transport.Endpoint{&s.a, &s.b} {
		var err error
		*e, err = transport.New(transport.Config{Host: transport.HostID(h), MTU: 1000, LineRate: 100 * units.Gbps, Observer: w})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []*transport.Endpoint{s.a, s.b} {
		if err := e.Open(pc4Spec(1)); err != nil {
			t.Fatal(err)
		}
	}
	s.send(1, 1, 1000)
	if w.windows != 1 {
		t.Errorf("told of %d windows at the start, want 1", w.windows)
	}
	p := s.transmitOne(s.a)
	d := s.data(p)
	s.now = 7 * us
	s.deliver(s.b, p)
	s.b.Expect(1, 1)
	s.now = 9 * us
	s.deliver(s.a, s.transmitOne(s.b))
	if w.acked != 1 || w.rtt != 9*us || w.arrived != 1 || w.oneWay != 7*us-d.Baseline || w.windows != 1 {
		t.Errorf("%+v", w)
	}
}
