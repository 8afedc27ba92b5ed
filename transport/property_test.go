package transport_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/wire"
	"weft/units"
)

// fataler is a test, of Go's or of rapid's.
type fataler interface {
	Fatalf(format string, args ...any)
}

// ledger checks what arrives against what was sent: every byte of every message exactly once and in
// order.
type ledger struct {
	t      fataler
	sent   map[transport.ConnID][]transport.Message
	placed map[transport.ConnID]units.Bytes // of the message that is arriving
	got    map[transport.ConnID]int         // messages complete
	acked  map[transport.ConnID]int
}

// newLedger returns an empty ledger.
func newLedger(t fataler) *ledger {
	return &ledger{
		t: t, sent: map[transport.ConnID][]transport.Message{}, placed: map[transport.ConnID]units.Bytes{},
		got: map[transport.ConnID]int{}, acked: map[transport.ConnID]int{},
	}
}

// place checks that a payload is the next part of its message.
func (l *ledger) place(pl transport.Placement) {
	if pl.Payload == 0 {
		return
	}
	if l.got[pl.Conn] == len(l.sent[pl.Conn]) {
		l.t.Fatalf("more placed than sent: %+v", pl)
	}
	m := l.sent[pl.Conn][l.got[pl.Conn]]
	if pl.Message != m.ID || pl.Tag != m.Tag || pl.Size != m.Size || pl.Offset != l.placed[pl.Conn] {
		l.t.Fatalf("placed %+v, but byte %d of %+v is due", pl, l.placed[pl.Conn], m)
	}
	l.placed[pl.Conn] += pl.Payload
	if l.placed[pl.Conn] == m.Size {
		l.placed[pl.Conn] = 0
		l.got[pl.Conn]++
	}
}

// event checks that messages are received and acknowledged in the order in which they were sent.
func (l *ledger) event(e transport.Event) {
	switch e.Kind {
	case transport.MessageReceived:
		if n := l.got[e.Conn]; n > len(l.sent[e.Conn]) || e.Message != l.sent[e.Conn][n-1] {
			l.t.Fatalf("received %+v out of turn", e)
		}
	case transport.MessageAcked:
		n := l.acked[e.Conn]
		if n >= l.got[e.Conn] || e.Message != l.sent[e.Conn][n] {
			l.t.Fatalf("acknowledged %+v, but %d arrived", e, l.got[e.Conn])
		}
		l.acked[e.Conn]++
	default:
		l.t.Fatalf("%+v", e)
	}
}

// Whatever the network loses, duplicates and reorders, up to 30 % each: every byte arrives exactly
// once and in order, and the run ends.
func TestEveryByteOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := func(name string) float64 { return rapid.Float64Range(0, 0.3).Draw(t, name) }
		f := faults{loss: share("loss"), copies: share("copies"), hold: share("reorder")}
		net, l := faultyStar(t, f, rapid.Uint64().Draw(t, "seed"))
		drawTraffic(t, net, l)
		l.finish(net)
	})
}

// The same at the highest fault rates, with messages of hundreds of packets in both directions.
func TestManyPacketsUnderHeavyLoss(t *testing.T) {
	for seed := range uint64(5) {
		net, l := faultyStar(t, faults{loss: 0.3, copies: 0.3, hold: 0.3}, seed)
		for c, ends := range [][2]int{{0, 1}, {1, 0}, {2, 1}} {
			connectPC4(t, net, transport.ConnID(c), ends[0], ends[1], pc4.Defaults())
			for i := range uint32(3) {
				l.send(net, 0, ends[0], transport.ConnID(c), transport.Message{ID: i, Size: 150_000 + units.Bytes(i)})
			}
		}
		l.finish(net)
	}
}

// faults are the probabilities that the network loses, duplicates, delays and trims a packet.
type faults struct{ loss, copies, hold, trim float64 }

