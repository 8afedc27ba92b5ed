package ptp

import (
	"errors"
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/internal/fuzztest"
	"weft/units"
)

// chain is a row of transparent clocks between node 0 and node 1, as a pair of paths. Each holds a
// message for a random time and measures that by its own clock. With bridges they are peer-to-peer.
type chain struct {
	bridges []*Bridge // nil: end to end
	skew    []float64 // of each clock
	random  *rand.Rand
	link    units.Time
	held    units.Time
}

// Delay implements testnet.Path for messages from end to end.
func (w *chain) Delay(_ units.Time, m *clocksync.Outgoing) units.Time {
	total := w.link
	for k := range w.skew {
		b, in := k, 0
		if m.To == 0 {
			b, in = len(w.skew)-1-k, 1
		}
		if w.bridges != nil && !w.bridges[b].Pass(in, m.Data[:m.N]) {
			return 1 << 50 // it is not forwarded
		}
		held := units.Time(float64(w.held) * w.random.ExpFloat64())
		if m.Port == clocksync.EventPort {
			clocksync.AddResidence(m.Data[:m.N], held+units.Time(float64(held)*w.skew[b]))
		}
		total += held + w.link
	}
	return total
}

// bridgedWorld returns a pair of nodes with n transparent clocks in between, which are off by 50
// ppm. With peer they are the nodes from 2 on, and measure the links between them and to the pair.
func bridgedWorld(t *testing.T, peer bool, n int) (*testnet.World, *chain) {
	t.Helper()
	p := pairOver(nil)
	p.stamp = 2 * units.Nanosecond
	w := &chain{random: rand.New(rand.NewPCG(1, 1)), link: 500 * units.Nanosecond, held: 5 * units.Microsecond}
	for i := range n {
		w.skew = append(w.skew, 50e-6*float64(1-i))
	}
	if !peer {
		p.path = func(*rand.Rand) testnet.Path { return w }
		return p.world(t), w
	}
	cfg := p.config(t, 2+n)
	pairs := cfg.Oscillator
	cfg.Oscillator = func(node clocksync.Node) testnet.Oscillator {
		if node < 2 {
			return pairs(node)
		}
		return testnet.Oscillator{Offset: units.Second, Skew: w.skew[node-2], Jitter: 2 * units.Nanosecond}
	}
	ends := [2]clocksync.Node{2, clocksync.Node(1 + n)}
	cfg.Start = func(node clocksync.Node) clocksync.Protocol {
		if node >= 2 {
			b, err := NewBridge(IdentityOf(node), 2, ms)
			if err != nil {
				t.Fatal(err)
			}
			w.bridges = append(w.bridges, b)
			side := [2]clocksync.Node{node - 1, node + 1}
			if node == ends[0] {
				side[0] = 0
			}
			if node == ends[1] {
				side[1] = 1
			}
			return &bridgeNode{b: b, side: side}
		}
		s := clocksync.Setup{Self: node, Nodes: 2, Seed: 7}
		c := Default(s, 0)
		c.PeerDelay, c.Bridge = true, ends[node]
		clock, err := New(s, c)
		if err != nil {
			t.Fatal(err)
		}
		return clock
	}
	cfg.PathOf = func(from, to clocksync.Node, _ *rand.Rand) testnet.Path {
		if from < 2 && to < 2 {
			return w
		}
		return oneWay{w.link}
	}
	return testnet.New(cfg), w
}

// bridgeNode is the bridge of a switch as a node of the world.
type bridgeNode struct {
	b    *Bridge
	side [2]clocksync.Node
}

func (n *bridgeNode) Start(now clocksync.Now) { n.b.Start(now.Mono) }
func (n *bridgeNode) Receive(now clocksync.Now, m *clocksync.Message) error {
	link := 0
	if m.From == n.side[1] {
		link = 1
	}
	return n.b.Receive(now.Mono, link, m.Data)
}
func (n *bridgeNode) Transmit(now clocksync.Now, m *clocksync.Outgoing) bool {
	link, size, ok := n.b.Transmit(now.Mono, m.Data[:])
	if !ok {
		return false
	}
	m.To, m.N, m.Port = n.side[link], size, clocksync.EventPort
	return true
}
func (n *bridgeNode) Sent(clocksync.Now, uint32, units.Time) {}
func (n *bridgeNode) Deadline() (units.Time, bool)           { return n.b.Deadline() }
func (n *bridgeNode) Advance(now clocksync.Now)              { n.b.Advance(now.Mono) }
func (n *bridgeNode) Correction() clocksync.Correction       { return clocksync.Correction{} }
func (n *bridgeNode) Counters() clocksync.Counters           { return n.b.Counters() }

