package ptp

import (
	"errors"
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// wire is a row of transparent bridges between node 0 and node 1, as a pair of paths. Each bridge has a clock of its own
// and holds what passes for a time that it draws; what its neighbours ask of it, it answers.
type wire struct {
	bridges []*Transparent
	skew    []float64
	random  *rand.Rand
	link    units.Time
	held    units.Time
}

func (w *wire) local(b int, t units.Time) units.Time {
	return t + units.Time(float64(t)*w.skew[b]) + units.Time(b)*units.Second
}

// Delay implements testnet.Path for messages end to end: through every bridge in turn.
func (w *wire) Delay(t units.Time, m *clocksync.Outgoing) units.Time {
	at := t + w.link
	for k := range w.bridges {
		b, in := k, 0
		if m.To == 0 {
			b, in = len(w.bridges)-1-k, 1
		}
		if w.bridges[b].Receive(w.local(b, at), in, m.Data[:m.N]) != nil {
			return 1 << 50 // refused: it never comes
		}
		at += units.Time(float64(w.held) * w.random.ExpFloat64())
		if port, _, ok := w.bridges[b].Transmit(w.local(b, at), m.Data[:]); !ok || port != 1-in {
			return 1 << 50
		}
		at += w.link
	}
	return at - t
}

// bridgedWorld is a pair with bridges between. With peer delay every message passes the world hop by hop, since each
// link is measured by itself: the bridges are nodes from 2 on.
func bridgedWorld(t *testing.T, peer bool, n int) (*testnet.World, []*Transparent) {
	t.Helper()
	p := pair(nil)
	p.stamp = 2 * units.Nanosecond
	if !peer {
		shared := &wire{random: rand.New(rand.NewPCG(1, 1)), link: 500 * units.Nanosecond, held: 5 * units.Microsecond}
		for i := range n {
			b, err := NewTransparent(IdentityOf(clocksync.Node(100+i)), 2, false, 0)
			if err != nil {
				t.Fatal(err)
			}
			shared.bridges = append(shared.bridges, b)
			shared.skew = append(shared.skew, 50e-6*float64(1-i))
		}
		p.path = func(*rand.Rand) testnet.Path { return shared }
		return p.make(t), shared.bridges
	}
	cfg := p.config(t, 2+n)
	var bridges []*Transparent
	end := cfg.Start
	cfg.Start = func(node clocksync.Node) clocksync.Protocol {
		if node >= 2 {
			b, err := NewTransparent(IdentityOf(node), 2, true, ms)
			if err != nil {
				t.Fatal(err)
			}
			bridges = append(bridges, b)
			side := [2]clocksync.Node{node - 1, node + 1}
			if node == 2 {
				side[0] = 0
			}
			if int(node) == 1+n {
				side[1] = 1
			}
			return &bridgeNode{b: b, side: side}
		}
		_ = end
		s := clocksync.Setup{Self: node, Nodes: 2 + n, Seed: 7}
		c := Default(s, 0)
		c.PeerDelay = true
		c.Ports = [][]clocksync.Node{{2}}
		if node == 1 {
			c.Ports = [][]clocksync.Node{{clocksync.Node(1 + n)}}
		}
		clock, err := New(s, c)
		if err != nil {
			t.Fatal(err)
		}
		return clock
	}
	cfg.Path = func(*rand.Rand) testnet.Path { return oneWay{700 * units.Nanosecond} }
	return testnet.New(cfg), bridges
}

// bridgeNode is a bridge as a node of the world: its stamps are those of its own free-running clock.
type bridgeNode struct {
	b    *Transparent
	side [2]clocksync.Node
}

func (n *bridgeNode) Start(now clocksync.Now) { n.b.Start(now.Mono) }
func (n *bridgeNode) Receive(now clocksync.Now, m *clocksync.Message) error {
	port := 0
	if m.From == n.side[1] {
		port = 1
	}
	return n.b.Receive(now.Mono, port, m.Data)
}
func (n *bridgeNode) Transmit(now clocksync.Now, m *clocksync.Outgoing) bool {
	port, size, ok := n.b.Transmit(now.Mono, m.Data[:])
	if !ok {
		return false
	}
	m.To, m.N, m.Port = n.side[port], size, clocksync.GeneralPort
	if Type(m.Data[0] & 0xf).Event() {
		m.Port = clocksync.EventPort
	}
	return true
}
func (n *bridgeNode) Sent(clocksync.Now, uint32, units.Time) {}
func (n *bridgeNode) Deadline() (units.Time, bool)           { return n.b.Deadline() }
func (n *bridgeNode) Advance(now clocksync.Now)              { n.b.Advance(now.Mono) }
func (n *bridgeNode) Correction() clocksync.Correction       { return clocksync.Correction{} }
func (n *bridgeNode) Counters() clocksync.Counters           { return clocksync.Counters{} }

func TestBridgesRefuse(t *testing.T) {
	b, err := NewTransparent(9, 2, true, ms)
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
		"for another bridge":     {Message{Type: PDelayResp, Requesting: PortIdentity{8, 1}}, ErrForeign},
		"not asked":              {Message{Type: PDelayResp, Requesting: PortIdentity{9, 1}}, ErrStale},
		"a Follow_Up of nothing": {Message{Type: PDelayRespFollowUp, Requesting: PortIdentity{9, 1}}, ErrStale},
	} {
		if err := say(c.m); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := say(Message{Type: Sync}); err != nil || len(b.out) != 0 {
		t.Errorf("a Sync passed a link whose delay nobody knows: %v", err)
	}
	if b.Receive(0, 5, make([]byte, 44)) == nil || b.Receive(0, 0, nil) == nil || b.Refused() != 6 {
		t.Errorf("refused %d", b.Refused())
	}
	for range 200 {
		_ = say(Message{Type: Announce})
	}
	if len(b.out) > 200 || say(Message{Type: Announce}) == nil {
		t.Error("a queue that nobody empties grows for ever")
	}
	if _, err := NewTransparent(9, 2, true, 0); err == nil {
		t.Error("an interval of 0 was taken")
	}
}
