package wire

import (
	"encoding/binary"

	"weft/units"
)

// PauseSize is the size of the header of a pause in bytes.
const PauseSize = CNPSize

// Pause tells a host in emulation that its modelled NIC, which is in another process, was paused or
// resumed for one class of packets (IEEE 802.1Qbb). It is not a packet of the modelled network, and
// endpoints refuse it.
type Pause struct {
	Host   uint32     // number of the receiving host
	Seq    uint32     // sequence number per host, repetitions included
	Class  uint8      // class of the packets
	Held   bool       // paused; false means resumed
	At     units.Time // when it took effect
	Clears units.Time // when the NIC will have drained, if nothing holds it back; not before At
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
	binary.BigEndian.PutUint16(b[12:], checkShort(b))
}

// held is the flag that distinguishes a pause from a resume.
const held Flags = 1 << 0

// Decode reads the header, which must be all of b. If it returns an error, p is undefined.
func (p *Pause) Decode(b []byte) error {
	if err := checkHead(b, TypePause, PauseSize, held, checkShort); err != nil {
		return err
	}
	if b[14] != 0 || len(b) != PauseSize {
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
