package transport_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weft/transport"
	"weft/transport/cc/strack"
	"weft/transport/wire"
	"weft/units"
)

// Payload goes straight to its place in the message, whatever is missing before it; a message is
// there when its last packet is, whatever is missing of an earlier one.
func TestOutOfOrderIsPlaced(t *testing.T) {
	s := newScript(t, strackSpec())
	s.send(1, 1, 2500)
	s.send(1, 2, 1500)
	all := s.transmit(s.a)
	s.now = 3 * us
	placed := s.deliver(s.b, all[4], all[2], all[3])
	want := []transport.Placement{
		{Conn: 1, Message: 2, Tag: 72, Size: 1500, Offset: 1000, Payload: 500},
		{Conn: 1, Message: 1, Tag: 71, Size: 2500, Offset: 2000, Payload: 500},
		{Conn: 1, Message: 2, Tag: 72, Size: 1500, Offset: 0, Payload: 1000},
	}
	if diff := cmp.Diff(want, placed); diff != "" {
		t.Error(diff)
	}
	if e := s.wantEvents(s.b, transport.MessageReceived)[0]; e.Message != (transport.Message{ID: 2, Tag: 72, Size: 1500}) {
		t.Errorf("%+v", e)
	}
	if pl := s.deliver(s.b, all[4])[0]; pl != (transport.Placement{}) {
		t.Errorf("placed twice: %+v", pl)
	}
	s.deliver(s.b, all[1], all[0])
	s.wantEvents(s.b, transport.MessageReceived)
	s.now = 6 * us
	s.deliver(s.a, s.transmit(s.b)...)
	s.wantEvents(s.a, transport.MessageAcked, transport.MessageAcked)
	if at, ok := s.a.Deadline(); ok {
		t.Errorf("a deadline at %v when everything is done", at)
	}
	if c := s.b.Counters(); c.Reordered != 4 || c.Duplicates != 1 || c.OutOfOrder != 0 || c.Delivered != 4000 {
		t.Errorf("%+v", c)
	}
}

// "The next SACK is sent with the bitmap segment that is associated with that lowest PSN" of those
// that came since the last one: segments are counted from the expected packet on.
func TestSegmentOfTheLowestPacket(t *testing.T) {
	c := strackSpec()
	c.Selective.AckEvery = 2 * full
	s := newScript(t, c)
	s.send(1, 1, 200_000)
	all := s.transmit(s.a)
	s.deliver(s.b, all[70], all[68])
	if a := s.sack(s.transmitOne(s.b)); a.Expected != 0 || a.Base != 64 || a.Bitmap != 1<<6|1<<4 || a.OutOfOrder != 2 || a.PSN != 68 {
		t.Errorf("%+v", a)
	}
	s.deliver(s.b, all[80], all[3])
	if a := s.sack(s.transmitOne(s.b)); a.Base != 0 || a.Bitmap != 1<<3 || a.OutOfOrder != 4 || a.Received != 4*full {
		t.Errorf("%+v", a)
	}
	s.deliver(s.b, all[5], all[81]) // the lower one first
	if a := s.sack(s.transmitOne(s.b)); a.Base != 0 || a.Bitmap != 1<<3|1<<5 || a.OutOfOrder != 6 || a.PSN != 81 {
		t.Errorf("%+v", a)
	}
	s.deliver(s.b, all[82], all[83]) // and nothing is left of it
	if a := s.sack(s.transmitOne(s.b)); a.Base != 64 || a.Bitmap != 1<<4|1<<6|0xf<<16 || a.OutOfOrder != 8 {
		t.Errorf("%+v", a)
	}
	s.deliver(s.b, all[0])
	if a := s.sack(s.transmitOne(s.b)); a.Expected != 1 || a.Base != 1 || a.Bitmap != 1<<2|1<<4 {
		t.Errorf("%+v", a)
	}
}

