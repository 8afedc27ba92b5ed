package wire

import (
	"encoding/binary"

	"weft/units"
)

// DataSize is the size of a data header in bytes.
const DataSize units.Bytes = 56

// MaxBaseline is the largest baseline delay that a data header can carry: 281 s.
const MaxBaseline units.Time = 1<<48 - 1

// Data is the header of a data packet.
type Data struct {
	Flags        Flags
	Conn         uint32
	PSN          uint32
	Payload      units.Bytes // 1 to MaxPayload
	Message      uint32
	Tag          uint32
	Offset       units.Bytes  // offset of the payload in the message; Offset+Payload is at most Size
	Size         units.Bytes  // size of the message
	SentAt       units.Time   // when the packet left the NIC, by the sender's clock (PC4, tx_time)
	Baseline     units.Time   // delay of this packet on an idle path (PC4, baseline), 0 to MaxBaseline
	Path         uint16       // path of the connection that it was sent on
	Coordination Coordination // tag behind the header; excludes telemetry
	Room         uint8        // number of telemetry records that fit behind the header, 0 to MaxHops
	Request      Request      // behind the header of a packet that may be trimmed; excludes the two above
	Trimmed      bool         // a switch has cut the payload off
	LastHop      bool         // Trimmed: it was the last switch on the path
}

// Len returns the size of the header with its coordination tag or telemetry, in bytes.
func (d *Data) Len() units.Bytes {
	n := DataSize + TelemetrySize(int(d.Room))
	if d.Coordination.On {
		n += CoordinationSize
	}
	if d.Request.On {
		n += RequestSize
	}
	return n
}

// Encode writes the header to the first Len bytes of b, with an empty table of telemetry if there
// is Room. Fields must be in range. Encode sets the flags of what follows the header itself.
func (d *Data) Encode(b []byte) {
	flags, t := d.Flags, TypeData
	if d.Request.On {
		flags |= Trimmable
		binary.BigEndian.PutUint32(b[DataSize:], d.Request.Target)
		if d.Trimmed {
			t = TypeTrimmed
		}
		if d.LastHop {
			flags |= LastHop
		}
	}
	if d.Room > 0 {
		flags |= Telemetry
		clearTelemetry(b[DataSize:], d.Room)
	}
	if d.Coordination.On {
		flags |= Coordinated
		putShim(b[DataSize:], d.Coordination)
	}
	b = b[:DataSize]
	putPrefix(b, t, flags, d.Conn, d.PSN, uint16(d.Payload))
	binary.BigEndian.PutUint32(b[16:], d.Message)
	binary.BigEndian.PutUint32(b[20:], d.Tag)
	binary.BigEndian.PutUint64(b[24:], uint64(d.Offset))
	binary.BigEndian.PutUint64(b[32:], uint64(d.Size))
	binary.BigEndian.PutUint64(b[40:], uint64(d.SentAt))
	binary.BigEndian.PutUint64(b[48:], uint64(d.Baseline)<<16|uint64(d.Path))
	seal(b)
}

// Decode reads the header at the beginning of b, all Len bytes of it. If it returns an error, d is
// undefined.
func (d *Data) Decode(b []byte) error {
	t, err := Peek(b)
	switch {
	case err != nil:
		return err
	case t != TypeData && t != TypeTrimmed:
		return ErrType
	case len(b) < int(DataSize):
		return ErrShort
	}
	behind := b[DataSize:]
	b = b[:DataSize]
	if !sealed(b) {
		return ErrCheck
	}
	if !dataFlags(t, Flags(b[3])) {
		return ErrFlags
	}
	d.Flags, d.Room, d.Coordination = Flags(b[3])&^(behindData|LastHop), 0, Coordination{}
	d.Trimmed, d.LastHop, d.Request = t == TypeTrimmed, Flags(b[3])&LastHop != 0, Request{}
	if Flags(b[3])&Trimmable != 0 {
		if d.Request, err = readRequest(behind); err != nil {
			return err
		}
	}
	if Flags(b[3])&Coordinated != 0 {
		if d.Coordination, err = readShim(behind); err != nil {
			return err
		}
	}
	if Flags(b[3])&Telemetry != 0 {
		if d.Room, err = checkTelemetry(behind); err != nil {
			return err
		}
	}
	d.Conn = binary.BigEndian.Uint32(b[4:])
	d.PSN = binary.BigEndian.Uint32(b[8:])
	d.Payload = units.Bytes(binary.BigEndian.Uint16(b[14:]))
	d.Message = binary.BigEndian.Uint32(b[16:])
	d.Tag = binary.BigEndian.Uint32(b[20:])
	d.Offset = units.Bytes(binary.BigEndian.Uint64(b[24:]))
	d.Size = units.Bytes(binary.BigEndian.Uint64(b[32:]))
	d.SentAt = units.Time(binary.BigEndian.Uint64(b[40:]))
	last := binary.BigEndian.Uint64(b[48:])
	d.Baseline, d.Path = units.Time(last>>16), uint16(last)
	if d.Payload < 1 || d.Size < 1 || d.Offset < 0 || d.Payload > d.Size || d.Offset > d.Size-d.Payload {
		return ErrRange
	}
	if d.Flags&Announce != 0 != (d.Offset == 0) || d.Flags&Fin != 0 && d.Offset+d.Payload != d.Size {
		return ErrFlags
	}
	return nil
}

// behindData is the flags that say what follows the header of a data packet. At most one is set.
const behindData = Telemetry | Coordinated | Trimmable

// dataFlags reports whether f are flags that a data packet, trimmed or not, can have.
func dataFlags(t Type, f Flags) bool {
	allowed := Announce | Fin | AckNow | behindData
	behind := f & behindData
	if t == TypeTrimmed {
		return behind == Trimmable && f&^(allowed|LastHop) == 0
	}
	return behind&(behind-1) == 0 && f&^allowed == 0
}
