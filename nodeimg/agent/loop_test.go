package agent

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"weft/internal/clock"
	"weft/internal/poller"
	"weft/internal/stalls"
	"weft/results/stats"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// script is a machine that sends a packet at each instant of a list and records the calls.
type script struct {
	t        *testing.T
	at       []units.Time // when its packets may leave, in order
	departed []units.Time
	last     units.Time // latest instant that it was given
	received int
	controls int // calls of TransmitControl
	placed   []byte
	finished func() bool
	failed   error
}

// advance checks that time does not go back.
func (s *script) advance(now units.Time) {
	if now < s.last {
		s.t.Errorf("time goes back to %d ps from %d", now, s.last)
	}
	s.last = now
}

func (s *script) Start(now units.Time) { s.advance(now) }
func (s *script) Receive(now units.Time, in *transport.Incoming) (transport.Placement, error) {
	s.advance(now)
	if in.At > now {
		s.t.Errorf("a packet of %d ps at %d", in.At, now)
	}
	s.received++
	var d wire.Data
	if err := d.Decode(in.Header); err != nil {
		return transport.Placement{}, err
	}
	return transport.Placement{Payload: d.Payload}, nil
}
func (s *script) Deliver(now units.Time, _ transport.Placement, payload []byte) {
	s.advance(now)
	s.placed = bytes.Clone(payload)
}
func (s *script) Transmit(now units.Time, out *transport.Outgoing) bool {
	s.advance(now)
	if len(s.at) == 0 || s.at[0] > now {
		return false
	}
	s.at = s.at[1:]
	s.departed = append(s.departed, now)
	payload := []byte("payload")
	out.Size, out.N, out.Payload = 1000, int(wire.DataSize), units.Bytes(len(payload))
	out.SrcPort, out.Class, out.ECT = 50000, 1, true
	d := wire.Data{Flags: wire.Announce, Payload: out.Payload, Size: out.Payload, SentAt: now}
	d.Encode(out.Header[:])
	return true
}
func (s *script) TransmitControl(now units.Time, _ *transport.Outgoing) bool {
	s.advance(now)
	s.controls++
	return false
}
func (s *script) Payload(*transport.Outgoing, []byte) []byte { return []byte("payload") }
func (s *script) Deadline() (units.Time, bool) {
	if len(s.at) == 0 {
		return 0, false
	}
	return s.at[0], true
}
func (s *script) Advance(now units.Time) { s.advance(now) }
func (s *script) Done() bool             { return s.finished() }
func (s *script) Failed() error          { return s.failed }

// A failure is reported in the turn in which it is found, once.
func TestLoopReportsFailureAtOnce(t *testing.T) {
	m := &script{t: t, finished: func() bool { return false }}
	reports := 0
	l := &loop{machine: m, clock: clock.NewClock(), interval: int64(time.Hour),
		report: func(bool) error { reports++; return nil }}
	for i, want := range []int{1, 1, 2, 2} { // the first report is due
		if i == 2 {
			m.failed = errors.New("its window is NaN")
		}
		if l.housekeeping(l.clock.Now()); reports != want {
			t.Fatalf("%d reports in turn %d; want %d", reports, i, want)
		}
	}
}

// runLoop runs a loop over the loopback interface, to its own port, until the machine has finished.
func runLoop(t *testing.T, m *script, dilation float64, ahead units.Time) *loop {
	t.Helper()
	return runLoopOf(t, m, map[uint32]transport.HostID{0x7f000001: 0}, dilation, ahead)
}

// runLoopOf is runLoop for any machine, with packets from several addresses.
func runLoopOf(t *testing.T, m machine, hosts map[uint32]transport.HostID, dilation float64, ahead units.Time) *loop {
	t.Helper()
	socket := listenSocket(t, wire.Port)
	in, err := newReceiver(socket, newTray(2048))
	if err != nil {
		t.Fatal(err)
	}
	p, err := poller.New(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l := &loop{
		machine: m, clock: clock.NewClock(), in: in,
		out:      newSenders(loopback, [][4]byte{loopback}),
		hosts:    hosts,
		nic:      nic{line: units.NewLine(units.Gbps), ahead: ahead}, // 1000 bytes take 8 us
		interval: reportInterval,
	}
	t.Cleanup(l.out.close)
	l.results.Timer, l.results.Reaction = stats.NewDist(), stats.NewDist()
	l.results.Stalls = new(stalls.Log)
	l.report = func(done bool) error { l.stop = l.stop || done; return nil }
	l.t0 = l.clock.Now() + int64(5*time.Millisecond)
	l.prepare()
	d := driver{poll: p, loops: []*loop{l}}
	if err := d.watch(0, map[int32]int{socketToken: socket}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.run(dilation); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLoopSendsEarlyAndSaysWhenPacketsLeave(t *testing.T) {
	const us = units.Microsecond
	m := &script{t: t, at: []units.Time{0, 0, 0, 100 * us, 101 * us}}
	m.finished = func() bool { return m.received == 5 }
	// At dilation 500 a packet's 8 us are 4 ms, and the loop may be 1 ms early: time enough for a
	// busy machine.
	l := runLoop(t, m, 500, 2*us)
	want := []units.Time{0, 8 * us, 16 * us, 100 * us, 108 * us}
	for i, at := range m.departed { // a busy machine makes packets late, never early, and keeps them apart
		if at < want[i] || i > 0 && at-m.departed[i-1] < 8*us {
			t.Errorf("packets leave at %d ps, want %d or later", m.departed, want)
			break
		}
	}
	if string(m.placed) != "payload" || l.results.Refused.Total() != 0 || l.results.Unsent != 0 {
		t.Errorf("placed %q, %d bad, %d unsent", m.placed, l.results.Refused.Total(), l.results.Unsent)
	}
	if l.results.Timer.Count() == 0 || l.results.Reaction.Count() != 5 || l.results.CPU <= 0 {
		t.Errorf("%d timers, %d reactions, %d ns of processor", l.results.Timer.Count(), l.results.Reaction.Count(),
			l.results.CPU)
	}
}

func TestLoopCountsWhatItCannotUse(t *testing.T) {
	m := &script{t: t}
	m.finished = func() bool { return true }
	l := runLoop(t, m, 1, 0)
	ack := make([]byte, wire.AckSize)
	(&wire.Ack{Count: 1}).Encode(ack)
	for _, d := range []datagram{
		{data: ack, from: 0x0a000001},      // nobody we know
		{data: ack[:10], from: 0x7f000001}, // cut: the machine refuses it
		{data: ack, from: 0x7f000001},      // the machine refuses it
	} {
		l.take(d)
	}
	if l.results.Refused.Total() != 3 || m.received != 2 {
		t.Errorf("%d bad, %d received, want 3 and 2", l.results.Refused.Total(), m.received)
	}
}
