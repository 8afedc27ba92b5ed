package transport_test

import (
	"testing"

	"weft/transport"
	"weft/transport/cc"
	"weft/transport/cc/pc4"
	"weft/transport/wire"
	"weft/units"
)

const us = units.Microsecond

// script drives the sending endpoint of host 0 and the receiving endpoint of host 1. Packets are
// carried by hand.
type script struct {
	t    *testing.T
	now  units.Time
	a, b *transport.Endpoint
}

// packet is a packet that left an endpoint.
type packet struct {
	out  transport.Outgoing
	from transport.HostID
}

// pc4Spec returns a PC4 connection from host 0 to host 1.
func pc4Spec(id transport.ConnID) transport.Spec {
	path := transport.Path{Propagation: 2 * us, Rates: []units.Bandwidth{100 * units.Gbps, 100 * units.Gbps}}
	return transport.Spec{
		ID: id, Src: 0, Dst: 1, SrcPort: 50000, Forward: path, Reverse: path, Kind: "pc4", CC: pc4.Defaults(), Collective: "incast",
	}
}

// newEndpoint returns an endpoint of host h at 100 Gb/s.
func newEndpoint(t testing.TB, h transport.HostID) *transport.Endpoint {
	e, err := transport.New(transport.Config{Host: h, MTU: 1000, LineRate: 100 * units.Gbps})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// newScript returns two endpoints that have the given connections open.
func newScript(t *testing.T, specs ...transport.Spec) *script {
	s := &script{t: t, a: newEndpoint(t, 0), b: newEndpoint(t, 1)}
	for _, c := range specs {
		for _, e := range []*transport.Endpoint{s.a, s.b} {
			if err := e.Open(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// send queues a message at the sending endpoint.
func (s *script) send(c transport.ConnID, id uint32, size units.Bytes) {
	s.t.Helper()
	if err := s.a.Send(s.now, c, transport.Message{ID: id, Tag: 70 + id, Size: size}); err != nil {
		s.t.Fatal(err)
	}
}

// transmit returns what leaves e now.
func (s *script) transmit(e *transport.Endpoint) []packet {
	var from transport.HostID
	if e == s.b {
		from = 1
	}
	var all []packet
	for p := (packet{from: from}); e.Transmit(s.now, &p.out); {
		all = append(all, p)
		if len(all) > 10000 {
			s.t.Fatal("transmit does not end")
		}
	}
	return all
}

// transmitOne returns the single packet that may leave e now.
func (s *script) transmitOne(e *transport.Endpoint) packet {
	s.t.Helper()
	all := s.transmit(e)
	if len(all) != 1 {
		s.t.Fatalf("%d packets leave, want 1", len(all))
	}
	return all[0]
}

// deliver hands packets to e.
func (s *script) deliver(e *transport.Endpoint, all ...packet) (placed []transport.Placement) {
	s.t.Helper()
	for i := range all {
		pl, err := s.receive(e, &all[i])
		if err != nil {
			s.t.Fatal(err)
		}
		placed = append(placed, pl)
	}
	return placed
}

// receive hands one packet to e.
func (s *script) receive(e *transport.Endpoint, p *packet) (transport.Placement, error) {
	return e.Receive(s.now, &transport.Incoming{At: s.now, Src: p.from, Header: p.out.Header[:p.out.N], Payload: p.out.Payload})
}

// wantEvents polls all events of e and checks their kinds.
func (s *script) wantEvents(e *transport.Endpoint, want ...transport.EventKind) []transport.Event {
	s.t.Helper()
	var got []transport.Event
	for {
		ev, ok := e.Poll()
		if !ok {
			break
		}
		got = append(got, ev)
	}
	if len(got) != len(want) {
		s.t.Fatalf("%d events %+v, want %d", len(got), got, len(want))
	}
	for i, ev := range got {
		if ev.Kind != want[i] {
			s.t.Errorf("event %d is %d, want %d", i, ev.Kind, want[i])
		}
	}
	return got
}

// data decodes a data packet.
func (s *script) data(p packet) wire.Data {
	s.t.Helper()
	var d wire.Data
	if err := d.Decode(p.out.Header[:p.out.N]); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// ack decodes an acknowledgement.
func (s *script) ack(p packet) wire.Ack {
	s.t.Helper()
	var a wire.Ack
	if err := a.Decode(p.out.Header[:p.out.N]); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// forgeAck encodes an acknowledgement as host 1 would send it.
func forgeAck(a wire.Ack) packet {
	p := packet{from: 1}
	p.out.N = int(wire.AckSize)
	a.Encode(p.out.Header[:])
	return p
}

// psns returns the sequence numbers of data packets.
func (s *script) psns(all []packet) []uint32 {
	s.t.Helper()
	var n []uint32
	for _, p := range all {
		n = append(n, s.data(p).PSN)
	}
	return n
}

// changeParams changes the congestion control parameters of a connection.
func changeParams[P cc.Params](s *transport.Spec, change func(*P)) {
	p := s.CC.(P)
	change(&p)
	s.CC = p
}
