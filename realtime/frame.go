package realtime

import (
	"encoding/binary"

	"weft/fabric"
	"weft/transport/wire"
)

// Layout of Ethernet II and IPv4 (RFC 894, RFC 791).
const (
	macLen      = 6
	ethLen      = 14
	ethTypeAt   = 12
	typeIPv4    = 0x0800
	typeARP     = 0x0806
	ipMin       = 20
	ipTOSAt     = ethLen + 1
	ipSumAt     = ethLen + 10
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoSCTP   = 132
	fragmentAny = 0x3fff // more-fragments flag and fragment offset
	fcsLen      = 4      // on the wire, but not in the frames of a TAP
)

// MAC is an Ethernet address.
type MAC [macLen]byte

// datagram has the fields of an IPv4 frame that the fabric process needs.
type datagram struct {
	src, dst     uint32 // addresses
	proto        uint8
	tos          uint8
	sport, dport uint16 // 0 for fragments and for protocols without ports
	// udp is the offset in the frame of the header of a UDP datagram. 0: it is no UDP datagram, a
	// fragment, or cut short.
	udp      uint8
	fragment bool
}

// etherType returns the frame's type, or 0 if the frame is too short to have one.
func etherType(frame []byte) uint16 {
	if len(frame) < ethLen {
		return 0
	}
	return binary.BigEndian.Uint16(frame[ethTypeAt:])
}

// parseIPv4 parses the headers of a frame of type IPv4. ok is false if they are malformed.
func parseIPv4(frame []byte) (d datagram, ok bool) {
	if len(frame) < ethLen+ipMin {
		return d, false
	}
	ip := frame[ethLen:]
	header, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || header < ipMin || total < header || total > len(ip) {
		return d, false
	}
	d = datagram{
		src:   binary.BigEndian.Uint32(ip[12:]),
		dst:   binary.BigEndian.Uint32(ip[16:]),
		proto: ip[9],
		tos:   ip[1],
	}
	if binary.BigEndian.Uint16(ip[6:])&fragmentAny != 0 {
		d.fragment = true
		return d, true // only the first fragment has ports, and all must take the same path
	}
	switch d.proto {
	case protoTCP, protoUDP, protoSCTP:
		if total >= header+4 {
			d.sport = binary.BigEndian.Uint16(ip[header:])
			d.dport = binary.BigEndian.Uint16(ip[header+2:])
		}
		if d.proto == protoUDP && total >= header+udpLen {
			d.udp = uint8(ethLen + header)
		}
	}
	return d, true
}

// icmpError reports whether the frame of d is an ICMP error (RFC 1122, section 3.2.2), which
// answers another packet. The frame must have passed parseIPv4.
func icmpError(frame []byte, d *datagram) bool {
	at := int(frame[ethLen]&0x0f) * 4
	if d.proto != protoICMP || d.fragment || int(binary.BigEndian.Uint16(frame[ethLen+2:])) <= at {
		return false
	}
	switch frame[ethLen+at] {
	case 3, 4, 5, 11, 12: // destination unreachable, source quench, redirect, time exceeded, parameter problem
		return true
	}
	return false
}

// class returns the fabric's priority class of a datagram: 0, which is served first, for the
// precedences of network control (class selectors CS6 and CS7, RFC 2474, section 4.2.2), which
// Weft's acknowledgements have; 1 for all others.
func (d datagram) class() uint8 {
	if d.tos >= wire.TOSControl {
		return 0
	}
	return 1
}

func (d datagram) ecn() fabric.ECN { return fabric.ECN(d.tos & 3) }

// markCE sets CE (congestion experienced) in the IPv4 header of frame and updates the header
// checksum incrementally (RFC 1624, equation 3). The frame must have passed parseIPv4.
func markCE(frame []byte) {
	old := binary.BigEndian.Uint16(frame[ethLen:]) // version, header length and TOS: one word of the checksum
	frame[ipTOSAt] |= uint8(fabric.CE)
	changed := binary.BigEndian.Uint16(frame[ethLen:])
	sum := binary.BigEndian.Uint16(frame[ipSumAt:])
	binary.BigEndian.PutUint16(frame[ipSumAt:], updateChecksum(sum, old, changed))
}

// updateChecksum returns a checksum after one of its 16-bit words has changed from old to changed.
// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
func updateChecksum(sum, old, changed uint16) uint16 {
	s := uint32(^sum) + uint32(^old) + uint32(changed)
	s = s&0xffff + s>>16
	s = s&0xffff + s>>16
	return ^uint16(s)
}
