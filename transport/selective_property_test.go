package transport_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport"
	"weft/transport/cc/strack"
	"weft/transport/wire"
	"weft/units"
)

// book checks that every byte of every message arrives exactly once, in any order.
type book struct {
	t     fataler
	sent  map[transport.ConnID][]transport.Message
	seen  map[transport.ConnID]map[uint32][]bool // by message, by packet
	got   map[transport.ConnID]map[uint32]bool   // messages complete
	acked map[transport.ConnID]int
	mtu   units.Bytes
}

// newBook returns an empty book.
func newBook(t fataler, mtu units.Bytes) *book {
	return &book{
		t: t, sent: map[transport.ConnID][]transport.Message{}, seen: map[transport.ConnID]map[uint32][]bool{},
		got: map[transport.ConnID]map[uint32]bool{}, acked: map[transport.ConnID]int{}, mtu: mtu,
	}
}

func (b *book) send(net *testNet, at units.Time, src int, c transport.ConnID, m transport.Message) {
	if b.seen[c] == nil {
		b.seen[c], b.got[c] = map[uint32][]bool{}, map[uint32]bool{}
	}
	b.sent[c] = append(b.sent[c], m)
	b.seen[c][m.ID] = make([]bool, (m.Size+b.mtu-1)/b.mtu)
	net.At(at, func() {
		if err := net.Send(src, c, m); err != nil {
			b.t.Fatalf("%v", err)
		}
	})
}

func (b *book) place(pl transport.Placement) {
	if pl.Payload == 0 {
		return
	}
	seen, ok := b.seen[pl.Conn][pl.Message]
	k := int(pl.Offset / b.mtu)
	if !ok || pl.Offset%b.mtu != 0 || k >= len(seen) || pl.Payload != min(b.mtu, pl.Size-pl.Offset) || seen[k] {
		b.t.Fatalf("placed %+v", pl)
	}
	seen[k] = true
}

func (b *book) event(e transport.Event) {
	switch e.Kind {
	case transport.MessageReceived:
		for k, there := range b.seen[e.Conn][e.Message.ID] {
			if !there {
				b.t.Fatalf("received %+v without packet %d", e, k)
			}
		}
		if b.got[e.Conn][e.Message.ID] {
			b.t.Fatalf("received twice: %+v", e)
		}
		b.got[e.Conn][e.Message.ID] = true
	case transport.MessageAcked:
		n := b.acked[e.Conn]
		if e.Message != b.sent[e.Conn][n] || !b.got[e.Conn][e.Message.ID] {
			b.t.Fatalf("acknowledged %+v, received %v", e, b.got[e.Conn][e.Message.ID])
		}
		b.acked[e.Conn]++
	default:
		b.t.Fatalf("%+v", e)
	}
}

// finish runs the network to its end and closes the books.
func (b *book) finish(net *testNet) {
	if net.Run(1000 * units.Second) {
		b.t.Fatalf("no end: %+v", net.Hosts[0].Counters())
	}
	for c, sent := range b.sent {
		if len(b.got[c]) != len(sent) || b.acked[c] != len(sent) {
			b.t.Fatalf("connection %d: %d sent, %d received, %d acknowledged", c, len(sent), len(b.got[c]), b.acked[c])
		}
	}
	checkQuiet(b.t, net)
}

// selecting are transports with selective repeat, by default or by choice.
var selecting = []string{"strack", "spray", "roce", "pc4", "swift", "hpcc"}

// selectiveRepeat returns s as a connection of a transport with selective repeat.
func selectiveRepeat(kind string, s transport.Spec) transport.Spec {
	if s.Kind = kind; transport.FactsOf(kind).Selective {
		s.CC = params.Defaults[strack.Params]()
		return s
	}
	configure(&s, map[string]string{"recovery": transport.SelectiveRepeat})
	return s
}

// configure sets s up by the defaults of its transport's section, with other values of some keys.
func configure(s *transport.Spec, set map[string]string) {
	section, _, _ := transport.SectionOf(s.Kind)
	params.SetDefaults(section)
	for _, k := range section.Keys() {
		if text, ok := set[k.Name]; ok {
			_, _ = k.Value.Set(text, false)
		}
	}
	tries := s.Tries
	section.Set(s)
	s.Tries = tries
}

// lossy is a star with faults for selective repeat, and the book of what happens on it. Each packet
// has a path of its own, so that half of them overtake others anyway.
type lossy struct {
	*testNet
	*book
	rng   *rand.Rand
	moved map[transport.ConnID]units.Time // when a connection made progress, or the network kept it from that, last
	rto   map[transport.ConnID]units.Time
	stall map[transport.ConnID]units.Time // longest time without either while it had something to do
	whole int                             // packets that the network did not drop and could trim
}

// step notes that connection c made progress now, or could not.
func (l *lossy) step(c transport.ConnID) {
	if l.acked[c] < len(l.sent[c]) {
		l.stall[c] = max(l.stall[c], l.Now-l.moved[c])
	}
	l.moved[c] = l.Now
}

