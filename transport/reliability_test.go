package transport_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/transport"
	"weft/units"
)

// InfiniBand: a receiver that sees a gap asks once for the packet it expects, and is silent until
// that arrives.
func TestOneNakPerGap(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	s.send(1, 1, 6000)
	sent := s.transmit(s.a)
	s.now = 5 * us
	s.deliver(s.b, sent[0])
	s.transmitOne(s.b)
	placed := s.deliver(s.b, sent[2], sent[3], sent[4]) // 1 is lost
	for _, pl := range placed {
		if pl != (transport.Placement{}) {
			t.Errorf("out of order, yet placed: %+v", pl)
		}
	}
	nak := s.transmitOne(s.b)
	if a := s.ack(nak); !a.Nak || a.Expected != 1 || a.PSN != 2 {
		t.Errorf("%+v", a)
	}
	s.now = 10 * us
	s.deliver(s.a, nak)
	again := s.transmit(s.a)
	if diff := cmp.Diff([]uint32{1, 2, 3, 4, 5}, s.psns(again)); diff != "" {
		t.Errorf("go-back-N sends again from the gap on: %s", diff)
	}
	s.deliver(s.a, nak) // a copy of it
	if again := s.transmit(s.a); again != nil {
		t.Errorf("a copy of the NAK made %d packets go again", len(again))
	}
	s.now = 15 * us
	s.deliver(s.b, again...)
	s.wantEvents(s.b, transport.MessageReceived)
	if c := s.b.Counters(); c.OutOfOrder != 3 || c.Naks != 1 || c.Delivered != 6000 {
		t.Errorf("%+v", c)
	}
	s.now = 20 * us
	s.deliver(s.a, s.transmit(s.b)...)
	if e := s.wantEvents(s.a, transport.MessageAcked)[0]; e.Resent != 5 {
		t.Errorf("%d sent again, want 5", e.Resent)
	}
}

// A gap that opens after another was filled is a new one.
func TestNextGapIsReportedAgain(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	s.send(1, 1, 6000)
	sent := s.transmit(s.a)
	s.deliver(s.b, sent[1], sent[0], sent[3])
	var naks int
	for _, p := range s.transmit(s.b) {
		if s.ack(p).Nak {
			naks++
		}
	}
	if naks != 2 {
		t.Errorf("%d NAKs, want 2", naks)
	}
}

// InfiniBand, C9-110: a duplicate is acknowledged again, for the acknowledgement may have been
// lost.
func TestDuplicateIsAcknowledgedNotPlaced(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	s.send(1, 1, 2000)
	sent := s.transmit(s.a)
	s.now = 5 * us
	s.deliver(s.b, sent...)
	s.transmit(s.b) // lost
	pl := s.deliver(s.b, sent[0])[0]
	if pl != (transport.Placement{}) {
		t.Errorf("placed twice: %+v", pl)
	}
	if a := s.ack(s.transmitOne(s.b)); a.Nak || a.Expected != 2 {
		t.Errorf("%+v", a)
	}
	s.wantEvents(s.b, transport.MessageReceived)
}

// What an acknowledgement says stays true after going back: packets that it covers are not sent
// again.
func TestLateAckStopsResending(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	s.send(1, 1, 4000)
	s.send(1, 2, 3000)
	sent := s.transmit(s.a)
	s.now = 5 * us
	s.deliver(s.b, sent[:5]...)
	acks := s.transmit(s.b)
	s.now = 2 * units.Millisecond
	s.a.Advance(s.now) // goes back to 0
	s.deliver(s.a, acks[4])
	s.wantEvents(s.a, transport.MessageAcked)
	if diff := cmp.Diff([]uint32{5, 6}, s.psns(s.transmit(s.a))); diff != "" {
		t.Error(diff)
	}
}

// A flow of PC4 that sends a packet per 2.2 ms waits for its acknowledgement twice as long,
// whatever its floor of 1 ms: the packets of flows paced alike may all wait in one queue. Others
// have no such rule, and PC4 neither where the floor is longer.
func TestTimeoutFollowsPacing(t *testing.T) {
	for _, c := range []struct {
		rate  units.Bandwidth
		floor units.Time
		want  units.Time
	}{
		{4 * units.Mbps, 0, 4408 * us}, // two packets of 1102 bytes
		{4 * units.Mbps, 100 * us, 4408 * us},
		{4 * units.Mbps, 5 * units.Millisecond, 5 * units.Millisecond},
		{100 * units.Mbps, 0, units.Millisecond},
	} {
		x := pc4Spec(1)
		x.Initial, x.RTOMin = c.rate, c.floor
		s := newScript(t, x)
		s.send(1, 1, 500)
		s.transmitOne(s.a)
		if at, ok := s.a.Deadline(); !ok || at != c.want {
			t.Errorf("%v: timeout at %v, want %v", c.rate, at, c.want)
		}
	}
}

