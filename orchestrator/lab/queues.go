package lab

import (
	"weft/fabric/queues"
	"weft/params"
	"weft/units"
)

// packetRoom is the largest size of the headers that a packet adds to its payload: 160 bytes of
// package transport, UDP 8, IPv4 20, Ethernet 14 and 4.
const packetRoom = 160 + 8 + 20 + 14 + 4

// queues reads the section.
func (d *decoder) queues(s *section, mtu units.Bytes) (q queues.Queues) {
	r := s.read(&q)
	r.holds(q.Buffer, mtu)
	if q.ECN == nil {
		d.ecnOff = r.field("ecn")
	}
	s.close()
	return q
}

// holds rejects a buffer of a port that is smaller than a packet.
func (r *keyReader) holds(b params.Size, mtu units.Bytes) {
	if b.Bytes != 0 && b.Per == 0 && b.Bytes < mtu+packetRoom {
		r.Refuse("buffer", "%v holds no packet of %d bytes and its headers; expected at least %v", b, mtu,
			mtu+packetRoom)
	}
}
