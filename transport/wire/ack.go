package wire

import (
	"encoding/binary"

	"weft/units"
)

// AckSize is the length of the header of an acknowledgement.
const AckSize units.Bytes = 52

// Ack is an acknowledgement: every packet before Expected has arrived. As a NAK it says as well that a packet
// beyond Expected came first, so that the sender must go back to Expected.
type Ack struct {
	Nak      bool
	CE       bool // the packet that caused it was marked
	Conn     uint32
	Expected uint32          // the next PSN in order
	PSN      uint32          // of the packet that caused it
	SentAt   units.Time      // of that packet, echoed
	OneWay   units.Time      // its queueing delay on the way (PC4, one_way_delay); clocks may make it negative
	BaseRate units.Bandwidth // PC4, base_rate; 0: none
	Path     uint16          // of that packet, echoed
	Count    uint16          // packets it stands for, at least 1
	Room     uint8           // records of telemetry that fit behind the header, 0 to MaxHops
}

// Len is the length of the header with its table of telemetry.
func (a *Ack) Len() units.Bytes { return AckSize + TelemetrySize(int(a.Room)) }

// Encode writes the header to the first AckSize bytes of b, and an empty table of telemetry behind it if there is Room.
// Fields must be in range.
func (a *Ack) Encode(b []byte) {
	t, f := TypeAck, Flags(0)
	if a.Room > 0 {
		f |= Telemetry
		clearTelemetry(b[AckSize:], a.Room)
	}
	b = b[:AckSize]
	if a.Nak {
		t = TypeNak
	}
	if a.CE {
		f |= CE
	}
	putPrefix(b, t, f, a.Conn, a.Expected, 0)
	binary.BigEndian.PutUint64(b[16:], uint64(a.SentAt))
	binary.BigEndian.PutUint64(b[24:], uint64(a.OneWay))
	binary.BigEndian.PutUint64(b[32:], uint64(a.BaseRate))
	binary.BigEndian.PutUint64(b[40:], uint64(a.PSN)<<32|uint64(a.Path)<<16|uint64(a.Count))
	binary.BigEndian.PutUint32(b[48:], 0)
	seal(b)
}

// Decode reads the header that b begins with, all Len bytes of it. a is undefined when it returns an error.
func (a *Ack) Decode(b []byte) error {
	t, err := Peek(b)
	switch {
	case err != nil:
		return err
	case t != TypeAck && t != TypeNak:
		return ErrType
	case len(b) < int(AckSize):
		return ErrShort
	}
	behind := b[AckSize:]
	b = b[:AckSize]
	if !sealed(b) {
		return ErrCheck
	}
	if b[3]&^byte(CE|Telemetry) != 0 {
		return ErrFlags
	}
	a.Nak, a.CE, a.Room = t == TypeNak, Flags(b[3])&CE != 0, 0
	if Flags(b[3])&Telemetry != 0 {
		if a.Room, err = checkTelemetry(behind); err != nil {
			return err
		}
	}
	a.Conn = binary.BigEndian.Uint32(b[4:])
	a.Expected = binary.BigEndian.Uint32(b[8:])
	a.SentAt = units.Time(binary.BigEndian.Uint64(b[16:]))
	a.OneWay = units.Time(binary.BigEndian.Uint64(b[24:]))
	a.BaseRate = units.Bandwidth(binary.BigEndian.Uint64(b[32:]))
	last := binary.BigEndian.Uint64(b[40:])
	a.PSN, a.Path, a.Count = uint32(last>>32), uint16(last>>16), uint16(last)
	if a.BaseRate < 0 || a.Count < 1 || binary.BigEndian.Uint16(b[14:]) != 0 || binary.BigEndian.Uint32(b[48:]) != 0 {
		return ErrRange
	}
	return nil
}