func TestTimeoutBacksOffAndGivesUp(t *testing.T) {
	c := pc4Spec(1)
	c.RTOMin = 100 * us
	s := newScript(t, c)
	s.send(1, 1, 500)
	s.transmitOne(s.a)
	wait := 100 * us
	for try := range 7 {
		at, ok := s.a.Deadline()
		if !ok || at != s.now+wait {
			t.Fatalf("try %d: deadline at %d ps, want %d", try, at, s.now+wait)
		}
		s.now = at
		s.transmitOne(s.a) // the transmit rule: what is due happens first
		wait *= 2
	}
	s.now, _ = s.a.Deadline()
	s.a.Advance(s.now)
	if s.transmit(s.a) != nil {
		t.Error("still sending after seven tries")
	}
	e := s.wantEvents(s.a, transport.ConnFailed)[0]
	if e.Conn != 1 || e.Message.ID != 1 || e.Resent != 7 || e.Tries != 8 {
		t.Errorf("%+v", e)
	}
	if _, ok := s.a.Deadline(); ok {
		t.Error("a failed connection has a deadline")
	}
	if err := s.a.Send(s.now, 1, transport.Message{ID: 2, Size: 1}); !errors.Is(err, transport.ErrFailed) {
		t.Errorf("send on a failed connection: %v", err)
	}
	if c := s.a.Counters(); c.Timeouts != 8 || c.Failed != 1 || c.Retransmits != 7 {
		t.Errorf("%+v", c)
	}
}

func TestProgressResetsTheTries(t *testing.T) {
	c := pc4Spec(1)
	c.RTOMin, c.Tries = 100*us, 2
	s := newScript(t, c)
	for id := uint32(1); id <= 5; id++ {
		s.send(1, id, 500)
		s.transmitOne(s.a)
		for range 2 {
			s.now, _ = s.a.Deadline()
			s.a.Advance(s.now)
			p := s.transmitOne(s.a)
			s.now += us
			s.deliver(s.b, p)
		}
		s.deliver(s.a, s.transmit(s.b)...)
		s.wantEvents(s.a, transport.MessageAcked)
	}
}

// An acknowledgement that comes after the connection failed changes nothing.
func TestAckAfterFailure(t *testing.T) {
	c := pc4Spec(1)
	c.Tries = 1
	s := newScript(t, c)
	s.send(1, 1, 500)
	p := s.transmitOne(s.a)
	for range 2 {
		s.now, _ = s.a.Deadline()
		s.a.Advance(s.now)
		s.transmit(s.a)
	}
	s.wantEvents(s.a, transport.ConnFailed)
	s.deliver(s.b, p)
	s.deliver(s.a, s.transmitOne(s.b))
	s.wantEvents(s.a)
	if s.transmit(s.a) != nil {
		t.Error("a failed connection sends")
	}
}

// RFC 6298, section 2: a path that turns out to be slow is given more than the floor.
func TestTimeoutFollowsTheRoundTrip(t *testing.T) {
	c := pc4Spec(1)
	c.RTOMin = 100 * us
	s := newScript(t, c)
	s.send(1, 1, 2000)
	sent := s.transmit(s.a)
	s.now = 90 * us
	s.deliver(s.b, sent[0])
	s.deliver(s.a, s.transmitOne(s.b))
	at, _ := s.a.Deadline()
	if at == 100*us { // armed at the first timeout still: what was due then is not due any more
		s.now = at
		s.a.Advance(s.now)
		at, _ = s.a.Deadline()
	}
	if want := 90*us + 90*us + 4*45*us; at != want {
		t.Errorf("timeout at %d us, want %d", at/us, want/us)
	}
	if n := s.a.Counters().Timeouts; n != 0 {
		t.Errorf("%d timeouts", n)
	}
}

func TestAcknowledgementsWaitingAreBounded(t *testing.T) {
	s := newScript(t, pc4Spec(1))
	s.send(1, 1, 500)
	p := s.transmitOne(s.a)
	for range 1<<16 + 5 {
		s.deliver(s.b, p)
	}
	if n := s.b.Counters().AckDrops; n != 5 {
		t.Errorf("%d acknowledgements dropped, want 5", n)
	}
}
