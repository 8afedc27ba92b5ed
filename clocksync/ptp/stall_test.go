package ptp

import (
	"errors"
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// An Announce that has passed 255 clocks loops, and one with the clock's own identity has come back
// (IEEE 1588-2019, clause 9.3.2.5).
func TestAnnouncesThatGoInACircle(t *testing.T) {
	c, _ := follower(t, nil)
	c.parent = parent{}
	other := IdentityOf(0)
	for i, k := range []struct {
		set  DataSet
		want error
	}{
		{DataSet{Grandmaster: other, Steps: maxSteps}, ErrRange},
		{DataSet{Grandmaster: other, Steps: maxSteps + 1}, ErrRange},
		{DataSet{Grandmaster: c.id}, ErrRange},
		{DataSet{}, ErrRange},
		{DataSet{Grandmaster: other, Steps: maxSteps - 1}, nil},
	} {
		m := Message{Type: Announce, Source: PortIdentity{other, 1}, Sequence: uint16(i), Announce: k.set}
		if err := c.onAnnounce(atTrueTime(units.Time(i)*ms), &c.peers[0], &m); !errors.Is(err, k.want) {
			t.Errorf("%+v: %v, want %v", k.set, err, k.want)
		}
	}
	if len(c.ports[0].foreign) != 1 {
		t.Errorf("%d masters are known, want the last", len(c.ports[0].foreign))
	}
}

// stalling is a protocol whose process is stalled for a while: it is not called, and afterwards it
// receives all messages at once, late, as from a socket.
type stalling struct {
	*Clock
	from, until units.Time // by the monotonic clock
	waits       []clocksync.Message
}

// stalled reports whether the process is stalled now.
func (s *stalling) stalled(now clocksync.Now) bool { return now.Mono >= s.from && now.Mono < s.until }

func (s *stalling) Receive(now clocksync.Now, m *clocksync.Message) error {
	if s.stalled(now) {
		k := *m
		k.Data = append([]byte(nil), m.Data...)
		s.waits = append(s.waits, k)
		return nil
	}
	s.catchUp(now)
	return s.Clock.Receive(now, m)
}

// catchUp hands the protocol the messages that arrived during the stall.
func (s *stalling) catchUp(now clocksync.Now) {
	for _, k := range s.waits {
		_ = s.Clock.Receive(now, &k)
	}
	s.waits = nil
}

func (s *stalling) Transmit(now clocksync.Now, out *clocksync.Outgoing) bool {
	return !s.stalled(now) && s.Clock.Transmit(now, out)
}

func (s *stalling) Deadline() (units.Time, bool) {
	at, ok := s.Clock.Deadline()
	if at >= s.from && at < s.until {
		at = s.until
	}
	return at, ok
}

func (s *stalling) Advance(now clocksync.Now) {
	if !s.stalled(now) {
		s.catchUp(now)
		s.Clock.Advance(now)
	}
}

// A process that is stalled for 60 ms keeps its state: no node gets a wrong time, missed messages
// are not sent late, and its bound holds throughout, at the master and at the slave.
func TestProcessThatStalls(t *testing.T) {
	for who := range clocksync.Node(2) {
		p := pairOver(nil)
		p.stamp = 5 * units.Nanosecond
		cfg := p.config(t, 2)
		start := cfg.Start
		cfg.Start = func(n clocksync.Node) clocksync.Protocol {
			c := start(n)
			if n == who {
				return &stalling{Clock: c.(*Clock), from: 300 * ms, until: 360 * ms}
			}
			return c
		}
		sent, burst := map[units.Time]int{}, 0
		cfg.OnWire = func(at units.Time, from clocksync.Node, m *clocksync.Outgoing) {
			if from == who && Type(m.Data[0]) == Sync { // pending stamps arrive late
				sent[at/ms]++
				burst = max(burst, sent[at/ms])
			}
		}
		w := testnet.New(cfg)
		var worst units.Time
		w.Every(200*ms, ms/4, func() {
			e := w.Time(1) - w.Time(0)
			worst = max(worst, e, -e)
			if b, ok := w.Bound(1); ok && max(e, -e) > b {
				t.Errorf("node %d stalls: error %v outside of %v at %v", who, e, b, w.Now)
			}
		})
		w.Run(600 * ms)
		if worst > 300*units.Nanosecond || burst > 2 {
			t.Errorf("node %d stalls: error up to %v, up to %d Syncs in a millisecond", who, worst, burst)
		}
	}
}
