package transport

import (
	"math/bits"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc/strack"
	"weft/transport/path"
	"weft/units"
)

// The bitmap against a map.
func TestBitmapAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bitmap
		want := map[uint64]bool{}
		low := rapid.Uint64Range(0, 1000).Draw(t, "origin")
		high := low
		near := func(what string, most uint64) uint64 {
			return low + rapid.Uint64Range(0, most).Draw(t, what)
		}
		for range rapid.IntRange(1, 100).Draw(t, "operations") {
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0, 1:
				n := near("set", 300)
				b.reach(low, max(high, n+1))
				b.set(n)
				high, want[n] = max(high, n+1), true
			case 2:
				if high > low {
					n := near("clear", high-low-1)
					b.clear(n)
					delete(want, n)
				}
			case 3:
				n := near("add", 200)
				mask := rapid.Uint64().Draw(t, "mask")
				b.reach(low, max(high, n+uint64(bits.Len64(mask))))
				high = max(high, n+uint64(bits.Len64(mask)))
				if mask != 0 {
					b.add(n, mask)
				}
				for i := range uint64(64) {
					if mask>>i&1 != 0 {
						want[n+i] = true
					}
				}
			case 4:
				to := near("drop", 100)
				b.drop(low, to)
				for ; low < to; low++ {
					delete(want, low)
				}
				high = max(high, low)
			case 5:
				n := b.run(low)
				for i := range n {
					if !want[low+i] {
						t.Fatalf("a run of %d from %d on, but %d is missing", n, low, low+i)
					}
					delete(want, low+i)
				}
				low += n
				if want[low] {
					t.Fatalf("%d is there behind a run to it", low)
				}
				high = max(high, low)
			}
			count := 0
			for n := low; n < high; n++ {
				if b.has(n) != want[n] {
					t.Fatalf("%d: %v, want %v", n, b.has(n), want[n])
				}
				if want[n] {
					count++
				}
				w := b.get(n)
				for i := range uint64(64) {
					if w>>i&1 != 0 != want[n+i] {
						t.Fatalf("bit %d of those from %d on", i, n)
					}
				}
			}
			if count != len(want) {
				t.Fatalf("%d numbers, want %d", count, len(want))
			}
		}
	})
}

func strackSpec(paths int) Spec {
	path := Path{Propagation: 3 * units.Microsecond, Rates: []units.Bandwidth{100 * units.Gbps, 100 * units.Gbps}}
	p := params.Defaults[strack.Params]()
	p.Paths = paths
	s := Spec{ID: 1, Src: 0, Dst: 1, SrcPort: 50000, Forward: path, Reverse: path, Kind: "strack", CC: p}
	return s
}

// flying is a packet in the network of a model.
type flying struct {
	out Outgoing
	to  int
}

// model is a connection whose network is the test's hand.
type model struct {
	t   *rapid.T
	e   [2]*Endpoint
	air []flying
	now units.Time
}

// newModel returns a connection that has sent nothing yet.
func newModel(t *rapid.T, s Spec) *model {
	m := &model{t: t}
	for h := range m.e {
		var err error
		if m.e[h], err = New(Config{Host: HostID(h), MTU: 1000, LineRate: 100 * units.Gbps}); err != nil {
			t.Fatal(err)
		}
		if err := m.e[h].Open(s); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// step lets a host send, a packet arrive, be doubled or be lost, a message begin, or time pass.
func (m *model) step(id uint32) {
	switch op := rapid.IntRange(0, 9).Draw(m.t, "op"); {
	case op == 0:
		size := units.Bytes(rapid.Int64Range(1, 60000).Draw(m.t, "size"))
		if err := m.e[0].Send(m.now, 1, Message{ID: id, Size: size}); err != nil {
			m.t.Fatal(err)
		}
	case op <= 3 || len(m.air) == 0:
		for range rapid.IntRange(1, 30).Draw(m.t, "packets") {
			h := rapid.IntRange(0, 1).Draw(m.t, "host")
			f := flying{to: 1 - h}
			if m.e[h].Transmit(m.now, &f.out) {
				m.air = append(m.air, f)
			}
		}
	case op == 4:
		m.now += units.Time(rapid.Int64Range(0, int64(40*units.Microsecond)).Draw(m.t, "wait"))
		m.e[0].Advance(m.now)
	default:
		i := rapid.IntRange(0, len(m.air)-1).Draw(m.t, "which")
		f := m.air[i]
		m.now += 3 * units.Microsecond
		fate := rapid.IntRange(0, 9).Draw(m.t, "fate")
		if fate > 0 { // else it is doubled
			m.air = append(m.air[:i], m.air[i+1:]...)
		}
		if fate == 1 || fate == 2 {
			return // lost
		}
		in := Incoming{At: m.now, Src: HostID(1 - f.to), Header: f.out.Header[:f.out.N], Payload: f.out.Payload, CE: fate == 3}
		if _, err := m.e[f.to].Receive(m.now, &in); err != nil {
			m.t.Fatal(err)
		}
	}
}

// What both sides count agrees with what they know packet by packet, whatever happens: what is in
// flight is never negative and is what has not arrived as far as the sender has heard, the window
// stays in its bounds, and no state grows beyond the span.
func TestSelectiveRepeatCountsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, strackSpec(256))
		for i := range uint32(rapid.IntRange(1, 300).Draw(t, "steps")) {
			m.step(i)
			m.check()
		}
	})
}