// newLossy returns a star of three hosts whose links have faults.
func newLossy(t fataler, x faults, seed uint64, mtu units.Bytes) *lossy {
	l := &lossy{
		book: newBook(t, mtu), rng: rand.New(rand.NewPCG(seed, 0)),
		moved: map[transport.ConnID]units.Time{}, stall: map[transport.ConnID]units.Time{}, rto: map[transport.ConnID]units.Time{},
	}
	net, err := newNet(netConfig{
		Hosts: 3, Line: 10 * units.Gbps, Delay: units.Microsecond, MTU: mtu, INT: telemetryApart,
		Mark: func(queued units.Bytes) bool { return queued > 5*units.KB },
		Fault: func(_ units.Time, p *netPacket) (f netFault) {
			f.Drop = l.rng.Float64() < x.loss
			if l.rng.Float64() < x.copies {
				f.Copies = 1 + l.rng.IntN(2)
			}
			if l.rng.Float64() < x.hold {
				f.Hold = units.Time(l.rng.Int64N(int64(30 * units.Microsecond)))
			}
			if !f.Drop && wire.PeekKeep(p.Header) > 0 {
				l.whole++
			}
			if x.trim > 0 && l.rng.Float64() < x.trim {
				f.Trim, f.Last = true, l.rng.IntN(2) == 0
			}
			if f.Drop || f.Trim {
				l.step(connectionOf(p))
			}
			return f
		},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	l.testNet = net
	net.OnData = func(_ units.Time, p *netPacket, pl transport.Placement, err error) {
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		if pl.Payload > 0 {
			l.step(pl.Conn)
		}
		l.place(pl)
	}
	for h := range net.Events {
		net.Events[h] = func(e transport.Event) {
			l.step(e.Conn)
			l.event(e)
		}
	}
	return l
}

// connectionOf returns the connection of a packet, for any header.
func connectionOf(p *netPacket) transport.ConnID {
	return transport.ConnID(p.Header[7]) // of few connections
}

// connect opens a connection with selective repeat between two hosts.
func (l *lossy) connect(c transport.ConnID, src, dst int, kind string) {
	s := selectiveRepeat(kind, transport.Spec{ID: c, Src: transport.HostID(src), Dst: transport.HostID(dst), Tries: 1000})
	l.rto[c] = transport.DefaultRTOMin
	if err := l.Connect(s); err != nil {
		l.t.Fatalf("%v", err)
	}
}

// queue sends a message on connection c at an instant.
func (l *lossy) queue(at units.Time, src int, c transport.ConnID, m transport.Message) {
	l.At(at, func() { l.moved[c] = l.Now })
	l.send(l.testNet, at, src, c, m)
}

// close runs to the end and checks that no stall exceeds three timeouts: a connection with
// something to do waits no longer unless the network loses its packets.
func (l *lossy) close() {
	l.finish(l.testNet)
	for c, stall := range l.stall {
		if rto := l.rto[c]; stall > 3*rto {
			l.t.Fatalf("connection %d stalled for %v with timeouts of %v", c, stall, rto)
		}
	}
}

// Whatever the network loses, duplicates and reorders, up to 30 % each: every byte arrives exactly
// once, the run ends, and no stall exceeds three timeouts.
func TestSelectiveRepeatDeliversEveryByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := func(name string) float64 { return rapid.Float64Range(0, 0.3).Draw(t, name) }
		f := faults{loss: share("loss"), copies: share("copies"), hold: share("reorder")}
		drawMessages(t, f, func(l *lossy, c transport.ConnID, src, dst int) {
			l.connect(c, src, dst, rapid.SampledFrom(selecting).Draw(t, "kind"))
		})
	})
}

// drawMessages runs drawn messages on up to four connections, which connect opens, between three
// hosts.
func drawMessages(t *rapid.T, f faults, connect func(l *lossy, c transport.ConnID, src, dst int)) {
	l := newLossy(t, f, rapid.Uint64().Draw(t, "seed"), 1000)
	for c := range transport.ConnID(rapid.IntRange(1, 4).Draw(t, "connections")) {
		src, dst := int(c)%3, (int(c)+1+int(c)/3)%3
		connect(l, c, src, dst)
		at := units.Time(0)
		for i := range uint32(rapid.IntRange(1, 6).Draw(t, "messages")) {
			at += units.Time(rapid.Int64Range(0, int64(100*units.Microsecond)).Draw(t, "gap"))
			l.queue(at, src, c, transport.Message{ID: i * 3, Tag: i, Size: units.Bytes(rapid.Int64Range(1, 50000).Draw(t, "size"))})
		}
	}
	l.close()
}

// The same at the highest fault rates, with messages of hundreds of packets in both directions.
func TestSelectiveRepeatUnderHeavyLoss(t *testing.T) {
	for _, kind := range selecting {
		for seed := range uint64(5) {
			l := newLossy(t, faults{loss: 0.3, copies: 0.3, hold: 0.3}, seed, 1000)
			for c, ends := range [][2]int{{0, 1}, {1, 0}, {2, 1}} {
				l.connect(transport.ConnID(c), ends[0], ends[1], kind)
				for i := range uint32(3) {
					l.queue(0, ends[0], transport.ConnID(c), transport.Message{ID: i, Size: 300_000 + units.Bytes(i)})
				}
			}
			l.close()
			var c transport.Counters
			for _, e := range l.Hosts {
				c.Add(e.Counters())
			}
			t.Logf("%s %v: stalls %v, %+v", kind, l.Now, l.stall, c)
		}
	}
}