// Short packets and probes measure the round trip of full ones: they are on the way for less, which
// is no news of queues.
func TestRoundTripsOfShortPackets(t *testing.T) {
	seen := &lastWindow{}
	e, err := transport.New(transport.Config{Host: 0, MTU: 1000, LineRate: 100 * units.Gbps, Observer: seen})
	if err != nil {
		t.Fatal(err)
	}
	s := newScript(t, strackSpec())
	s.a = e
	if err := e.Open(strackSpec()); err != nil {
		t.Fatal(err)
	}
	var rtts []units.Time
	for _, size := range []units.Bytes{1000, 1} {
		s.send(1, uint32(size), size)
		p := s.transmitOne(s.a)
		d := s.data(p)
		start := s.now
		s.now += d.Baseline
		s.deliver(s.b, p)
		s.now += 2 * us
		s.deliver(s.a, s.transmitOne(s.b))
		rtts = append(rtts, seen.rtt)
		if size == 1 && s.now-start == seen.rtt {
			t.Error("a short packet took as long as a full one")
		}
	}
	if rtts[0] != rtts[1] {
		t.Errorf("round trips of %v", rtts)
	}
}

// Packets do not request acknowledgements while more may leave and more than the receiver waits for
// is in flight; the last packet does, and the one that fills a small window.
func TestWhichPacketsAskForAnAck(t *testing.T) {
	asks := func(c transport.Spec, size units.Bytes) (all []bool) {
		s := newScript(t, c)
		s.send(1, 1, size)
		for _, p := range s.transmit(s.a) {
			all = append(all, s.data(p).Flags&wire.AckNow != 0)
		}
		return all
	}
	if diff := cmp.Diff([]bool{false, false, false, false, false, true}, asks(strackSpec(), 6000)); diff != "" {
		t.Error(diff)
	}
	small := strackSpec()
	changeParams(&small, func(p *strack.Params) { p.MaxCWND = 0.04 }) // 3 packets
	if diff := cmp.Diff([]bool{false, false, true}, asks(small, 6000)); diff != "" {
		t.Error(diff)
	}
	changeParams(&small, func(p *strack.Params) { p.MaxCWND = 0.05 }) // 4
	if diff := cmp.Diff([]bool{false, false, false, false}, asks(small, 6000)); diff != "" {
		t.Error(diff)
	}
}

// A connection whose turn at the NIC comes rarely asks every time: four packets would take until a
// probe.
func TestRareTurnsAskForAnAck(t *testing.T) {
	s := newScript(t, strackSpec()) // an acknowledgement every four packets, a probe after 24 us
	s.send(1, 1, 100_000)
	var out transport.Outgoing
	for i, wait := range []units.Time{0, us, 6 * us, 7 * us, 6 * us} {
		s.now += wait
		if !s.a.Transmit(s.now, &out) {
			t.Fatal("nothing leaves")
		}
		if got := s.data(packet{out: out}).Flags&wire.AckNow != 0; got != (wait > 6*us) {
			t.Errorf("packet %d after %v asks: %v", i, wait, got)
		}
	}
}

// A retransmission is lost, too: when a window of packets has overtaken it, it is claimed lost
// again.
func TestPacketsSentAgainAreLostAgain(t *testing.T) {
	c := strackSpec()
	changeParams(&c, func(p *strack.Params) { p.MaxCWND = 0.07 }) // 6 packets
	c.Selective.ProbeAfter = 1000
	s := newScript(t, c)
	s.send(1, 1, 100_000)
	var resent []int // how many packets arrived before each time that packet 0 left again
	arrived := 0
	for all := s.transmit(s.a); len(resent) < 3 && arrived < 100; {
		s.now += us / 10
		var next []packet
		for _, p := range all {
			if s.data(p).PSN == 0 {
				if arrived > 0 {
					resent = append(resent, arrived)
				}
				continue
			}
			arrived++
			s.deliverMarked(s.b, p)
			s.deliver(s.a, s.transmit(s.b)...)
			next = append(next, s.transmit(s.a)...)
		}
		all = next
	}
	if len(resent) != 3 || s.now > 20*us {
		t.Fatalf("packet 0 left again after %v packets, until %v", resent, s.now)
	}
	for i := range 2 {
		if n := resent[i+1] - resent[i]; n < 6 || n > 20 {
			t.Errorf("lost again after %d packets", n)
		}
	}
}

