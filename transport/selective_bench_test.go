package transport_test

import (
	"testing"

	"weft/transport"
	"weft/units"
)

// sprayPair is two endpoints with n connections of strack between them at 400 Gb/s and 8 us, each
// with an endless message.
func sprayPair(t testing.TB, n int) *pair {
	path := transport.Path{
		Propagation: 3700 * units.Nanosecond,
		Rates:       []units.Bandwidth{400 * units.Gbps, 400 * units.Gbps, 400 * units.Gbps, 400 * units.Gbps},
	}
	q := &pair{}
	for h, e := range []**transport.Endpoint{&q.a, &q.b} {
		var err error
		if *e, err = transport.New(transport.Config{Host: transport.HostID(h), MTU: 4096, LineRate: 400 * units.Gbps}); err != nil {
			t.Fatal(err)
		}
		for c := range n {
			s := sprayedSpec("strack")
			s.ID, s.Src, s.Dst, s.Forward, s.Reverse = transport.ConnID(c), 0, 1, path, path
			if err := (*e).Open(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for c := range n {
		if err := q.a.Send(0, transport.ConnID(c), transport.Message{ID: 1, Size: 1 << 50}); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// roundTrip carries one data packet and its acknowledgement, if there is one. If lossy, every 64th
// packet is lost.
func (q *pair) roundTrip(t testing.TB, n int, lossy bool) {
	for !q.a.Transmit(q.now, &q.out) {
		at, ok := q.a.Deadline()
		if !ok {
			t.Fatal("nothing to wait for")
		}
		q.now = max(q.now, at)
	}
	q.now += 84 * units.Nanosecond
	if lossy && n%64 == 0 {
		return
	}
	q.deliverAt(t, q.b, 0, q.now+4*units.Microsecond)
	for q.b.Transmit(q.now+4*units.Microsecond, &q.out) {
		q.deliverAt(t, q.a, 1, q.now+8*units.Microsecond)
	}
}

// deliverAt hands the packet in q.out to the endpoint to at a later instant, without waiting for
// it.
func (q *pair) deliverAt(t testing.TB, to *transport.Endpoint, from transport.HostID, at units.Time) {
	now := q.now
	q.now = at
	q.deliver(t, to, from)
	q.now = now
}

// benchmarkSpray measures roundTrip, by the number of connections.
func benchmarkSpray(b *testing.B, conns int, lossy bool) {
	q := sprayPair(b, conns)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		q.roundTrip(b, n, lossy)
	}
	if c := q.a.Counters(); (c.Retransmits > 0) != lossy || c.BadPackets > 0 {
		b.Fatalf("%+v", c)
	}
}

// One data packet of strack through Transmit and Receive, and a quarter of an acknowledgement.
func BenchmarkSpray1(b *testing.B)    { benchmarkSpray(b, 1, false) }
func BenchmarkSpray4096(b *testing.B) { benchmarkSpray(b, 4096, false) }

// The same with one packet in 64 lost, recovered by those that overtake it.
func BenchmarkSprayLossy(b *testing.B) { benchmarkSpray(b, 1, true) }

// Once queues and bitmaps have their size, packets allocate nothing, in recovery or out of it.
func TestSelectiveRepeatAllocatesNothing(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		q := sprayPair(t, 4)
		n := 0
		step := func() {
			n++
			q.roundTrip(t, n, lossy)
		}
		for range 20000 {
			step()
		}
		if got := testing.AllocsPerRun(20000, step); got != 0 {
			t.Errorf("lossy %v: %v allocations per packet", lossy, got)
		}
		if c := q.a.Counters(); lossy && c.Recoveries == 0 {
			t.Errorf("%+v", c)
		}
	}
}
