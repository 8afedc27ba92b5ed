package sim

import (
	"context"
	"errors"
	"testing"

	"weft/clocksync"
	"weft/transport"
	"weft/units"
)

// tickingHost is a host that wakes for ever, as one with a clock does, and whose work never
// progresses.
type tickingHost struct {
	*fake
	next units.Time
	rest bool
}

func (k *tickingHost) Deadline() (units.Time, bool)    { return k.next, true }
func (k *tickingHost) Advance(now units.Time)          { k.next = now + units.Millisecond }
func (k *tickingHost) Done() bool                      { return false }
func (k *tickingHost) Resting() bool                   { return k.rest }
func (k *tickingHost) Progress() (done, _ units.Bytes) { return 0, 0 }

// A host that goes on by itself for ever hides that nothing else does; the run ends all the same.
func TestClocksDoNotHideAStall(t *testing.T) {
	for _, rest := range []bool{true, false} {
		hosts := []*tickingHost{{fake: newFake(0, 1, 0, 1), rest: rest}, {fake: newFake(1, 0, 0, 1), rest: true}}
		s, err := New(star(2, fast), hosts, Options{Stall: 10 * units.Millisecond, Limit: units.Second})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Run(context.Background())
		var stall *StallError
		if errors.As(err, &stall) != rest || !rest && !errors.Is(err, ErrLimit) {
			t.Errorf("resting %v: %v", rest, err)
		}
	}
}

// A run is stopped where ticks go on and hardly anything happens.
func TestCancelWithFewEvents(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	hosts := []*tickingHost{{fake: newFake(0, 1, 0, 1)}, {fake: newFake(1, 0, 0, 1)}}
	s, err := New(star(2, fast), hosts, Options{
		Limit: units.Second, TickEvery: 10 * us, Tick: func(units.Time) { cancel() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) || s.End() > units.Millisecond {
		t.Errorf("%v at %v", err, s.End())
	}
}

// event is a host that sends one PTP event message behind a queue of others, and one that receives
// it.
type event struct {
	*fake
	send, sync int
	got        []byte
}

func (e *event) Transmit(_ units.Time, out *transport.Outgoing) bool {
	if e.send == 0 {
		return false
	}
	e.send--
	*out = transport.Outgoing{Dst: e.dst, SrcPort: 50000, Class: 1, Size: 1000, N: 44, DstPort: 9}
	if e.send < e.sync {
		out.DstPort, out.Header[1] = clocksync.EventPort, 2
	}
	return true
}

func (e *event) Receive(_ units.Time, in *transport.Incoming) (transport.Placement, error) {
	if in.Port == clocksync.EventPort {
		e.got = append([]byte(nil), in.Header...)
	}
	return transport.Placement{}, nil
}

func (e *event) Deadline() (units.Time, bool) { return 0, false }
func (e *event) Done() bool                   { return false }

func TestTransparentSwitchesCorrectWhatWaited(t *testing.T) {
	for _, transparent := range []bool{true, false} {
		slow := fast
		slow.Rate = units.Gbps // packets queue in the switch
		cfg := star(2, slow)
		hosts := make([]*event, cfg.Hosts)
		for i := range hosts {
			hosts[i] = &event{fake: newFake(i, (i+1)%len(hosts), 0, 1)}
		}
		hosts[0].send, hosts[0].sync = 20, 1
		s, err := New(cfg, hosts, Options{Transparent: transparent})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Run(context.Background()) // nothing is left to happen once all has arrived
		got := hosts[1].got
		if got == nil {
			t.Fatal("the message did not arrive")
		}
		corrected := false
		for _, b := range got[8:16] {
			corrected = corrected || b != 0
		}
		if corrected != (transparent && s.Counters().MaxQueue > 0) {
			t.Errorf("transparent %v: correctionField %x, longest queue %d", transparent, got[8:16], s.Counters().MaxQueue)
		}
	}
}
