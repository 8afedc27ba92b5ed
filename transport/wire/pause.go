package wire

import (
	"encoding/binary"

	"weft/units"
)

// PauseSize is the length of the header of a pause.
const PauseSize = CNPSize

// Pause tells a host that the modelled network card that sends for it has been paused for one class of packets, or
// resumed (IEEE 802.1Qbb), in emulation: there the card is in another process. It is no packet of the modelled
// network, and endpoints refuse it.
type Pause struct {
	Host   uint32     // who is told
	Seq    uint32     // counts what that host is told; repetitions count too
	Class  uint8      // of the packets that are held back
	Held   bool       // false: they may be sent again
	At     units.Time // when that took effect
	Clears units.Time // when the card will have sent what it holds, if nothing holds it back; not before At
}

// Encode writes the header to the first PauseSize bytes of b. Fields must be in range.
func (p *Pause) Encode(b []byte) {
	b = b[:PauseSize]
	var f Flags
	if p.Held {
		f = held
	}
	putPrefix(b, TypePause, f, p.Host, p.Seq, uint16(p.Class))
	binary.BigEndian.PutUint64(b[16:], uint64(p.At))
	binary.BigEndian.PutUint64(b[24:], uint64(p.Clears))
	binary.BigEndian.PutUint16(b[12:], checkCNP(b))
}

// held is the flag of a pause, which a resume does not have.
const held Flags = 1 << 0

// Decode reads the header that is all of b. p is undefined when it returns an error.
func (p *Pause) Decode(b []byte) error {
	t, err := Peek(b)
	switch {
	case err != nil:
		return err
	case t != TypePause:
		return ErrType
	case len(b) < PauseSize:
		return ErrShort
	case binary.BigEndian.Uint16(b[12:]) != checkCNP(b):
		return ErrCheck
	case Flags(b[3])&^held != 0:
		return ErrFlags
	case b[14] != 0 || len(b) != PauseSize:
		return ErrRange
	}
	p.Host = binary.BigEndian.Uint32(b[4:])
	p.Seq = binary.BigEndian.Uint32(b[8:])
	p.Class, p.Held = b[15], Flags(b[3])&held != 0
	p.At = units.Time(binary.BigEndian.Uint64(b[16:]))
	p.Clears = units.Time(binary.BigEndian.Uint64(b[24:]))
	if p.At < 0 || p.Clears < p.At {
		return ErrRange
	}
	return nil
}