// faultyStar returns a star of three hosts whose links have faults, and a ledger of its messages.
func faultyStar(t fataler, x faults, seed uint64) (*testNet, *ledger) {
	rng := rand.New(rand.NewPCG(seed, 0))
	net, err := newNet(netConfig{
		Hosts: 3, Line: 10 * units.Gbps, Delay: units.Microsecond, MTU: 1000, Buffer: 100 * units.KB,
		Fault: func(units.Time, *netPacket) (f netFault) {
			f.Drop = rng.Float64() < x.loss
			if rng.Float64() < x.copies {
				f.Copies = 1 + rng.IntN(2)
			}
			if rng.Float64() < x.hold {
				f.Hold = units.Time(rng.Int64N(int64(30 * units.Microsecond)))
			}
			return f
		},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	l := newLedger(t)
	net.OnData = func(_ units.Time, p *netPacket, pl transport.Placement, err error) {
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		l.place(pl)
	}
	for h := range net.Events {
		net.Events[h] = l.event
	}
	return net, l
}

// connectPC4 opens a PC4 connection between two hosts.
func connectPC4(t fataler, net *testNet, c transport.ConnID, src, dst int, p pc4.Params) {
	if err := net.Connect(transport.Spec{
		ID: c, Src: transport.HostID(src), Dst: transport.HostID(dst), Kind: "pc4", CC: p,
		RTOMin: 50 * units.Microsecond, Tries: 1000,
	}); err != nil {
		t.Fatalf("%v", err)
	}
}

// send queues a message at an instant and enters it.
func (l *ledger) send(net *testNet, at units.Time, src int, c transport.ConnID, m transport.Message) {
	l.sent[c] = append(l.sent[c], m)
	net.At(at, func() {
		if err := net.Send(src, c, m); err != nil {
			l.t.Fatalf("%v", err)
		}
	})
}

// finish runs the network to its end and closes the books.
func (l *ledger) finish(net *testNet) {
	if net.Run(1000 * units.Second) {
		l.t.Fatalf("no end: %+v", net.Hosts[0].Counters())
	}
	for c, sent := range l.sent {
		if l.got[c] != len(sent) || l.acked[c] != len(sent) {
			l.t.Fatalf("connection %d: %d sent, %d received, %d acknowledged", c, len(sent), l.got[c], l.acked[c])
		}
	}
	checkQuiet(l.t, net)
}

// drawTraffic opens connections between the three hosts and queues messages on them, now and later.
func drawTraffic(t *rapid.T, net *testNet, l *ledger) {
	p := pc4.Defaults()
	p.BaseRate = rapid.SampledFrom([]string{pc4.Observed, pc4.Controller, pc4.Off}).Draw(t, "base rate")
	for c := range transport.ConnID(rapid.IntRange(1, 4).Draw(t, "connections")) {
		src, dst := int(c)%3, (int(c)+1+int(c)/3)%3
		connectPC4(t, net, c, src, dst, p)
		at := units.Time(0)
		for i := range uint32(rapid.IntRange(1, 4).Draw(t, "messages")) {
			at += units.Time(rapid.Int64Range(0, int64(100*units.Microsecond)).Draw(t, "gap"))
			l.send(net, at, src, c, transport.Message{ID: i * 3, Tag: i, Size: units.Bytes(rapid.Int64Range(1, 20000).Draw(t, "size"))})
		}
	}
}

// checkQuiet checks that nothing is pending and that the network conserved its packets.
func checkQuiet(t fataler, net *testNet) {
	if err := net.CheckConservation(); err != nil {
		t.Fatalf("%v", err)
	}
	var out transport.Outgoing
	for h, e := range net.Hosts {
		if at, ok := e.Deadline(); ok {
			t.Fatalf("host %d has a deadline at %d ps after the end", h, at)
		}
		if e.Transmit(net.Now+units.Second, &out) {
			t.Fatalf("host %d sends after the end", h)
		}
		if c := e.Counters(); c.BadPackets > 0 || c.Failed > 0 {
			t.Fatalf("host %d: %+v", h, c)
		}
	}
}

// Forged packets with arbitrary fields affect only the data that they claim to acknowledge: no
// panic, and every rejected packet is counted.
func TestForgedPackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := transport.Path{Propagation: 2 * us, Rates: []units.Bandwidth{units.Gbps}}
		forge(t, units.Gbps, transport.Spec{Kind: "pc4", CC: pc4.Defaults(), Forward: path, Reverse: path}, forgePacket)
	})
}

