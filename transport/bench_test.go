package transport_test

import (
	"testing"

	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/units"
)

// pair is two endpoints with n connections between them, and a wire that takes no time.
type pair struct {
	a, b *transport.Endpoint
	now  units.Time
	out  transport.Outgoing
	in   transport.Incoming
}

// newPair returns two endpoints with n PC4 connections between them.
func newPair(t testing.TB, n int, p pc4.Params) *pair {
	path := transport.Path{Propagation: 2 * units.Microsecond, Rates: []units.Bandwidth{100 * units.Gbps, 100 * units.Gbps}}
	q := &pair{}
	for h, e := range []**transport.Endpoint{&q.a, &q.b} {
		var err error
		if *e, err = transport.New(transport.Config{Host: transport.HostID(h), MTU: 4096, LineRate: 100 * units.Gbps}); err != nil {
			t.Fatal(err)
		}
		for c := range n {
			if err := (*e).Open(transport.Spec{
				ID: transport.ConnID(c * 7), Src: 0, Dst: 1, Kind: "pc4", CC: p, Forward: path, Reverse: path, Initial: 100 * units.Gbps / units.Bandwidth(n),
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for c := range n {
		q.b.Expect(transport.ConnID(c*7), 1)
	}
	return q
}

// deliver hands the packet in q.out to the endpoint to.
func (q *pair) deliver(t testing.TB, to *transport.Endpoint, from transport.HostID) {
	q.in = transport.Incoming{At: q.now, Src: from, Header: q.out.Header[:q.out.N], Payload: q.out.Payload}
	if _, err := to.Receive(q.now, &q.in); err != nil {
		t.Fatal(err)
	}
}

// benchmarkPacket measures one data packet and its acknowledgement, by the number of connections.
func benchmarkPacket(b *testing.B, conns int, p pc4.Params) {
	q := newPair(b, conns, p)
	for c := range conns {
		if err := q.a.Send(0, transport.ConnID(c*7), transport.Message{ID: 1, Size: 1 << 50}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for !q.a.Transmit(q.now, &q.out) {
			at, ok := q.a.Deadline()
			if !ok {
				b.Fatal("nothing to wait for")
			}
			q.now = at
		}
		q.now += 2700 * units.Nanosecond
		q.deliver(b, q.b, 0)
		if !q.b.Transmit(q.now, &q.out) {
			b.Fatal("no acknowledgement")
		}
		q.now += 2000 * units.Nanosecond
		q.deliver(b, q.a, 1)
	}
	if c := q.a.Counters(); c.Retransmits > 0 || c.BadPackets > 0 {
		b.Fatalf("%+v", c)
	}
}

// One data packet through Transmit and Receive, and its acknowledgement through Transmit and
// Receive.
func BenchmarkPacket1(b *testing.B)    { benchmarkPacket(b, 1, pc4.Defaults()) }
func BenchmarkPacket16(b *testing.B)   { benchmarkPacket(b, 16, pc4.Defaults()) }
func BenchmarkPacket4096(b *testing.B) { benchmarkPacket(b, 4096, pc4.Defaults()) }
