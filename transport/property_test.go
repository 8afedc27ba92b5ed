package transport_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/internal/testnet"
	"weft/units"
)

// ledger checks what arrives against what was sent: every byte of every message exactly once and in order.
type ledger struct {
	t      *rapid.T
	sent   map[transport.ConnID][]transport.Message
	placed map[transport.ConnID]units.Bytes // of the message that is arriving
	got    map[transport.ConnID]int         // messages complete
	acked  map[transport.ConnID]int
}

func newLedger(t *rapid.T) *ledger {
	return &ledger{
		t: t, sent: map[transport.ConnID][]transport.Message{}, placed: map[transport.ConnID]units.Bytes{},
		got: map[transport.ConnID]int{}, acked: map[transport.ConnID]int{},
	}
}

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

// Whatever the network loses, doubles and reorders, up to 30 % each: every byte exactly once, in order, and an end.
func TestEveryByteOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := func(name string) float64 { return rapid.Float64Range(0, 0.3).Draw(t, name) }
		loss, copies, hold := share("loss"), share("copies"), share("reorder")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		cfg := testnet.Config{
			Hosts: 3, Line: 10 * units.Gbps, Delay: units.Microsecond, MTU: 1000, Buffer: 100 * units.KB,
			Fault: func(units.Time, *testnet.Packet) (f testnet.Fault) {
				f.Drop = rng.Float64() < loss
				if rng.Float64() < copies {
					f.Copies = 1 + rng.IntN(2)
				}
				if rng.Float64() < hold {
					f.Hold = units.Time(rng.Int64N(int64(30 * units.Microsecond)))
				}
				return f
			},
		}
		net, err := testnet.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		l := newLedger(t)
		net.OnData = func(_ units.Time, p *testnet.Packet, pl transport.Placement, err error) {
			if err != nil {
				t.Fatalf("%+v: %v", p, err)
			}
			l.place(pl)
		}
		for h := range net.Events {
			net.Events[h] = l.event
		}
		drawTraffic(t, net, l)
		if net.Run(1000 * units.Second) {
			t.Fatalf("no end: %+v", net.Hosts[0].Counters())
		}
		for c, sent := range l.sent {
			if l.got[c] != len(sent) || l.acked[c] != len(sent) {
				t.Fatalf("connection %d: %d sent, %d received, %d acknowledged", c, len(sent), l.got[c], l.acked[c])
			}
		}
		checkQuiet(t, net)
	})
}

// drawTraffic opens connections between the three hosts and queues messages on them, now and later.
func drawTraffic(t *rapid.T, net *testnet.Net, l *ledger) {
	p := pc4.Defaults()
	p.BaseRate = rapid.SampledFrom([]string{pc4.Observed, pc4.Controller, pc4.Off}).Draw(t, "base rate")
	for c := range transport.ConnID(rapid.IntRange(1, 4).Draw(t, "connections")) {
		src, dst := int(c)%3, (int(c)+1+int(c)/3)%3
		if err := net.Connect(transport.Spec{
			ID: c, Src: transport.HostID(src), Dst: transport.HostID(dst), Kind: "pc4", PC4: p,
			RTOMin: 50 * units.Microsecond, Tries: 1000,
		}); err != nil {
			t.Fatal(err)
		}
		at := units.Time(0)
		for i := range uint32(rapid.IntRange(1, 4).Draw(t, "messages")) {
			m := transport.Message{ID: i * 3, Tag: i, Size: units.Bytes(rapid.Int64Range(1, 20000).Draw(t, "size"))}
			at += units.Time(rapid.Int64Range(0, int64(100*units.Microsecond)).Draw(t, "gap"))
			l.sent[c] = append(l.sent[c], m)
			net.At(at, func() {
				if err := net.Send(src, c, m); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// checkQuiet wants nothing to be pending and the books to balance.
func checkQuiet(t *rapid.T, net *testnet.Net) {
	if err := net.CheckConservation(); err != nil {
		t.Fatal(err)
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
