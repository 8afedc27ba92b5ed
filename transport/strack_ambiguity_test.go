package transport_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/transport"
	"weft/transport/cc/strack"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// Where STrack's paper is ambiguous or contradicts itself, one test each, numbered as in
// docs/adr/0040. Those on windows are in package cc/strack, those on paths in package path.

const full = 1000 + wire.DataSize + wire.Overhead // a full packet of a script

// strackSpec is a connection of a script whose receiver acknowledges every four packets, on a
// network with a base RTT of 8 us.
func strackSpec() transport.Spec {
	s := selectiveRepeat("strack", pc4Spec(1))
	s.NetRTT = 8 * us
	s.Selective.AckEvery = 4 * full
	return s
}

// sack decodes a selective acknowledgement.
func (s *script) sack(p packet) wire.Sack {
	s.t.Helper()
	var a wire.Sack
	if err := a.Decode(p.out.Header[:p.out.N]); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// deliverMarked hands packets to e with congestion experienced.
func (s *script) deliverMarked(e *transport.Endpoint, all ...packet) {
	s.t.Helper()
	for i := range all {
		if _, err := e.Receive(s.now, &transport.Incoming{
			At: s.now, Src: all[i].from, Header: all[i].out.Header[:all[i].out.N], Payload: all[i].out.Payload, CE: true,
		}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// wantPSNs checks the sequence numbers of data packets.
func (s *script) wantPSNs(all []packet, want ...uint32) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.psns(all)); diff != "" {
		s.t.Errorf("packets: %s", diff)
	}
}

// awaitProbe advances time until a probe leaves, and returns it.
func (s *script) awaitProbe() packet {
	s.t.Helper()
	at, ok := s.a.Deadline()
	if !ok {
		s.t.Fatal("nothing to wait for")
	}
	s.now = at
	s.a.Advance(s.now)
	p := s.transmitOne(s.a)
	var q wire.Probe
	if err := q.Decode(p.out.Header[:p.out.N]); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// 5: paths are twice the connection's own window in packets, as it is when acknowledgements come.
func TestAmbiguity5PathsFollowTheWindowOfTheConnection(t *testing.T) {
	for _, x := range []struct {
		maxCWND float64
		late    units.Time // queued on the way back
		want    int
	}{{0.04, 0, 8}, {0.12, 0, 20}, {1, 0, 180}, {1, 60 * us, 8}} { // windows of 3, 10 and 90 packets, and one that shrinks to 1
		c := strackSpec()
		c.Selective.ProbeAfter = 1000
		changeParams(&c, func(p *strack.Params) { p.MaxCWND = x.maxCWND })
		s := newScript(t, c)
		s.send(1, 1, units.MB)
		paths := 0 // to the last one that is used
		for left := 0; left < 950; {
			all := s.transmit(s.a)
			for _, p := range all {
				if d := s.data(p); left >= 500 {
					paths = max(paths, int(d.Path)+1)
				}
				left++
			}
			s.now += 3 * us
			s.deliverMarked(s.b, all...) // every path is marked: the round goes on
			acks := s.transmit(s.b)
			s.now += 3*us + x.late
			s.deliver(s.a, acks...)
		}
		if paths > x.want || paths < max(x.want/2, 8) {
			t.Errorf("%v of a BDP, %v late: %d paths, want %d or not much less", x.maxCWND, x.late, paths, x.want)
		}
	}
}

// 9: the probe's "delay" is its queueing delay, and "achievedBDP == 0" that nothing else was
// acknowledged since it left, which needs a count of its own.
func TestAmbiguity9ProbeSaysOfALoss(t *testing.T) {
	lost := func(t *testing.T) (s *script, sent []packet, answer packet) {
		s = newScript(t, strackSpec())
		s.send(1, 1, 3000)
		sent = s.transmit(s.a)
		probe := s.awaitProbe()
		if s.now != 24*us { // n = 3 network RTTs
			t.Errorf("probe at %v", s.now)
		}
		s.now += 2 * us
		s.deliver(s.b, probe)
		answer = s.transmitOne(s.b)
		if a := s.sack(answer); !a.Probe || a.Expected != 0 || a.Base != 0 {
			t.Errorf("%+v", a)
		}
		return s, sent, answer
	}
	t.Run("alone and fast", func(t *testing.T) {
		s, _, answer := lost(t)
		s.now += 2 * us
		s.deliver(s.a, answer)
		s.wantPSNs(s.transmit(s.a), 0, 1, 2)
		s.deliver(s.a, answer) // a copy of it
		if again := s.transmit(s.a); again != nil {
			t.Errorf("a copy of the answer made %d packets go again", len(again))
		}
	})
	t.Run("slow", func(t *testing.T) {
		s, _, answer := lost(t)
		s.now += 20 * us // 16 us queued, and some
		s.deliver(s.a, answer)
		if again := s.transmit(s.a); again != nil {
			t.Errorf("%d packets again though the network is congested", len(again))
		}
	})
	t.Run("not alone", func(t *testing.T) {
		s, sent, answer := lost(t)
		s.deliver(s.b, sent[2]) // asks for an acknowledgement
		s.now += 2 * us
		s.deliver(s.a, s.transmitOne(s.b), answer)
		if again := s.transmit(s.a); again != nil {
			t.Errorf("%d packets again though others arrive", len(again))
		}
	})
	t.Run("lost", func(t *testing.T) {
		s, _, _ := lost(t)
		if s.awaitProbe(); s.now != 48*us {
			t.Errorf("next probe at %v", s.now)
		}
	})
}

// 20: "a packet with current expected PSN is received" would end coalescing where all is in order:
// only one that fills a hole is acknowledged at once.
func TestAmbiguity20InOrderIsCoalesced(t *testing.T) {
	s := newScript(t, strackSpec())
	s.send(1, 1, 20000)
	sent := s.transmit(s.a)
	s.deliver(s.b, sent[0], sent[1], sent[2])
	if acks := s.transmit(s.b); acks != nil {
		t.Fatalf("%d acknowledgements for three packets in order", len(acks))
	}
	s.deliver(s.b, sent[3])
	if a := s.sack(s.transmitOne(s.b)); a.Expected != 4 || a.Bitmap != 0 || a.OutOfOrder != 0 || a.PSN != 3 {
		t.Errorf("%+v", a)
	}
	s.deliver(s.b, sent[5], sent[6])
	if acks := s.transmit(s.b); acks != nil {
		t.Fatalf("%d acknowledgements for two packets beyond a hole", len(acks))
	}
	s.deliver(s.b, sent[4])
	if a := s.sack(s.transmitOne(s.b)); a.Expected != 7 || a.Received != 7*full {
		t.Errorf("%+v", a)
	}
}

// 21: a loss is inferred when more packets are out of order than the larger of the window in
// packets and 5, or what is set.
func TestAmbiguity21Threshold(t *testing.T) {
	for _, x := range []struct {
		maxCWND         float64 // of 8 us at 100 Gb/s, in packets of 1102 bytes
		window          int
		threshold, want int
	}{
		{0.025, 2, 0, 5}, // a small window says nothing: five may overtake
		{0.025, 2, 8, 8},
		{0.12, 10, 0, 10}, // a window may
		{0.12, 10, 15, 15},
		{1, 90, 0, 90},
	} {
		c := strackSpec()
		c.Selective.Threshold = x.threshold
		changeParams(&c, func(p *strack.Params) { p.MaxCWND = x.maxCWND })
		s := newScript(t, c)
		s.send(1, 1, 300_000)
		all := s.transmit(s.a)
		if len(all) != x.window {
			t.Fatalf("a window of %d packets, want %d", len(all), x.window)
		}
		for i := 1; i <= x.want+1; i++ { // packet 0 is lost; each acknowledgement lets one more leave
			s.now += us / 100
			s.deliverMarked(s.b, all[i])
			s.deliver(s.a, s.transmitOne(s.b))
			next := s.transmit(s.a)
			all = append(all, next...)
			if got := s.psns(next)[0]; (got == 0) != (i == x.want+1) {
				t.Fatalf("window of %d, threshold %d, %d packets out of order: next is %d", x.window, x.threshold, i, got)
			}
		}
	}
}

// forgeSack encodes a selective acknowledgement as host 1 would send it.
func forgeSack(a wire.Sack) packet {
	p := packet{from: 1}
	p.out.N = int(wire.SackSize)
	a.Encode(p.out.Header[:])
	return p
}

// 22: a recovery is over when all up to the highest packet that had arrived at its beginning has:
// what was sent beyond is not claimed lost.
func TestAmbiguity22EndOfRecovery(t *testing.T) {
	c := strackSpec()
	c.Selective.Threshold = 5
	changeParams(&c, func(p *strack.Params) { p.MaxCWND = 0.12 }) // 10 packets
	s := newScript(t, c)
	s.send(1, 1, 30000)
	all := s.transmit(s.a)
	if len(all) != 10 {
		t.Fatalf("%d packets", len(all))
	}
	s.now = 3 * us
	for i := 2; i < 8; i++ { // 0, 1, 8 and 9 are lost, or late
		s.deliverMarked(s.b, all[i])
	}
	acks := s.transmit(s.b)
	s.now = 6 * us
	s.deliver(s.a, acks...)
	more := s.transmit(s.a)
	s.wantPSNs(more, 10, 11, 12, 13, 14, 15) // six have arrived: six more; six out of order are below a window of ten
	s.now = 9 * us
	for i := range 5 {
		s.deliverMarked(s.b, more[i])
	}
	s.now = 12 * us
	s.deliver(s.a, s.transmit(s.b)...) // 11 out of order
	again := s.transmit(s.a)
	s.wantPSNs(again[:4], 0, 1, 8, 9) // up to 14, not 15
	for _, p := range s.psns(again) {
		if p == 15 {
			t.Error("a packet beyond the highest that arrived leaves again")
		}
	}
	// 0 arrives, and eleven are still beyond a hole: those that fill it are on their way.
	s.now = 15 * us
	s.deliverMarked(s.b, again[0])
	s.deliver(s.a, s.transmit(s.b)...)
	s.transmit(s.a)
	if got := s.a.Counters(); got.Retransmits != 4 || got.Recoveries != 1 {
		t.Errorf("%+v", got)
	}
}

// When the recovery is over, the next loss shows as the first did, though the packet had left
// before the recovery began.
func TestAmbiguity22LossRightBehindARecovery(t *testing.T) {
	c := strackSpec()
	c.Selective.Threshold = 5
	changeParams(&c, func(p *strack.Params) { p.MaxCWND = 0.12 }) // 10 packets
	s := newScript(t, c)
	s.send(1, 1, 60000)
	carry := func(all ...packet) []packet { // to the receiver, its acknowledgements to the sender, and what they let leave
		s.now += us / 10
		s.deliverMarked(s.b, all...)
		s.deliver(s.a, s.transmit(s.b)...)
		return s.transmit(s.a)
	}
	all := s.transmit(s.a) // 0 to 9, of which 0 is lost
	for i := 1; i < 11; i++ {
		all = append(all, carry(all[i])...)
	}
	s.wantPSNs(all[10:], 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
	again := carry(all[11]) // 11 out of order
	s.wantPSNs(again, 0, 20)
	// 12 was on its way by then, and is lost as well. The recovery ends when all up to 11 is there.
	all = append(all, again[1])
	all = append(all, carry(again[0])...)
	for n := 1; n <= 11; n++ {
		next := carry(all[12+n])
		if got := s.psns(next)[0]; (got == 12) != (n == 11) {
			t.Fatalf("%d packets overtook packet 12: next is %d", n, got)
		}
		all = append(all, next...)
	}
	if got := s.a.Counters(); got.Retransmits != 2 || got.Recoveries != 2 {
		t.Errorf("%+v", got)
	}
}

// 23: the timeout is a setting of the connection, as for any transport; labs call it strack
// (package orchestrator/run).
func TestAmbiguity23Timeout(t *testing.T) {
	for least, want := range map[units.Time]units.Time{0: units.Millisecond, 100 * us: 100 * us, 400 * us: 400 * us} {
		c := strackSpec()
		c.RTOMin, c.NetRTT, c.Selective.ProbeAfter = least, 8*us, 1000 // no probes
		s := newScript(t, c)
		s.send(1, 1, 500)
		s.transmitOne(s.a)
		if at, ok := s.a.Deadline(); !ok || at != want {
			t.Errorf("least timeout %v: timeout at %v, want %v", least, at, want)
		}
		s.now = want
		s.wantPSNs(s.transmit(s.a), 0)
		if n := s.a.Counters().Timeouts; n != 1 {
			t.Errorf("%d timeouts", n)
		}
	}
}

// The timer is one per connection and restarts "whenever a higher EPSN is received"; when it runs
// out "all the unackowledged packets are declared lost".
func TestTimeoutSendsAllThatIsMissing(t *testing.T) {
	c := strackSpec()
	c.Selective.ProbeAfter = 1000
	s := newScript(t, c)
	s.send(1, 1, 8000)
	all := s.transmit(s.a)
	s.now = 50 * us
	s.deliver(s.b, all[0], all[2], all[7]) // the last one asks
	s.deliver(s.a, s.transmitOne(s.b))
	for s.a.Counters().Timeouts == 0 {
		s.now, _ = s.a.Deadline()
		s.a.Advance(s.now)
	}
	if s.now < 150*us {
		t.Errorf("timeout at %v, 100 us after a higher EPSN at the earliest", s.now)
	}
	s.wantPSNs(s.transmit(s.a), 1, 3, 4, 5, 6)
}

// 24: four packets of 4 KiB are enough for an acknowledgement.
func TestAmbiguity24Coalescing(t *testing.T) {
	if n := transport.DefaultAckEvery; n != 16384 || n > 4*(4096+wire.DataSize+wire.Overhead) || n <= 3*(4096+wire.DataSize+wire.Overhead) {
		t.Errorf("an acknowledgement every %d bytes", n)
	}
	_, last := runIncast(t, strackRack(1), 1, 4096*4000, sprayedSpec("strack"))
	net, _ := runIncast(t, strackRack(1), 1, 4096*4000, sprayedSpec("strack"))
	if c := net.Hosts[0].Counters(); c.Acks != 1000 || last == 0 {
		t.Errorf("%d acknowledgements for 4000 packets in order", c.Acks)
	}
}

// 25: between Kmin and Kmax the probability rises linearly to 1, and the queue behind the packet
// that leaves decides: so the mark of the first packet of an incast comes with a round trip that
// shows no queue yet (Fig. 4).
func TestAmbiguity25MarksComeBeforeDelay(t *testing.T) {
	const senders = 4
	first := &firstAck{}
	net, err := newNet(netConfig{
		Hosts: senders + 1, Line: 100 * units.Gbps, Delay: us, MTU: 1000,
		Mark:     func(behind units.Bytes) bool { return behind >= 2*full },
		Observer: func(int) transport.Observer { return first },
	})
	if err != nil {
		t.Fatal(err)
	}
	for h := 1; h <= senders; h++ {
		id := transport.ConnID(h)
		if err := net.Connect(selectiveRepeat("strack", transport.Spec{ID: id, Src: transport.HostID(h), Dst: 0})); err != nil {
			t.Fatal(err)
		}
		net.At(0, func() {
			if err := net.Send(h, id, transport.Message{Size: 20000}); err != nil {
				t.Error(err)
			}
		})
	}
	net.Run(units.Second)
	base := net.Paths.Delay(full) + net.Paths.Delay(wire.SackSize+wire.Overhead)
	if late := first.ack.RTT - base; !first.seen || !first.ack.Marked || late > 2*(100*units.Gbps).TransmitTime(full) {
		t.Errorf("the first acknowledgement: %+v, want it marked, and two packets behind a base RTT of %v at most", first.ack, base)
	}
	if first.longest < base+us {
		t.Errorf("the longest round trip is %v", first.longest)
	}
}

// firstAck keeps the first acknowledgement of all, and the longest round trip.
type firstAck struct {
	seen    bool
	ack     transport.Acked
	longest units.Time
}

func (f *firstAck) Acked(_ units.Time, _ transport.ConnID, a transport.Acked) {
	if !f.seen {
		f.ack, f.seen = a, true
	}
	f.longest = max(f.longest, a.RTT)
}

func (f *firstAck) Limited(units.Time, transport.ConnID, transport.Limits) {}

// 29: the mark of an acknowledgement is that of the packet that caused it; a marked packet causes
// one at once, or its mark would be lost.
func TestAmbiguity29MarksAreNotLost(t *testing.T) {
	s := newScript(t, strackSpec())
	s.send(1, 1, 20000)
	all := s.transmit(s.a)
	s.deliver(s.b, all[0])
	s.deliverMarked(s.b, all[1])
	if a := s.sack(s.transmitOne(s.b)); !a.CE || a.PSN != 1 || a.Path != s.data(all[1]).Path || a.Expected != 2 {
		t.Errorf("%+v", a)
	}
	s.deliver(s.b, all[2:6]...)
	if a := s.sack(s.transmitOne(s.b)); a.CE || a.PSN != 5 || a.Path != s.data(all[5]).Path || a.Expected != 6 {
		t.Errorf("%+v", a)
	}
}

// 30: packets that are sent again choose a path as all others do.
func TestAmbiguity30PathsOfPacketsSentAgain(t *testing.T) {
	s := newScript(t, strackSpec())
	s.send(1, 1, 3000)
	first := s.transmit(s.a)
	probe := s.awaitProbe()
	s.now += 2 * us
	s.deliver(s.b, probe)
	s.now += 2 * us
	s.deliver(s.a, s.transmitOne(s.b))
	again := s.transmit(s.a)
	twin := path.NewSTrack(path.Adaptive{Paths: 256, PerPacket: 2}, full, 99*full)
	for i, p := range append(append(first, probe), again...) {
		want := twin.Choose(0)
		if i == len(first) {
			twin.OnFeedback(0, path.Feedback{Path: want, Window: 99 * full}) // the answer came without a mark
		}
		if got := p.out.SrcPort - 50000; got != want {
			t.Errorf("packet %d takes path %d, want %d", i, got, want)
		}
	}
}

// 31: Fig. 16's "7500us (worth of 37.5MB switch queue depth)" cannot be at 400 Gb/s: 37.5 MB are
// 750 us, and 7500 us are 375 MB, more than the 256 MB of the largest switch. Fig. 17 and 18 show 8
// of the 32 flows. "6666X" is 6x, "27.427.4" is 27.4.
func TestAmbiguity31QueueOfFigure16(t *testing.T) {
	line := 400 * units.Gbps
	if d := line.TransmitTime(37_500 * units.KB); d != 750*us {
		t.Errorf("37.5 MB last %v", d)
	}
	if n := line.BytesIn(7500 * us); n != 375*units.MB || n < 256*units.MB {
		t.Errorf("7500 us are %v", n)
	}
}

// 32: the size of the collectives of Fig. 21 to 28 is not stated. An all-to-all of 32 ranks that
// takes 8.5 ms at 4:1 moves some 106 to 110 MB per rank before headers: 31 of 32 parts leave, and
// all but 31 of the 2047 other NICs' worth of them the rack (64 NICs), over a quarter of the line.
func TestAmbiguity32SizeOfCollectives(t *testing.T) {
	const share = 31.0 / 32 * (1984.0 / 2047) * 4
	perRank := 8.5e-3 * 50e9 / share
	if perRank < 105e6 || perRank > 115e6 {
		t.Errorf("%.1f MB", perRank/1e6)
	}
}
