package wire

import (
	"encoding/binary"
	"errors"

	"weft/units"
)

// Port is the UDP destination port of all packets of the transport.
const Port = 4793

// Overhead is the size of a packet on a link beyond transport header and payload, in bytes:
// Ethernet header 14, IPv4 header 20, UDP header 8, frame check sequence 4.
const Overhead units.Bytes = 46

// TOSControl is the least value of the IPv4 header's TOS field in packets that networks serve
// first: class selector 6, network control (RFC 2474, section 4.2.2). Acknowledgements and
// notifications have it.
const TOSControl = 0xc0

// Version is the version of the layout.
const Version = 1

// Type is the type of a packet.
type Type uint8

// Types of packet. Numbers from 12 are free.
const (
	TypeData   Type = 1
	TypeAck    Type = 2
	TypeNak    Type = 3 // go back: the expected packet was overtaken (IB, sequence error)
	TypeCNP    Type = 4 // congestion notification (DCQCN)
	TypeSack   Type = 5 // selective acknowledgement (STrack)
	TypeProbe  Type = 6 // requests a selective acknowledgement (STrack)
	TypeNotice Type = 8 // notice of a switch about a flow (CCM)
	TypePause  Type = 7 // the host's NIC is paused or resumed (IEEE 802.1Qbb), in emulation

	TypeTrimmed Type = 9  // the header of a data packet whose payload a switch has cut off (UEC)
	TypeReject  Type = 10 // a trimmed packet has arrived: send it again (UEC, NACK)
	TypeCredit  Type = 11 // a receiver's credit (UEC, pull)
)

// Flags are the one-bit fields of a header.
type Flags uint8

// Flags of data packets and of acknowledgements.
const (
	Announce    Flags = 1 << 0 // data: the first packet of a message
	Fin         Flags = 1 << 1 // data: the sender has nothing queued behind this packet
	CE          Flags = 1 << 2 // ack: the packet arrived with congestion experienced
	Telemetry   Flags = 1 << 3 // both: telemetry of switches follows the header (HPCC)
	Rated       Flags = 1 << 4 // selective ack: a base rate follows the header (PC4)
	AckNow      Flags = 1 << 4 // data: requests an acknowledgement at once (STrack, section 3.3.1)
	Coordinated Flags = 1 << 6 // data: a coordination tag follows the header (CCM)
	Probed      Flags = 1 << 5 // selective ack: a probe caused it
	LastHop     Flags = 1 << 5 // trimmed, reject: the last switch on the path cut the packet (UEC)
	Trimmable   Flags = 1 << 7 // data: a request follows the header, and switches may trim the packet (UEC)
)

const (
	magic      = 'W'
	prefixSize = 16

	// MaxPayload is the largest payload of a packet in bytes.
	MaxPayload units.Bytes = 1<<16 - 1
)

// Errors of the decoders.
var (
	ErrShort   = errors.New("wire: header is cut short")
	ErrMagic   = errors.New("wire: not a packet of this transport")
	ErrVersion = errors.New("wire: unknown version")
	ErrType    = errors.New("wire: unknown or unexpected type")
	ErrFlags   = errors.New("wire: flag that the type does not have")
	ErrCheck   = errors.New("wire: check does not match")
	ErrRange   = errors.New("wire: field out of range")
)

// Peek returns the type of the packet that b begins with, after checking magic and version only.
func Peek(b []byte) (Type, error) {
	if len(b) < prefixSize {
		return 0, ErrShort
	}
	if b[0] != magic {
		return 0, ErrMagic
	}
	if b[1] != Version {
		return 0, ErrVersion
	}
	return Type(b[2]), nil
}

// checkHead returns an error unless b begins with a header of the given type and size, whose check
// is that of sum, and which has no other flags than the allowed ones.
func checkHead(b []byte, t Type, size int, allowed Flags, sum func([]byte) uint16) error {
	got, err := Peek(b)
	switch {
	case err != nil:
		return err
	case got != t:
		return ErrType
	case len(b) < size:
		return ErrShort
	case binary.BigEndian.Uint16(b[12:]) != sum(b[:size]):
		return ErrCheck
	case Flags(b[3])&^allowed != 0:
		return ErrFlags
	}
	return nil
}

// putPrefix writes the common fields. seal fills in the check.
func putPrefix(b []byte, t Type, f Flags, conn, psn uint32, payload uint16) {
	_ = b[prefixSize-1]
	b[0], b[1], b[2], b[3] = magic, Version, byte(t), byte(f)
	binary.BigEndian.PutUint32(b[4:], conn)
	binary.BigEndian.PutUint32(b[8:], psn)
	binary.BigEndian.PutUint16(b[12:], 0)
	binary.BigEndian.PutUint16(b[14:], payload)
}

// seal writes the check over header b, whose check field must be zero.
func seal(b []byte) { binary.BigEndian.PutUint16(b[12:], check(b)) }

// sealed reports whether the check of header b is right.
func sealed(b []byte) bool { return binary.BigEndian.Uint16(b[12:]) == check(b) }

// keys are odd numbers without structure (SplitMix64 from 1), one per word of a header.
var keys = [8]uint64{
	0x910a2dec89025cc1, 0xbeeb8da1658eec67, 0xf893a2eefb32555f, 0x71c18690ee42c90b,
	0x71bb54d8d101b5b9, 0xc34d0bff90150281, 0xe099ec6cd7363ca5, 0x85e7bb0f12278575,
}

// check returns a multilinear hash of the words of a header without the check itself. A header is
// 48 bytes plus a half or a whole word. It detects garbage and stray packets; the UDP checksum
// detects corruption. It does not cover telemetry, which switches write.
func check(b []byte) uint16 {
	const butCheck = 0xffffffff_0000ffff // bytes 12 and 13, in the second word
	_ = b[51]
	h := binary.BigEndian.Uint64(b)*keys[0] + (binary.BigEndian.Uint64(b[8:])&butCheck)*keys[1] +
		binary.BigEndian.Uint64(b[16:])*keys[2] + binary.BigEndian.Uint64(b[24:])*keys[3] +
		binary.BigEndian.Uint64(b[32:])*keys[4] + binary.BigEndian.Uint64(b[40:])*keys[5]
	if len(b) >= int(DataSize) {
		h += binary.BigEndian.Uint64(b[48:]) * keys[6]
	} else {
		h += uint64(binary.BigEndian.Uint32(b[48:])) * keys[6]
	}
	h ^= h >> 32 // the high half decides the result; let the low one reach it
	return uint16((h * keys[7]) >> 48)
}

// checkShort returns the check of all of b, a header that is shorter than check needs, as if zeros
// followed.
func checkShort(b []byte) uint16 {
	var full [AckSize]byte
	copy(full[:], b)
	return check(full[:])
}