// All transports work with selective repeat, and those that do not spread packets by themselves
// with go-back-N as well.
func TestRecoveryIsAChoice(t *testing.T) {
	for _, kind := range transport.Kinds() {
		if f := transport.FactsOf(kind); f.Module || f.Coordinated {
			continue // these are others inside: see TestNeedsOfTransports and cmd/weft
		}
		own := slices.Contains([]string{"strack", "spray", "uec"}, kind)
		for recovery, ok := range map[string]bool{
			"": true, transport.GoBackN: !own, transport.SelectiveRepeat: true, "irn": false,
		} {
			s := pc4Spec(1)
			s.Kind = kind
			s.Forward.Rates = []units.Bandwidth{10 * units.Gbps, 10 * units.Gbps} // a switch, for telemetry
			configure(&s, nil)
			s.Recovery = recovery
			if err := newEndpoint(t, 0).Open(s); (err == nil) != ok {
				t.Errorf("%s with %q: %v", kind, recovery, err)
			}
		}
	}
}

// Thousands of connections to one host wait for longer than they wait before a probe. Their probes
// do not fill its link: each connection ends, after some tens of probes.
func TestProbesOfManyConnections(t *testing.T) {
	for _, kind := range []string{"strack", "pc4"} {
		const n = 3000
		net, last := runIncast(t, star(0), n, 20*units.KB, selectiveRepeat(kind, transport.Spec{}))
		var sum transport.Counters
		for _, h := range net.Hosts {
			sum.Add(h.Counters())
		}
		if ideal := (100 * units.Gbps).TransmitTime(n * 20 * units.KB); last > 20*ideal || sum.Probes > 50*n {
			t.Errorf("%s: %d probes, until %v; alone the data takes %v", kind, sum.Probes, last, ideal)
		}
	}
}

// Acknowledgements of selective repeat carry what those of go-back-N do: without losses, senders
// that share a receiver are as fast with either, and their queue is as long.
func TestSelectiveAcksCarryFeedback(t *testing.T) {
	for _, kind := range []string{"pc4", "swift", "hpcc"} {
		var last, rtts [2]units.Time
		for i, recovery := range []string{transport.GoBackN, transport.SelectiveRepeat} {
			cfg := star(0)
			cfg.Buffer, cfg.INT = 10*units.MB, telemetryInHeader
			rtt := &meanRTT{}
			cfg.Observer = func(int) transport.Observer { return rtt }
			s := transport.Spec{Kind: kind}
			configure(&s, map[string]string{"recovery": recovery, "base_rate": "observed", "initial": "line"})
			net, at := runIncast(t, cfg, 4, 4096*1000, s)
			if net.Dropped > 0 {
				t.Errorf("%s, %s: %d packets dropped", kind, recovery, net.Dropped)
			}
			last[i], rtts[i] = at, rtt.sum/units.Time(rtt.n)
		}
		if d := float64(last[1])/float64(last[0]) - 1; math.Abs(d) > 0.01 {
			t.Errorf("%s takes %v with go-back-N and %v with selective repeat", kind, last[0], last[1])
		}
		if d := float64(rtts[1])/float64(rtts[0]) - 1; math.Abs(d) > 0.01 {
			t.Errorf("%s has round trips of %v with go-back-N and %v with selective repeat", kind, rtts[0], rtts[1])
		}
	}
}

