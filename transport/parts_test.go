package transport

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/transport/cc"
	"weft/transport/cc/pc4"
	"weft/units"
)

func TestFIFOKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fifo[int]
		var want []int
		for i := range rapid.IntRange(0, 200).Draw(t, "operations") {
			if len(want) > 0 && rapid.Bool().Draw(t, "pop") {
				if got := f.pop(); got != want[0] {
					t.Fatalf("got %d, want %d", got, want[0])
				}
				want = want[1:]
			} else {
				f.push(i)
				want = append(want, i)
			}
			if f.len() != len(want) {
				t.Fatalf("%d elements, want %d", f.len(), len(want))
			}
			for j, v := range want {
				if *f.at(j) != v {
					t.Fatalf("element %d is %d, want %d", j, *f.at(j), v)
				}
			}
		}
	})
}

// The timers behave like a slice that is searched.
func TestTimersAgreeWithASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 20
		var q timers
		want := make([]units.Time, n)
		for i := range want {
			q.add()
			want[i] = units.Never
		}
		for range rapid.IntRange(1, 300).Draw(t, "operations") {
			id := int32(rapid.IntRange(0, n-1).Draw(t, "id"))
			if rapid.IntRange(0, 3).Draw(t, "clear") == 0 {
				q.clear(id)
				want[id] = units.Never
			} else {
				at := units.Time(rapid.Int64Range(0, 50).Draw(t, "at"))
				q.set(id, at)
				want[id] = at
			}
			at, ok := q.next()
			if first := slices.Min(want); ok != (first != units.Never) || ok && at != first {
				t.Fatalf("next is %d, %v; want %d", at, ok, first)
			}
			if got, ok := q.at(id); ok != (want[id] != units.Never) || ok && got != want[id] {
				t.Fatalf("%d is at %d, %v; want %d", id, got, ok, want[id])
			}
			if ok && want[q.heap[0].id] != at {
				t.Fatalf("%d is not at %d", q.heap[0].id, at)
			}
		}
	})
}

// Sequence numbers are 32 bits on the wire and wrap after 17 TB of full packets; both sides keep
// counting.
func TestSequenceNumbersGoRound(t *testing.T) {
	const near = 1<<32 - 3
	r := receiveOrder{expected: near}
	s := sendOrder{acked: near, next: near, high: near}
	for i := range uint64(6) {
		s.sent(10)
		if v := r.classify(uint32(near + i)); v != inOrder {
			t.Fatalf("packet %d: verdict %d", near+i, v)
		}
		r.take()
		if v := r.classify(uint32(near + i)); v != duplicate {
			t.Fatalf("packet %d again: verdict %d", near+i, v)
		}
		if v := r.classify(uint32(near + i + 2)); v != gap {
			t.Fatalf("packet %d too early: verdict %d", near+i+2, v)
		}
		if psn, ok := s.expand(uint32(r.expected)); !ok || psn != near+i+1 {
			t.Fatalf("%d expands to %d, %v", uint32(r.expected), psn, ok)
		}
	}
	if _, ok := s.expand(uint32(s.high + 1)); ok {
		t.Error("an acknowledgement for what was not sent passes")
	}
}

// timerController is a congestion control with a timer: every 10 us it allows one more packet.
type timerController struct {
	at     units.Time
	window units.Bytes
}

func (c *timerController) OnStart(now units.Time)             { c.at, c.window = now+10*units.Microsecond, 1 }
func (c *timerController) OnSent(units.Time, cc.Sent)         {}
func (c *timerController) OnAck(units.Time, cc.Ack)           {}
func (c *timerController) OnLoss(units.Time, cc.Loss)         {}
func (c *timerController) Window() units.Bytes                { return c.window }
func (c *timerController) PacingRate() units.Bandwidth        { return 0 }
func (c *timerController) Deadline() (at units.Time, ok bool) { return c.at, c.at > 0 }
func (c *timerController) Advance(now units.Time) {
	c.at, c.window = now+10*units.Microsecond, c.window+1102
}

// DCQCN, for one, raises its rate on timers: a controller may ask to be called.
func TestControllerWithTimers(t *testing.T) {
	e, err := New(Config{MTU: 1000, LineRate: 100 * units.Gbps})
	if err != nil {
		t.Fatal(err)
	}
	path := Path{Rates: []units.Bandwidth{100 * units.Gbps}}
	if err := e.Open(Spec{ID: 1, Dst: 1, Kind: "pc4", CC: pc4.Defaults(), Forward: path, Reverse: path}); err != nil {
		t.Fatal(err)
	}
	c := &timerController{}
	e.senders[0].ctl, e.senders[0].timed = c, c
	if err := e.Send(0, 1, Message{Size: 5000}); err != nil {
		t.Fatal(err)
	}
	var out Outgoing
	now := units.Time(0)
	for i := range 5 {
		if !e.Transmit(now, &out) || e.Transmit(now, &out) {
			t.Fatalf("step %d: want one packet", i)
		}
		at, ok := e.Deadline()
		if !ok || at != now+10*units.Microsecond {
			t.Fatalf("step %d: deadline at %d ps", i, at)
		}
		now = at
	}
}

// Thousands of connections that may send cost one step each.
func TestRoundIsFair(t *testing.T) {
	all := make([]sender, 1000)
	r := newRound()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, i := range rng.Perm(len(all)) {
		r.push(all, int32(i))
	}
	turns := make([]int, len(all))
	for range 10 * len(all) {
		i, ok := r.pop(all)
		if !ok {
			t.Fatal("empty")
		}
		turns[i]++
		r.push(all, i)
	}
	for i, n := range turns {
		if n != 10 {
			t.Fatalf("sender %d had %d turns, want 10", i, n)
		}
	}
}
