package ptp

import (
	"encoding/binary"

	"weft/clocksync"
	"weft/units"
)

// udpHeader is the length of a UDP header; the checksum is its last word.
const udpHeader = 8

// HoldDatagram is clocksync.AddResidence for a UDP datagram, header included: it also makes the checksum right again
// (RFC 1624, equation 3), unless the sender left it out. It changes event messages to the event port only, and tells
// whether it did.
func HoldDatagram(datagram []byte, residence units.Time) bool {
	if len(datagram) < udpHeader || binary.BigEndian.Uint16(datagram[2:]) != clocksync.EventPort {
		return false
	}
	message := datagram[udpHeader:]
	if len(message) < headerSize {
		return false
	}
	field := message[8:16]
	before := sum(field)
	if !clocksync.AddResidence(message, residence) {
		return false
	}
	if check := binary.BigEndian.Uint16(datagram[6:]); check != 0 {
		check = ^fold(uint32(^check) + uint32(^before) + uint32(sum(field)))
		if check == 0 {
			check = 0xffff // 0 says that there is none (RFC 768)
		}
		binary.BigEndian.PutUint16(datagram[6:], check)
	}
	return true
}

// HoldFrame is HoldDatagram for an Ethernet frame with IPv4. Fragments are left alone.
func HoldFrame(frame []byte, residence units.Time) bool {
	const (
		ethernet  = 14
		ipv4      = 0x0800
		udp       = 17
		fragments = 0x3fff // more fragments, or an offset
	)
	if len(frame) < ethernet+20 || binary.BigEndian.Uint16(frame[12:]) != ipv4 {
		return false
	}
	ip := frame[ethernet:]
	header, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || header < 20 || total < header || total > len(ip) || ip[9] != udp || binary.BigEndian.Uint16(ip[6:])&fragments != 0 {
		return false
	}
	return HoldDatagram(ip[header:total], residence)
}

// sum is the ones' complement sum of the words of b, whose length is even.
func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	return fold(s)
}

func fold(s uint32) uint16 {
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}
