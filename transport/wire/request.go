package wire

import (
	"encoding/binary"

	"weft/units"
)

// Request is what a packet that may be trimmed says to its receiver's credit scheduler. It lies
// behind the header, in RequestSize bytes.
type Request struct {
	On     bool   // the packet may be trimmed, and has a target
	Target uint32 // credit that the sender would like to have been granted, in CreditUnit, modulo 2³²
}

// RequestSize is the size of a request in bytes.
const RequestSize = 4

// CreditUnit is the unit of credits, in bytes (UEC: the pull quantum; htsim, uecpacket.h,
// UEC_PULL_QUANTUM).
const CreditUnit units.Bytes = 256

// trimmedSize is the size on the wire of a trimmed packet.
const trimmedSize = uint8(DataSize + RequestSize + Overhead)

// readRequest reads the request at the beginning of b.
func readRequest(b []byte) (Request, error) {
	if len(b) < RequestSize {
		return Request{}, ErrShort
	}
	return Request{On: true, Target: binary.BigEndian.Uint32(b)}, nil
}

// PeekKeep returns what Shape.Keep would for the packet with header b. Nothing is checked but type
// and flags: this is for the simulator, whose hosts write valid headers.
func PeekKeep(b []byte) uint8 {
	if len(b) < int(DataSize) || Flags(b[3])&Trimmable == 0 {
		return 0
	}
	if t, err := Peek(b); err != nil || t != TypeData {
		return 0
	}
	return trimmedSize
}

// PeekTrim is Shape.Trim where PeekKeep has found that the packet may be trimmed.
func PeekTrim(b []byte, last bool) { trim(b, last) }

// trim changes the type of the data header at the beginning of b.
func trim(b []byte, last bool) {
	b = b[:DataSize]
	b[2] = byte(TypeTrimmed)
	if last {
		b[3] |= byte(LastHop)
	}
	b[12], b[13] = 0, 0
	seal(b)
}