// A chain of transparent clocks between master and slave, which err by 50 ppm: linuxptp-testsuite
// allows 30 ns.
func TestTransparentChain(t *testing.T) {
	for _, peer := range []bool{false, true} {
		w, c := bridgedWorld(t, peer, 3)
		var worst units.Time
		w.Every(300*ms, ms, func() { e := w.Time(1) - w.Time(0); worst = max(worst, e, -e) })
		w.Run(800 * ms)
		if worst > 30*units.Nanosecond {
			t.Errorf("peer delay %v: error up to %v; %+v %v", peer, worst, w.Protocol(1).Counters(), w.Errors)
		}
		for i, b := range c.bridges {
			if k := b.Counters(); k.Stale+k.Foreign+k.Malformed > 0 || k.Sent < 1500 || k.Filtered > 10 {
				t.Errorf("bridge %d: %+v", i, k)
			}
			for link := range 2 {
				if d, ok := b.Delay(link); !ok || d < c.link-5*units.Nanosecond || d > c.link+5*units.Nanosecond {
					t.Errorf("bridge %d measured link %d as %v, it is %v", i, link, d, c.link)
				}
			}
		}
	}
}

// When a link becomes longer, half of the values of the median are new after ten exchanges.
func TestBridgesFollowALink(t *testing.T) {
	b, err := NewBridge(9, 1, ms)
	if err != nil {
		t.Fatal(err)
	}
	b.Start(0)
	delay := units.Microsecond
	at := units.Time(0)
	for i := range 20 {
		if i == 10 {
			delay = 3 * units.Microsecond
		}
		b.Advance(at)
		var buf [MaxSize]byte
		_, n, ok := b.Transmit(at, buf[:])
		if !ok {
			t.Fatal("no Pdelay_Req")
		}
		var q Message
		if err := q.Decode(buf[:n]); err != nil || q.Type != PDelayReq {
			t.Fatalf("%+v: %v", q, err)
		}
		a := Message{Type: PDelayResp, Source: PortIdentity{1, 1}, Sequence: q.Sequence, Requesting: q.Source}
		if err := b.Receive(at+2*delay, 0, buf[:a.Encode(buf[:])]); err != nil {
			t.Fatal(err)
		}
		if d, ok := b.Delay(0); i == 9 && d != units.Microsecond || i == 19 && d != delay || !ok {
			t.Errorf("exchange %d: a link of %v was measured as %v", i, delay, d)
		}
		at += ms
	}
}

// A bridge answers in one step: the correctionField holds the turnaround and the correction of the
// request.
func TestBridgesAnswer(t *testing.T) {
	b, err := NewBridge(9, 2, ms)
	if err != nil {
		t.Fatal(err)
	}
	b.Start(0)
	q := Message{Type: PDelayReq, Domain: 3, Source: PortIdentity{1, 1}, Sequence: 77, Correction: clocksync.Scaled(250)}
	var buf [MaxSize]byte
	if err := b.Receive(1000, 1, buf[:q.Encode(buf[:])]); err != nil {
		t.Fatal(err)
	}
	link, n, ok := b.Transmit(4000, buf[:])
	var a Message
	if err := a.Decode(buf[:n]); err != nil || !ok || link != 1 {
		t.Fatalf("link %d %v: %v", link, ok, err)
	}
	want := Message{Type: PDelayResp, Domain: 3, Flags: FlagUnicast, Source: PortIdentity{9, 2}, Sequence: 77, LogInterval: noInterval,
		Requesting: PortIdentity{1, 1}, Correction: clocksync.Scaled(250) + clocksync.Scaled(3000)}
	if a != want {
		t.Errorf("%+v\n%+v", a, want)
	}
}

