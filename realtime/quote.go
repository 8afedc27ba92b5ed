package realtime

import (
	"encoding/binary"
	"slices"

	"weft/fabric"
)

// quote is the part of a packet that an ICMP error repeats (RFC 792) and that nothing on the path
// changes.
type quote struct {
	src, dst uint32
	size, id uint16
	proto    uint8
	body     [8]byte // the first bytes behind its header
}

// quoteOf returns the quote of an IPv4 packet, which may be cut short behind the eighth byte of its
// body. ok is false if less of it is there.
func quoteOf(packet []byte) (q quote, ok bool) {
	if len(packet) < ipMin {
		return q, false
	}
	header := int(packet[0]&0x0f) * 4
	if packet[0]>>4 != 4 || header < ipMin || header > len(packet) {
		return q, false
	}
	q = quote{
		src: binary.BigEndian.Uint32(packet[12:]), dst: binary.BigEndian.Uint32(packet[16:]),
		size: binary.BigEndian.Uint16(packet[2:]), id: binary.BigEndian.Uint16(packet[4:]), proto: packet[9],
	}
	size := min(int(q.size), len(packet))
	return q, size >= header && copy(q.body[:], packet[header:size]) == min(len(q.body), int(q.size)-header)
}

// memory is the number of packets to a host that are remembered because the host might answer them.
// Our own choice: kernels answer at most about six per second and host (icmp_ratelimit), at once.
const memory = 1024

// quotes are the last packets carried to a host, as it received them, that do not belong to Weft's
// transport.
type quotes struct {
	ring []carried
	next int
}

// carried is a packet that was carried; own says that it is of clock synchronization.
type carried struct {
	quote
	own bool
}

func (m *quotes) add(q quote, own bool) {
	if len(m.ring) < memory {
		m.ring = append(m.ring, carried{q, own})
		return
	}
	m.ring[m.next] = carried{q, own}
	m.next = (m.next + 1) % memory
}

// take reports what a packet is among them, and forgets it: it is answered once.
func (m *quotes) take(q quote) answer {
	i := slices.IndexFunc(m.ring, func(c carried) bool { return c.quote == q })
	if i < 0 {
		return toNothing
	}
	own := m.ring[i].own
	m.ring[i] = carried{}
	if own {
		return toOwn
	}
	return toOther
}

// answer says what an ICMP error answers.
type answer int

const (
	toNothing answer = iota // no packet that was carried to the sender
	toOwn                   // a packet of clock synchronization: its host's agent has ended
	toOther                 // any other packet
)

// isICMPAnswer returns what the frame of d, which host h has sent, answers: as an ICMP error about
// a packet that its destination has sent to h. Any other ICMP error is not an answer, whatever it
// quotes.
func (l *loop) isICMPAnswer(h fabric.HostID, frame []byte, d *datagram) answer {
	if !icmpError(frame, d) {
		return toNothing
	}
	const icmpLen = 8
	at := ethLen + int(frame[ethLen]&0x0f)*4 + icmpLen
	if at > len(frame) {
		return toNothing
	}
	q, ok := quoteOf(frame[at:])
	if !ok || q.src != d.dst || q.dst != d.src {
		return toNothing
	}
	return l.quotes[h].take(q)
}