// check compares the state of both ends with the packets that were sent and delivered.
func (m *model) check() {
	s, x := &m.e[0].senders[0], m.e[1].receivers[0].arrivals
	f, t := s.flight, m.t
	var waits, missing, early units.Bytes
	count := 0
	for n := s.order.acked; n < s.order.next; n++ {
		lost, arrived := f.lost.has(n), f.arrived.has(n)
		if lost && arrived {
			t.Fatalf("packet %d has arrived and waits to be sent again", n)
		}
		if lost {
			waits += s.wireSize(n)
			count++
		}
		switch there := !x.fresh(n); {
		case lost && there:
			early += s.wireSize(n)
		case !lost && !there:
			missing += s.wireSize(n)
		}
		if arrived && x.fresh(n) {
			t.Fatalf("packet %d has arrived as the sender knows, not as the receiver does", n)
		}
	}
	// Each packet left once more often than it was claimed lost, unless it waits.
	if got, want := f.sent-f.claimed, s.order.nextBytes-waits; got != want || count != f.waiting {
		t.Fatalf("sent without claims %d, want %d; %d wait, want %d", got, want, f.waiting, count)
	}
	// What is in flight is what has not arrived and does not wait to leave again. What the sender
	// has not heard of counts as well; what it takes for lost though it has arrived does not, until
	// it hears which packets have.
	if in, want := f.inFlight(), max(missing+x.bytes-f.received-early, 0); in != want {
		t.Fatalf("%d bytes in flight, want %d: %d have not arrived, %d have unheard of, %d are taken for lost", in, want, missing,
			x.bytes-f.received, early)
	}
	c := s.ctl.(*strack.Sender)
	if w := c.CWND(); w < 1 || w > c.MaxWindow() {
		t.Fatalf("window of %v packets, at most %v", w, c.MaxWindow())
	}
	if d := s.order.next - s.order.acked; d > f.span {
		t.Fatalf("%d packets from the first that is missing to the last, at most %d", d, f.span)
	}
	m.checkReceiver()
}

// checkReceiver compares the receiver's state with the packets that were delivered.
func (m *model) checkReceiver() {
	s, x := &m.e[0].senders[0], m.e[1].receivers[0].arrivals
	beyond := 0
	for n := x.expected; n < x.top; n++ {
		if x.have.has(n) {
			beyond++
		}
	}
	if beyond != x.outOfOrder || x.expected < s.order.acked || x.bytes < s.flight.received || x.bytes > s.order.nextBytes {
		m.t.Fatalf("%d out of order, want %d; expected %d, acknowledged %d; %d bytes, %d heard of", x.outOfOrder, beyond,
			x.expected, s.order.acked, x.bytes, s.flight.received)
	}
	if len(x.open) > int(s.flight.span)+1 {
		m.t.Fatalf("%d messages open", len(x.open))
	}
}

// What STrack keeps per connection, beside what every connection has: bitmaps over the packets in
// flight and over the paths, and no queues or timers per path.
func TestStateSizePerConnection(t *testing.T) {
	m := lossyWindow(t)
	s, x := &m.e[0].senders[0], m.e[1].receivers[0].arrivals
	words := func(b bitmap) int { return 8 * len(b.words) }
	size := func(what string, n int) int {
		t.Logf("%-46s %5d bytes", what, n)
		return n
	}
	send := size("sender: every transport", int(unsafe.Sizeof(*s)))
	send += size("sender: counters and clocks of selective repeat", int(unsafe.Sizeof(*s.flight)))
	send += size("sender: bitmap of packets that arrived", words(s.flight.arrived))
	send += size("sender: bitmap of packets to send again", words(s.flight.lost))
	send += size("sender: paths, 256 bits and the round", int(unsafe.Sizeof(*s.chooser.(*path.STrack))))
	send += size("sender: window", int(unsafe.Sizeof(*s.ctl.(*strack.Sender))))
	receive := size("receiver: every transport", int(unsafe.Sizeof(m.e[1].receivers[0])))
	receive += size("receiver: counters of selective repeat", int(unsafe.Sizeof(*x)))
	receive += size("receiver: bitmap of packets that arrived", words(x.have))
	receive += size("receiver: messages arriving", cap(x.open)*int(unsafe.Sizeof(partial{})))
	t.Logf("%-46s %5d and %d bytes", "together, sender and receiver", send, receive)
	if most := 1024; send > most || receive > most {
		t.Errorf("%d and %d bytes of state, at most %d each", send, receive, most)
	}
	if n := unsafe.Sizeof(path.STrack{}); n > 80 {
		t.Errorf("%d bytes to choose among 256 paths", n)
	}
}

// lossyWindow is a connection at 400 Gb/s and 8 us that has lost the first packet of a window.
func lossyWindow(t *testing.T) *model {
	m := &model{}
	s := strackSpec(256)
	s.Forward = Path{Propagation: 3700 * units.Nanosecond, Rates: []units.Bandwidth{400 * units.Gbps, 400 * units.Gbps, 400 * units.Gbps, 400 * units.Gbps}}
	s.Reverse, s.NetRTT = s.Forward, 8*units.Microsecond
	for h := range m.e {
		var err error
		if m.e[h], err = New(Config{Host: HostID(h), MTU: 4096, LineRate: 400 * units.Gbps}); err != nil {
			t.Fatal(err)
		}
		if err := m.e[h].Open(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.e[0].Send(0, 1, Message{Size: units.MB}); err != nil {
		t.Fatal(err)
	}
	var out Outgoing
	for i := 0; m.e[0].Transmit(0, &out); i++ {
		if i > 0 {
			in := Incoming{At: 4 * units.Microsecond, Header: out.Header[:out.N], Payload: out.Payload}
			if _, err := m.e[1].Receive(4*units.Microsecond, &in); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}
