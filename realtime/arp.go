package realtime

import "encoding/binary"

// Layout of an ARP packet for IPv4 over Ethernet (RFC 826), and offsets of its fields in the frame.
const (
	arpLen       = 28
	arpOpAt      = ethLen + 6
	arpSenderMAC = ethLen + 8
	arpSenderIP  = ethLen + 14
	arpTargetMAC = ethLen + 18
	arpTargetIP  = ethLen + 24
	arpRequest   = 1
	arpReply     = 2
	arpFixed     = 0x0001_0800_06_04 // Ethernet, IPv4, and the lengths of their addresses
)

// arpQuery returns the address that an ARP request asks for. ok is false for replies and malformed
// frames.
func arpQuery(frame []byte) (target uint32, ok bool) {
	if len(frame) < ethLen+arpLen || binary.BigEndian.Uint16(frame[arpOpAt:]) != arpRequest {
		return 0, false
	}
	if binary.BigEndian.Uint64(frame[ethLen-2:])&0xffff_ffff_ffff != arpFixed {
		return 0, false
	}
	return binary.BigEndian.Uint32(frame[arpTargetIP:]), true
}

// answerARP turns an ARP request in place into the reply that its target has address mac, and
// returns it.
func answerARP(frame []byte, mac MAC) []byte {
	frame = frame[:ethLen+arpLen]
	asker, target := [10]byte(frame[arpSenderMAC:]), [4]byte(frame[arpTargetIP:])
	copy(frame, asker[:macLen])
	copy(frame[macLen:], mac[:])
	binary.BigEndian.PutUint16(frame[arpOpAt:], arpReply)
	copy(frame[arpSenderMAC:], mac[:])
	copy(frame[arpSenderIP:], target[:])
	copy(frame[arpTargetMAC:], asker[:]) // hardware and protocol address together
	return frame
}