func TestBridgesRefuse(t *testing.T) {
	b, err := NewBridge(9, 2, ms)
	if err != nil {
		t.Fatal(err)
	}
	b.Start(0)
	say := func(m Message) error {
		var buf [MaxSize]byte
		return b.Receive(0, 0, buf[:m.Encode(buf[:])])
	}
	for name, c := range map[string]struct {
		m    Message
		want error
	}{
		"the other mechanism":    {Message{Type: DelayReq}, ErrForeign},
		"of another bridge":      {Message{Type: PDelayResp, Requesting: PortIdentity{8, 1}}, ErrForeign},
		"of another link":        {Message{Type: PDelayResp, Requesting: PortIdentity{9, 2}}, ErrForeign},
		"not asked":              {Message{Type: PDelayResp, Requesting: PortIdentity{9, 1}}, ErrStale},
		"a Follow_Up of nothing": {Message{Type: PDelayRespFollowUp, Requesting: PortIdentity{9, 1}}, ErrStale},
		"a negative correction":  {Message{Type: PDelayReq, Correction: -1 << 20}, ErrRange},
	} {
		if err := say(c.m); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if b.Receive(0, 5, make([]byte, 44)) == nil || b.Receive(0, 0, nil) == nil {
		t.Error("garbage was taken")
	}
	if k := b.Counters(); k.Foreign != 3 || k.Stale != 2 || k.Malformed != 3 || k.Received != 0 {
		t.Errorf("%+v", k)
	}
	var buf [MaxSize]byte
	m := Message{Type: Sync}
	if n := m.Encode(buf[:]); b.Pass(0, buf[:n]) {
		t.Error("a Sync passed a link whose delay nobody knows")
	}
	m = Message{Type: FollowUp}
	if n := m.Encode(buf[:]); !b.Pass(0, buf[:n]) || !b.Pass(0, nil) {
		t.Error("what is no Sync was held back")
	}
	for range 200 {
		_ = say(Message{Type: PDelayReq})
	}
	if b.out.Len() > 20 || !errors.Is(say(Message{Type: PDelayReq}), ErrStale) {
		t.Error("a queue that nobody empties grows for ever")
	}
	if _, err := NewBridge(9, 2, 0); err == nil {
		t.Error("an interval of 0 was taken")
	}
}

// Negative delays are not used, nor two-step answers with a part that is missing or repeated.
func TestBridgesMeasureWholeExchanges(t *testing.T) {
	b, err := NewBridge(9, 1, ms)
	if err != nil {
		t.Fatal(err)
	}
	b.Start(0)
	me := PortIdentity{9, 1}
	var buf [MaxSize]byte
	ask := func(at units.Time) uint16 {
		b.Advance(at)
		_, n, _ := b.Transmit(at, buf[:])
		var q Message
		if err := q.Decode(buf[:n]); err != nil {
			t.Fatal(err)
		}
		return q.Sequence
	}
	stamp := func(at units.Time) Timestamp { s, _ := stampOf(at); return s }
	hear := func(at units.Time, m Message) error { return b.Receive(at, 0, buf[:m.Encode(buf[:])]) }
	one := ask(0)
	response := Message{Type: PDelayResp, Flags: FlagTwoStep, Sequence: one, Requesting: me, Timestamp: stamp(5 * units.Microsecond)}
	if err := hear(4*units.Microsecond, response); err != nil {
		t.Fatal(err)
	}
	if err := hear(4*units.Microsecond, response); !errors.Is(err, ErrStale) {
		t.Errorf("a response came twice: %v", err)
	}
	two := ask(ms)
	followUp := Message{Type: PDelayRespFollowUp, Sequence: one, Requesting: me, Timestamp: stamp(6 * units.Microsecond)}
	if err := hear(ms, followUp); !errors.Is(err, ErrStale) {
		t.Errorf("a Follow_Up of the exchange before: %v", err)
	}
	response.Sequence, followUp.Sequence = two, two
	if err := hear(ms+4*units.Microsecond, response); err != nil {
		t.Fatal(err)
	}
	if err := hear(ms+5*units.Microsecond, followUp); err != nil {
		t.Fatal(err)
	}
	if d, ok := b.Delay(0); !ok || d != 1500*units.Nanosecond { // (4 us round trip - 1 us turnaround) / 2
		t.Errorf("%v %v", d, ok)
	}
	three := ask(2 * ms)
	response.Sequence, followUp.Sequence, followUp.Timestamp = three, three, stamp(50*units.Microsecond)
	if err := errors.Join(hear(2*ms+4*units.Microsecond, response), hear(2*ms+5*units.Microsecond, followUp)); err != nil {
		t.Fatal(err)
	}
	if d, _ := b.Delay(0); d != 1500*units.Nanosecond || b.Counters().Filtered != 1 {
		t.Errorf("a turnaround longer than the exchange: %v, %+v", d, b.Counters())
	}
	response.Sequence, response.Flags = ask(3*ms), 0
	if err := hear(3*ms+21*units.Second, response); err != nil {
		t.Fatal(err)
	}
	if d, _ := b.Delay(0); d != 1500*units.Nanosecond || b.Counters().Filtered != 2 {
		t.Errorf("an answer after 21 s: %v, %+v", d, b.Counters())
	}
	const again = 30 * units.Second
	response.Flags, response.Source, followUp.Source = FlagTwoStep, PortIdentity{3, 1}, PortIdentity{4, 1}
	four := ask(again)
	response.Sequence, response.Timestamp, followUp.Sequence, followUp.Timestamp = four, stamp(5*units.Second), four, stamp(units.Second)
	if err := hear(again+3*units.Microsecond, response); err != nil {
		t.Fatal(err)
	}
	if err := hear(again+3*units.Microsecond, followUp); !errors.Is(err, ErrForeign) {
		t.Errorf("a Follow_Up of another port: %v", err)
	}
	followUp.Source = response.Source
	if err := hear(again+3*units.Microsecond, followUp); err != nil {
		t.Fatal(err)
	}
	if d, _ := b.Delay(0); d != 1500*units.Nanosecond || b.Counters().Filtered != 3 {
		t.Errorf("an answer that left before the question came: %v, %+v", d, b.Counters())
	}
	response.Sequence, response.Flags, response.Correction = ask(again+ms), 0, clocksync.Scaled(5*units.Microsecond)
	if err := hear(again+ms+4900*units.Nanosecond, response); err != nil {
		t.Fatal(err)
	}
	if d, _ := b.Delay(0); d != 725*units.Nanosecond { // the median of 1.5 us and a value that noise makes negative
		t.Errorf("50 ns below 0: %v", d)
	}
	for k := range units.Time(maxSilent + 2) {
		ask(again + (2+k)*ms)
	}
	if d, ok := b.Delay(0); ok {
		t.Errorf("nobody answers any more, and the delay is %v", d)
	}
}

// exchanged makes a bridge of one link send a request at an instant and receive a one-step answer
// after a time, and returns the delay that it then has.
func (b *Bridge) exchanged(t *testing.T, at, after units.Time) (units.Time, bool) {
	t.Helper()
	b.Advance(at)
	var buf [MaxSize]byte
	var q Message
	if _, n, ok := b.Transmit(at, buf[:]); !ok || q.Decode(buf[:n]) != nil {
		t.Fatal("no Pdelay_Req")
	}
	a := Message{Type: PDelayResp, Source: PortIdentity{1, 1}, Sequence: q.Sequence, Requesting: q.Source}
	if err := b.Receive(at+after, 0, buf[:a.Encode(buf[:])]); err != nil {
		t.Fatal(err)
	}
	return b.Delay(0)
}

// An impossible delay is not used, even if nothing else is known. A single outlier is ignored.
// After five of ten outliers the delay has changed.
func TestBridgesLeaveDetoursAside(t *testing.T) {
	b, err := NewBridge(9, 1, ms)
	if err != nil {
		t.Fatal(err)
	}
	b.Start(0)
	if d, ok := b.exchanged(t, 0, 2*maxCorrection+2); ok || b.Counters().Filtered != 1 {
		t.Errorf("a link of %v", d)
	}
	begin := 30 * units.Second
	at := begin
	next := func(after units.Time) units.Time {
		d, ok := b.exchanged(t, at, after)
		if at += ms; !ok {
			t.Fatal("nothing is known")
		}
		return d
	}
	usual := units.Microsecond
	for range 3 {
		next(2 * usual)
	}
	next(2 * (usual + bridgeOutlier))
	if k := b.Counters(); k.Filtered != 1 {
		t.Errorf("a delay at the limit was left aside: %+v", k)
	}
	for range 4 {
		if d := next(2*(usual+bridgeOutlier) + 100*units.Nanosecond); d != usual {
			t.Errorf("a detour was used: %v", d)
		}
	}
	if k := b.Counters(); k.Filtered != 5 {
		t.Errorf("%+v", k)
	}
	for range 10 {
		next(40 * usual)
	}
	if d, _ := b.Delay(0); d != 20*usual {
		t.Errorf("a link that is longer is still measured as %v", d)
	}
}

// No message from a neighbour breaks a bridge or makes it measure a negative delay.
func FuzzBridge(f *testing.F) {
	corpus := fuzztest.New(f)
	for typ := range Type(16) {
		if typ.size() == 0 {
			continue
		}
		var buf [MaxSize]byte
		m := Message{Type: typ, Requesting: PortIdentity{9, 1}, Sequence: 1}
		corpus.Add(buf[:m.Encode(buf[:])], uint32(1000))
	}
	corpus.Fuzz(func(t *testing.T, data []byte, later uint32) {
		b, err := NewBridge(9, 2, ms)
		if err != nil {
			t.Fatal(err)
		}
		b.Start(0)
		b.Advance(ms)
		var out [MaxSize]byte
		for {
			if _, _, ok := b.Transmit(ms, out[:]); !ok {
				break
			}
		}
		at := ms + units.Time(later)
		_ = b.Receive(at, 0, data)
		b.Pass(1, data)
		for {
			if _, n, ok := b.Transmit(at, out[:]); !ok {
				break
			} else if new(Message).Decode(out[:n]) != nil {
				t.Fatalf("sent % x", out[:n])
			}
		}
		if d, ok := b.Delay(0); ok && (d < 0 || d > maxCorrection) {
			t.Fatalf("a link of %v", d)
		}
	})
}
