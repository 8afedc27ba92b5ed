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

// udpOf returns the UDP datagram in frame, which has passed parseIPv4 and holds one.
func udpOf(frame []byte) []byte {
	ip := frame[ethLen:]
	return ip[int(ip[0]&0x0f)*4 : binary.BigEndian.Uint16(ip[2:])]
}

// transportOf returns the UDP datagram of a data packet of Weft's transport, or nil when d is something else, a
// fragment or cut short.
func transportOf(frame []byte, d datagram) []byte {
	if d.proto != protoUDP || d.dport != wire.Port {
		return nil
	}
	udp := udpOf(frame)
	if len(udp) < udpLen+int(wire.DataSize) {
		return nil
	}
	if t, err := wire.Peek(udp[udpLen:]); err != nil || t != wire.TypeData {
		return nil
	}
	return udp
}

// asksTelemetry tells whether the header of a data packet leaves room for switches to write.
func asksTelemetry(udp []byte) bool {
	n, err := wire.HeaderLen(udp[udpLen:])
	return err == nil && n > int(wire.DataSize) && udpLen+n <= len(udp) && int(binary.BigEndian.Uint16(udp[udpLengthAt:])) == len(udp)
}

// note writes what switches say of themselves into the data packet in frame, which asked for it.
func note(frame []byte, hops []fabric.Hop) {
	rewrite(udpOf(frame), func(header []byte) {
		for _, h := range hops {
			wire.Stamp(header, wire.Hop{At: h.At, Sent: h.Sent, Queued: h.Queued}) // what does not fit is left out
		}
	})
}

// restamp has the data packet in frame say that it left its NIC at the given instant. The NIC is the fabric's, and a
// sender that was told of a pause too late could not know. A stamp of an imperfect clock is as much later as the packet is
// than its sender foresaw.
func (l *loop) restamp(frame []byte, at units.Time) {
	udp := udpOf(frame)
	if l.cfg.Departs && cap(frame) >= len(frame)+wire.DepartureSize {
		if foreseen, ok := wire.Departure(frame[:len(frame)+wire.DepartureSize]); ok {
			at += departure(udp) - foreseen // stamped late by as much
		}
	}
	rewrite(udp, func(header []byte) { wire.Restamp(header, at) })
}

// cut takes off the frame in p what says when it leaves, and returns that: it stays in the memory behind the frame.
func (l *loop) cut(p *fabric.Packet, d datagram) (at units.Time, ok bool) {
	if !l.cfg.Departs || d.proto != protoUDP {
		return 0, false
	}
	udp := udpOf(p.Header)
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
	p.Size -= wire.DepartureSize
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