// pairEndpoint returns the endpoint of host 0, which sends 20 kB to host 1 on a connection like s.
// A second one leads back.
func pairEndpoint(t *rapid.T, line units.Bandwidth, s transport.Spec) *transport.Endpoint {
	e, err := transport.New(transport.Config{MTU: 1000, LineRate: line})
	if err != nil {
		t.Fatal(err)
	}
	for c, ends := range [][2]transport.HostID{{0, 1}, {1, 0}} {
		s.ID, s.Src, s.Dst = transport.ConnID(c), ends[0], ends[1]
		if err := e.Open(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Send(0, 0, transport.Message{Size: 20000}); err != nil {
		t.Fatal(err)
	}
	return e
}

// forge sends drawn packets to an endpoint. It fails the test unless every rejected one is counted.
func forge(t *rapid.T, line units.Bandwidth, s transport.Spec, draw func(*rapid.T, units.Time) transport.Incoming) {
	e := pairEndpoint(t, line, s)
	refused, now := int64(0), units.Time(0)
	var out transport.Outgoing
	for range rapid.IntRange(1, 60).Draw(t, "packets") {
		now += units.Time(rapid.Int64Range(0, int64(units.Millisecond)).Draw(t, "wait"))
		in := draw(t, now)
		if _, err := e.Receive(now, &in); err != nil {
			refused++
		}
		for range 3 {
			e.Transmit(now, &out)
		}
		if at, ok := e.Deadline(); ok && at < now-units.Second {
			t.Fatalf("deadline %d ps long before %d ps", at, now)
		}
	}
	if got := e.Counters().BadPackets; got != refused {
		t.Fatalf("%d refused, %d counted", refused, got)
	}
}

// forgePacket draws a packet with any fields, as broken or hostile hosts may send.
func forgePacket(t *rapid.T, now units.Time) transport.Incoming {
	var b [transport.MaxHeader]byte
	in := transport.Incoming{At: now, Src: transport.HostID(rapid.IntRange(0, 2).Draw(t, "src")), CE: rapid.Bool().Draw(t, "ce")}
	conn, small := uint32(rapid.IntRange(0, 2).Draw(t, "conn")), rapid.Uint32Range(0, 25)
	stamp := rapid.OneOf(rapid.Int64(), rapid.Int64Range(int64(now-units.Millisecond), int64(now)))
	if rapid.Bool().Draw(t, "data") {
		d := wire.Data{
			Conn: conn, PSN: small.Draw(t, "psn"), Payload: units.Bytes(rapid.Int64Range(1, 1000).Draw(t, "payload")),
			Message: small.Draw(t, "message"), Offset: units.Bytes(rapid.Int64Min(0).Draw(t, "offset")),
			Size: units.Bytes(rapid.Int64Min(0).Draw(t, "size")), SentAt: units.Time(stamp.Draw(t, "sent")),
		}
		if rapid.Bool().Draw(t, "first") {
			d.Offset, d.Flags = 0, wire.Announce
		}
		d.Encode(b[:])
		in.Header, in.Payload = b[:wire.DataSize], d.Payload
		return in
	}
	a := wire.Ack{
		Nak: rapid.Bool().Draw(t, "nak"), Conn: conn, Expected: small.Draw(t, "expected"), PSN: small.Draw(t, "psn"),
		SentAt: units.Time(stamp.Draw(t, "sent")), OneWay: units.Time(rapid.Int64().Draw(t, "one way")),
		BaseRate: units.Bandwidth(rapid.Int64Min(0).Draw(t, "base rate")), Count: 1,
	}
	a.Encode(b[:])
	in.Header = b[:wire.AckSize]
	return in
}
