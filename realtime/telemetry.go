package realtime

import (
	"encoding/binary"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// What the fabric reads and writes of Weft's transport: the header behind UDP's, in which switches note their
// telemetry. Ordinary traffic is carried as it is.

// Layout of UDP (RFC 768).
const (
	udpLen      = 8
	udpLengthAt = 4
	udpSumAt    = 6
)

// contents is what was found in a frame when it came, by which everything is done that is done to it later: nobody looks at
// what a node wrote a second time. It travels in Packet.Context, so that copies of a packet have
// it too. The zero contents are those of a frame in which nothing is changed but addresses and marks.
type contents struct {
	udp    uint8      // as in datagram
	shape  wire.Shape // of a data packet of Weft's transport, otherwise 0
	leaves departing
}

// departing says what is known of when a data packet of Weft's transport leaves.
type departing uint8

const (
	anytime  departing = iota // its sender has not said
	onTime                    // it leaves when its sender says
	heldBack                  // a pause was in its way
)

// pack returns Packet.Context for c.
func (c contents) pack() int64 {
	return int64(c.leaves) | int64(c.shape)<<8 | int64(c.udp)<<16
}

// contentsOf returns what pack was given.
func contentsOf(p *fabric.Packet) contents {
	return contents{leaves: departing(p.Context), shape: wire.Shape(p.Context >> 8), udp: uint8(p.Context >> 16)}
}

// datagram returns the UDP datagram in the frame, or nil where there is none. What the IPv4 header says of its end is sound
// (parseIPv4) and changes in no way but by cut.
func (c contents) datagram(frame []byte) []byte {
	if c.udp == 0 {
		return nil
	}
	return frame[c.udp : ethLen+int(binary.BigEndian.Uint16(frame[ethLen+2:]))]
}

// message returns what the UDP datagram in the frame carries.
func (c contents) message(frame []byte) []byte { return c.datagram(frame)[udpLen:] }

// read returns what is in the frame of d. ok is false for a datagram to Weft's port that is cut short or not as long as it says.
func read(frame []byte, d *datagram) (c contents, ok bool) {
	c.udp = d.udp
	if d.proto != protoUDP || d.dport != wire.Port {
		return c, true
	}
	udp := c.datagram(frame)
	if udp == nil || int(binary.BigEndian.Uint16(udp[udpLengthAt:])) != len(udp) {
		return c, false
	}
	// An error is for the receiver to find, and to tell: what the fabric cannot decode it carries as it carries anything.
	c.shape, _ = wire.ShapeOf(udp[udpLen:])
	return c, true
}

// note writes what switches say of themselves into the data packet in frame, which asked for it.
func (c contents) note(frame []byte, hops []fabric.Hop) {
	rewrite(c.datagram(frame), func(packet []byte) {
		records := c.shape.Records(packet)
		for _, h := range hops {
			records.Stamp(wire.Hop{At: h.At, Sent: h.Sent, Queued: h.Queued}) // what does not fit is left out
		}
	})
}

// restamp has the data packet in frame say that it left its NIC at the given instant. The NIC is the fabric's, and a
// sender that was told of a pause too late could not know. A stamp of an imperfect clock is as much later as the packet is
// than its sender foresaw.
func (l *loop) restamp(c contents, frame []byte, at units.Time) {
	udp := c.datagram(frame)
	if l.cfg.Departs && cap(frame) >= len(frame)+wire.DepartureSize {
		if foreseen, ok := wire.Departure(frame[:len(frame)+wire.DepartureSize]); ok {
			at += c.shape.SentAt(udp[udpLen:]) - foreseen // stamped late by as much
		}
	}
	rewrite(udp, func(packet []byte) { c.shape.Restamp(packet, at) })
}

// cut takes off the frame in p what says when it leaves, and returns that: it stays in the memory behind the frame.
func (l *loop) cut(p *fabric.Packet, c contents) (at units.Time, ok bool) {
	if !l.cfg.Departs || c.udp == 0 {
		return 0, false
	}
	udp := c.datagram(p.Header)
	if len(udp) < udpLen+wire.DepartureSize || int(binary.BigEndian.Uint16(udp[udpLengthAt:])) != len(udp) {
		return 0, false
	}
	if at, ok = wire.Departure(udp); !ok {
		return 0, false
	}
	ip := p.Header[ethLen:]
	total := binary.BigEndian.Uint16(ip[2:])
	sum := binary.BigEndian.Uint16(p.Header[ipSumAt:])
	binary.BigEndian.PutUint16(p.Header[ipSumAt:], updateChecksum(sum, total, total-wire.DepartureSize))
	binary.BigEndian.PutUint16(ip[2:], total-wire.DepartureSize)
	binary.BigEndian.PutUint16(udp[udpLengthAt:], uint16(len(udp)-wire.DepartureSize))
	binary.BigEndian.PutUint16(udp[udpSumAt:], 0) // nodes ask for none
	p.Header = p.Header[:ethLen+int(total)-wire.DepartureSize]
	p.Size = units.Bytes(len(p.Header) + fcsLen)
	return at, true
}

// maxHeader is the longest header of a data packet.
var maxHeader = wire.DataSize + wire.TelemetrySize(wire.MaxHops)

// rewrite has f change the transport's header in a UDP datagram, and corrects the checksum by the difference, word by
// word, unless the sender did not want one.
func rewrite(udp []byte, f func(header []byte)) {
	header := udp[udpLen:]
	sum := binary.BigEndian.Uint16(udp[udpSumAt:])
	if sum == 0 {
		f(header)
		return
	}
	var before [256]byte
	n := copy(before[:], header[:min(len(header), int(maxHeader))]) &^ 1 // headers are of even length
	f(header)
	for i := 0; i < n; i += 2 {
		old, changed := binary.BigEndian.Uint16(before[i:]), binary.BigEndian.Uint16(header[i:])
		if old != changed {
			sum = updateChecksum(sum, old, changed)
		}
	}
	if sum == 0 {
		sum = 0xffff // 0 says that there is none
	}
	binary.BigEndian.PutUint16(udp[udpSumAt:], sum)
}
