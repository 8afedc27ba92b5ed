package realtime

import (
	"encoding/binary"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// This file is what the fabric process reads and writes of Weft's transport: the header behind
// UDP's, to which switches add their telemetry. Ordinary traffic is carried unchanged.

// Layout of UDP (RFC 768).
const (
	udpLen      = 8
	udpLengthAt = 4
	udpSumAt    = 6
)

// contents describes a frame as it was first parsed. Everything that is done to the frame
// later goes by it, so that bytes a node wrote are not parsed a second time. It travels in
// Packet.Context, so that copies of a packet have it too. The zero value is that of a frame in
// which only addresses and marks are changed.
type contents struct {
	udp    uint8      // see datagram.udp
	shape  wire.Shape // of a data packet of Weft's transport, otherwise 0
	leaves departing
}

// departing says when a data packet of Weft's transport leaves.
type departing uint8

const (
	anytime  departing = iota // its sender has not given an instant
	onTime                    // it leaves at its sender's instant
	heldBack                  // a pause has delayed it
)

// pack returns Packet.Context for c.
func (c contents) pack() int64 {
	return int64(c.leaves) | int64(c.shape)<<8 | int64(c.udp)<<16
}

// contentsOf returns the contents that pack was called on.
func contentsOf(p *fabric.Packet) contents {
	return contents{leaves: departing(p.Context), shape: wire.Shape(p.Context >> 8), udp: uint8(p.Context >> 16)}
}

// datagram returns the UDP datagram in the frame, or nil if there is none. The length in the IPv4
// header has been checked (parseIPv4), and only shorten changes it.
func (c contents) datagram(frame []byte) []byte {
	if c.udp == 0 {
		return nil
	}
	return frame[c.udp : ethLen+int(binary.BigEndian.Uint16(frame[ethLen+2:]))]
}

// message returns the payload of the UDP datagram in the frame, which must have one.
func (c contents) message(frame []byte) []byte { return c.datagram(frame)[udpLen:] }

// read returns the contents of the frame of d. ok is false for a datagram to Weft's port that is
// cut short or has a wrong length.
func read(frame []byte, d *datagram) (c contents, ok bool) {
	c.udp = d.udp
	if d.proto != protoUDP || d.dport != wire.Port {
		return c, true
	}
	udp := c.datagram(frame)
	if udp == nil || int(binary.BigEndian.Uint16(udp[udpLengthAt:])) != len(udp) {
		return c, false
	}
	// On an error the shape is 0: the frame is carried like any other, and its receiver rejects and
	// counts it.
	c.shape, _ = wire.ShapeOf(udp[udpLen:])
	return c, true
}

// note appends what switch ports have recorded to the data packet in frame, which has INT enabled.
func (c contents) note(frame []byte, hops []fabric.Hop) {
	rewrite(c.datagram(frame), func(packet []byte) {
		records := c.shape.Records(packet)
		for _, h := range hops {
			records.Stamp(wire.Hop{At: h.At, Sent: h.Sent, Queued: h.Queued}) // records beyond the room are left out
		}
	})
}

// restamp makes the data packet in frame say that it left its NIC at the given instant. The NIC is
// the fabric process's, and a sender that learnt of a pause too late could not know. A stamp of an
// imperfect clock is moved by as much as the packet left after the instant that its sender foresaw.
func (l *loop) restamp(c contents, frame []byte, at units.Time) {
	udp := c.datagram(frame)
	if l.cfg.Departs && cap(frame) >= len(frame)+wire.DepartureSize {
		if foreseen, ok := wire.Departure(frame[:len(frame)+wire.DepartureSize]); ok { // the same error of the clock
			at += c.shape.SentAt(udp[udpLen:]) - foreseen // stamped late by as much
		}
	}
	rewrite(udp, func(packet []byte) { c.shape.Restamp(packet, at) })
}

// cut removes the departure instant from the end of the frame in p and returns it. Its bytes stay
// in memory behind the frame. ok is false if the frame has none.
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
	p.Header = shorten(p.Header, udp, len(udp)-wire.DepartureSize)
	p.Size = units.Bytes(len(p.Header) + fcsLen)
	return at, true
}

// trim cuts the payload off the data packet in frame, which may be trimmed. last says that the
// packet was at the last switch of its path.
func (c contents) trim(frame []byte, last bool) []byte {
	udp := c.datagram(frame)
	return shorten(frame, udp, udpLen+c.shape.Trim(udp[udpLen:], last))
}

// shorten makes the datagram udp in frame n bytes long, with its header, and returns the frame.
func shorten(frame, udp []byte, n int) []byte {
	ip := frame[ethLen:]
	total := binary.BigEndian.Uint16(ip[2:])
	less := total - uint16(len(udp)-n)
	sum := binary.BigEndian.Uint16(frame[ipSumAt:])
	binary.BigEndian.PutUint16(frame[ipSumAt:], updateChecksum(sum, total, less))
	binary.BigEndian.PutUint16(ip[2:], less)
	binary.BigEndian.PutUint16(udp[udpLengthAt:], uint16(n))
	binary.BigEndian.PutUint16(udp[udpSumAt:], 0) // nodes ask for no checksum
	return frame[:ethLen+int(less)]
}

// maxHeader is the size of the longest header of a data packet, in bytes.
var maxHeader = wire.DataSize + wire.TelemetrySize(wire.MaxHops)

// rewrite calls f to change the transport's header in a UDP datagram. It updates the checksum
// incrementally, word by word, unless the sender did not use one.
func rewrite(udp []byte, f func(header []byte)) {
	header := udp[udpLen:]
	sum := binary.BigEndian.Uint16(udp[udpSumAt:])
	if sum == 0 {
		f(header)
		return
	}
	var before [256]byte
	n := copy(before[:], header[:min(len(header), int(maxHeader))]) &^ 1 // headers have an even length
	f(header)
	for i := 0; i < n; i += 2 {
		old, changed := binary.BigEndian.Uint16(before[i:]), binary.BigEndian.Uint16(header[i:])
		if old != changed {
			sum = updateChecksum(sum, old, changed)
		}
	}
	if sum == 0 {
		sum = 0xffff // 0 means that there is none
	}
	binary.BigEndian.PutUint16(udp[udpSumAt:], sum)
}
