package wire

import (
	"encoding/binary"

	"weft/units"
)

// Both headers of this file have the prefix and the length of a CNP, since neither carries a
// payload. What they leave open has to be zero, so that a message has one encoding.

// RejectSize is the size of the header of a rejection in bytes.
const RejectSize = CNPSize

// Reject tells a sender that only the header of a packet has arrived (UEC: NACK with the code for a
// trimmed packet).
type Reject struct {
	CE      bool // the trimmed packet was ECN-marked
	LastHop bool // the last switch on the path trimmed it
	Conn    uint32
	PSN     uint32     // number of that packet
	Due     units.Time // its SentAt plus Baseline: when it was due on an idle path
	Path    uint16     // its path, echoed
}

// Encode writes the header to the first RejectSize bytes of b.
func (r *Reject) Encode(b []byte) {
	b = b[:RejectSize]
	f := Flags(0)
	if r.CE {
		f |= CE
	}
	if r.LastHop {
		f |= LastHop
	}
	putPrefix(b, TypeReject, f, r.Conn, r.PSN, 0)
	binary.BigEndian.PutUint64(b[16:], uint64(r.Due))
	binary.BigEndian.PutUint64(b[24:], uint64(r.Path)<<48)
	binary.BigEndian.PutUint16(b[12:], checkShort(b))
}

// Decode reads the header at the beginning of b. If it returns an error, r is undefined.
func (r *Reject) Decode(b []byte) error {
	if err := checkHead(b, TypeReject, RejectSize, CE|LastHop, checkShort); err != nil {
		return err
	}
	last := binary.BigEndian.Uint64(b[24:])
	r.CE, r.LastHop = Flags(b[3])&CE != 0, Flags(b[3])&LastHop != 0
	r.Conn = binary.BigEndian.Uint32(b[4:])
	r.PSN = binary.BigEndian.Uint32(b[8:])
	r.Due = units.Time(binary.BigEndian.Uint64(b[16:]))
	r.Path = uint16(last >> 48)
	if last<<16 != 0 || b[14] != 0 || b[15] != 0 {
		return ErrRange
	}
	return nil
}

// CreditSize is the size of the header of a credit in bytes.
const CreditSize = CNPSize

// Credit tells a sender how much its receiver has granted since the connection began. It is a
// total, so losing a credit costs time only (UEC: a credit message; htsim, UecPullPacket).
type Credit struct {
	Conn    uint32
	Granted uint32 // in CreditUnit, modulo 2³²
}

// Encode writes the header to the first CreditSize bytes of b.
func (c *Credit) Encode(b []byte) {
	b = b[:CreditSize]
	putPrefix(b, TypeCredit, 0, c.Conn, c.Granted, 0)
	clear(b[16:])
	binary.BigEndian.PutUint16(b[12:], checkShort(b))
}

// Decode reads the header at the beginning of b. If it returns an error, c is undefined.
func (c *Credit) Decode(b []byte) error {
	if err := checkHead(b, TypeCredit, CreditSize, 0, checkShort); err != nil {
		return err
	}
	if b[14] != 0 || b[15] != 0 || binary.BigEndian.Uint64(b[16:]) != 0 || binary.BigEndian.Uint64(b[24:]) != 0 {
		return ErrRange
	}
	c.Conn = binary.BigEndian.Uint32(b[4:])
	c.Granted = binary.BigEndian.Uint32(b[8:])
	return nil
}