func TestSelectiveSpecsThatAreRefused(t *testing.T) {
	for name, change := range map[string]func(*transport.Spec){
		"network RTT":          func(s *transport.Spec) { s.NetRTT = -1 },
		"acknowledgements":     func(s *transport.Spec) { s.Selective.AckEvery = -1 },
		"threshold":            func(s *transport.Spec) { s.Selective.Threshold = -1 },
		"probes":               func(s *transport.Spec) { s.Selective.ProbeAfter = -1 },
		"beyond the last port": func(s *transport.Spec) { s.SrcPort = 65535 - 254 },
		"strack: gamma":        func(s *transport.Spec) { changeParams(s, func(p *strack.Params) { p.Gamma = 0 }) },
		"are not a power of two": func(s *transport.Spec) {
			s.Kind = "spray"
			changeParams(s, func(p *strack.Params) { p.Paths = 100 })
		},
		"unknown recovery \"x\"": func(s *transport.Spec) { s.Recovery = "x" },
	} {
		c := strackSpec()
		change(&c)
		if err := newEndpoint(t, 0).Open(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	last := strackSpec()
	last.SrcPort = 65535 - 255
	if err := newEndpoint(t, 0).Open(last); err != nil {
		t.Error(err)
	}
}

// RoCE with selective repeat under loss: what is missing leaves again, not all behind it, and a
// lost tail is found without a timeout.
func TestRoCERepeatsSelectively(t *testing.T) {
	retransmits := map[string]int64{}
	for _, recovery := range []string{transport.GoBackN, transport.SelectiveRepeat} {
		cfg := star(0)
		n := 0
		cfg.Fault = func(_ units.Time, p *netPacket) netFault {
			if p.Payload > 0 {
				n++
			}
			return netFault{Drop: p.Payload > 0 && n%200 == 0}
		}
		s := withKind("roce", transport.Spec{})
		s.Recovery = recovery
		net, _ := runIncast(t, cfg, 1, 4096*1000, s)
		c := net.Hosts[1].Counters()
		retransmits[recovery] = c.Retransmits
		if recovery == transport.SelectiveRepeat && (c.Timeouts > 0 || int(c.Retransmits) != net.Dropped) {
			t.Errorf("%d dropped, %+v", net.Dropped, c)
		}
	}
	if retransmits[transport.GoBackN] < 3*retransmits[transport.SelectiveRepeat] {
		t.Errorf("sent again: %v", retransmits)
	}
}

func TestSelectivePacketsThatAreRefused(t *testing.T) {
	s := newScript(t, strackSpec(), pc4Spec(2))
	s.send(1, 1, 3500)
	s.send(2, 1, 1000)
	all := s.transmit(s.a)
	s.now = 3 * us
	data := func(change func(*wire.Data)) packet {
		p := all[0]
		for i := range all {
			if d := s.data(all[i]); d.Conn == 1 && d.PSN == 1 {
				p = all[i]
			}
		}
		d := s.data(p)
		change(&d)
		d.Encode(p.out.Header[:])
		p.out.Payload = d.Payload
		return p
	}
	probe := func(q wire.Probe, from transport.HostID) packet {
		p := packet{from: from}
		p.out.N = wire.ProbeSize
		q.Encode(p.out.Header[:])
		return p
	}
	sack := wire.Sack{Conn: 1, Due: 3*us - 1}
	with := func(change func(*wire.Sack)) packet {
		a := sack
		change(&a)
		return forgeSack(a)
	}
	foreign := with(func(*wire.Sack) {})
	foreign.from = 7
	loaded := with(func(*wire.Sack) {})
	loaded.out.Payload = 1
	good := probe(wire.Probe{Conn: 1}, 0)
	good.out.Payload = 1
	for _, c := range []struct {
		name string
		at   *transport.Endpoint
		p    packet
		want error
	}{
		{"ack with sum of more than was sent", s.a, with(func(a *wire.Sack) { a.Received = 5 * full }), transport.ErrProtocol},
		{"ack of a packet that was not sent", s.a, with(func(a *wire.Sack) { a.Bitmap = 1 << 4 }), transport.ErrProtocol},
		{"ack beyond what was sent", s.a, with(func(a *wire.Sack) { a.Expected, a.Base = 5, 5 }), transport.ErrProtocol},
		{"ack from the future", s.a, with(func(a *wire.Sack) { a.Due = 4 * units.Second }), transport.ErrProtocol},
		{"ack from a stranger", s.a, foreign, transport.ErrForeign},
		{"ack with payload", s.a, loaded, transport.ErrProtocol},
		{"ack on no connection", s.a, with(func(a *wire.Sack) { a.Conn = 9 }), transport.ErrUnknownConn},
		{"selective ack under go-back-N", s.a, with(func(a *wire.Sack) { a.Conn = 2 }), transport.ErrProtocol},
		{"ack of go-back-N", s.a, forgeAck(wire.Ack{Conn: 1, SentAt: 1, Count: 1}), transport.ErrProtocol},
		{"probe on no connection", s.b, probe(wire.Probe{Conn: 9}, 0), transport.ErrUnknownConn},
		{"probe from a stranger", s.b, probe(wire.Probe{Conn: 1}, 7), transport.ErrForeign},
		{"probe under go-back-N", s.b, probe(wire.Probe{Conn: 2}, 0), transport.ErrProtocol},
		{"probe with payload", s.b, good, transport.ErrProtocol},
		{"probe for packets far away", s.b, probe(wire.Probe{Conn: 1, PSN: 1 << 20}, 0), transport.ErrProtocol},
		{"data far away", s.b, data(func(d *wire.Data) { d.PSN = 1 << 20 }), transport.ErrProtocol},
		{"data before the first packet", s.b, data(func(d *wire.Data) { d.PSN = 0 }), transport.ErrProtocol},
		{"data between packets", s.b, data(func(d *wire.Data) { d.Offset = 999 }), transport.ErrProtocol},
		{"data cut short", s.b, data(func(d *wire.Data) { d.Payload = 999 }), transport.ErrProtocol},
	} {
		if _, err := s.receive(c.at, &c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	s.deliver(s.b, data(func(*wire.Data) {}))
	other := data(func(d *wire.Data) { d.PSN, d.Offset, d.Tag = 2, 2000, 1 })
	if _, err := s.receive(s.b, &other); !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("data of a message that has another tag: %v", err)
	}
}

// Forged packets with arbitrary fields affect only the data that they claim: no panic, and every
// rejected packet is counted.
func TestForgedSelectivePackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { forge(t, 100*units.Gbps, strackSpec(), forgeSelective) })
}

// forgeSelective draws a packet of selective repeat with any fields.
func forgeSelective(t *rapid.T, now units.Time) transport.Incoming {
	b := make([]byte, transport.MaxHeader)
	in := transport.Incoming{At: now, Src: transport.HostID(rapid.IntRange(0, 2).Draw(t, "src")), CE: rapid.Bool().Draw(t, "ce")}
	conn, small := uint32(rapid.IntRange(0, 2).Draw(t, "conn")), rapid.Uint32Range(0, 25)
	psn := rapid.OneOf(small, rapid.Uint32())
	stamp := rapid.OneOf(rapid.Int64(), rapid.Int64Range(int64(now-units.Millisecond), int64(now)))
	switch rapid.IntRange(0, 2).Draw(t, "type") {
	case 0:
		k := units.Bytes(rapid.Int64Range(0, 5).Draw(t, "k"))
		d := wire.Data{
			Conn: conn, PSN: psn.Draw(t, "psn"), Payload: 1000, Message: small.Draw(t, "message"), Offset: 1000 * k, Size: 6000,
			SentAt: units.Time(stamp.Draw(t, "sent")), Path: rapid.Uint16().Draw(t, "path"),
		}
		if k == 0 {
			d.Flags = wire.Announce
		}
		if k == 5 && rapid.Bool().Draw(t, "fin") {
			d.Flags |= wire.Fin
		}
		d.Encode(b)
		in.Header, in.Payload = b[:wire.DataSize], 1000
	case 1:
		p := wire.Probe{Conn: conn, PSN: psn.Draw(t, "psn"), SentAt: units.Time(stamp.Draw(t, "sent"))}
		p.Encode(b)
		in.Header = b[:wire.ProbeSize]
	default:
		a := wire.Sack{
			Conn: conn, Probe: rapid.Bool().Draw(t, "probe"), Expected: psn.Draw(t, "expected"), PSN: psn.Draw(t, "cause"),
			Bitmap:   rapid.Uint64().Draw(t, "bitmap") >> rapid.IntRange(0, 63).Draw(t, "shift"),
			Received: units.Bytes(rapid.Int64Range(0, 30000).Draw(t, "received")), OutOfOrder: rapid.Uint16().Draw(t, "ooo"),
			Due: units.Time(stamp.Draw(t, "due")), Path: rapid.Uint16().Draw(t, "path"),
		}
		a.Base = a.Expected + small.Draw(t, "base")
		a.Encode(b)
		in.Header = b[:wire.SackSize]
	}
	return in
}
