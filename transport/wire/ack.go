package wire

import (
	"encoding/binary"

	"weft/units"
)

// AckSize is the size of an acknowledgement header in bytes.
const AckSize units.Bytes = 52

// Ack is a cumulative acknowledgement: every packet before Expected has arrived. As a NAK it also
// says that a packet beyond Expected came first, so that the sender must go back to Expected.
type Ack struct {
	Nak      bool
	CE       bool // the packet that caused it was ECN-marked
	Conn     uint32
	Expected uint32          // the next PSN in order
	PSN      uint32          // PSN of the packet that caused it
	SentAt   units.Time      // SentAt of that packet, echoed
	OneWay   units.Time      // its one-way queueing delay (PC4, one_way_delay); clock errors may make it negative
	BaseRate units.Bandwidth // base rate (PC4, base_rate), 0 if none
	Path     uint16          // path of that packet, echoed
	Count    uint16          // number of packets that it acknowledges, at least 1
	Room     uint8           // number of telemetry records that fit behind the header, 0 to MaxHops
}

// Len returns the size of the header with its telemetry, in bytes.
func (a *Ack) Len() units.Bytes { return AckSize + TelemetrySize(int(a.Room)) }

// Encode writes the header to the first Len bytes of b, with an empty table of telemetry if there
// is Room. Fields must be in range.
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

// Decode reads the header at the beginning of b, all Len bytes of it. If it returns an error, a is
// undefined.
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
