package wire

import (
	"encoding/binary"

	"weft/units"
)

// Shape describes where switches read and write in a data packet. ShapeOf validates the header
// once; a Shape is small enough to be kept with the packet, so that nobody parses the header again.
// The zero Shape is that of any other packet: nothing is read from it or written to it. The methods
// take the bytes that ShapeOf was given.
type Shape uint8

const (
	shapeData   Shape = 1 << 7
	shapeTagged Shape = 1 << 6
	shapeTrims  Shape = 1 << 5
	shapeRoom   Shape = 1<<4 - 1 // records of telemetry that fit
)

// ShapeOf decodes the data packet at the beginning of b. An error says why receivers will refuse
// the packet, or that it is not data.
func ShapeOf(b []byte) (Shape, error) {
	var d Data
	if err := d.Decode(b); err != nil {
		return 0, err
	}
	if d.Trimmed {
		return 0, ErrType
	}
	s := shapeData | Shape(d.Room)
	if d.Coordination.On {
		s |= shapeTagged
	}
	if d.Request.On {
		s |= shapeTrims
	}
	return s, nil
}

// Data reports whether the packet is a data packet of the transport.
func (s Shape) Data() bool { return s&shapeData != 0 }

// Asks reports whether the packet has room for telemetry.
func (s Shape) Asks() bool { return s&shapeRoom != 0 }

// Keep returns the bytes of headers that remain on the wire if the packet is trimmed, 0 if it must
// not be.
func (s Shape) Keep() uint8 {
	if s&shapeTrims == 0 {
		return 0
	}
	return trimmedSize
}

// Trim makes the header of a packet that may be trimmed that of a trimmed packet, and returns its
// length. last says that the packet was at the last switch of its path.
func (s Shape) Trim(b []byte, last bool) (n int) {
	trim(b, last)
	return int(DataSize + RequestSize)
}

// Records returns the packet's telemetry.
func (s Shape) Records(b []byte) Records {
	if !s.Asks() {
		return Records{}
	}
	return table(b[DataSize:], uint8(s&shapeRoom))
}

// Tag returns the packet's coordination tag. On is false if it has none.
func (s Shape) Tag(b []byte) Coordination {
	if s&shapeTagged == 0 {
		return Coordination{}
	}
	b = b[DataSize:]
	return Coordination{On: true, CC: b[0] == 1, AR: binary.BigEndian.Uint16(b[2:])}
}

// SetTag overwrites the tag of a packet, if it has one.
func (s Shape) SetTag(b []byte, c Coordination) {
	if s&shapeTagged != 0 {
		putShim(b[DataSize:], c)
	}
}

// SentAt returns when the packet left its NIC, by its sender's clock.
func (s Shape) SentAt(b []byte) units.Time {
	if !s.Data() {
		return 0
	}
	return units.Time(binary.BigEndian.Uint64(b[sentAtByte:]))
}

// Restamp changes the instant at which the packet left its NIC.
func (s Shape) Restamp(b []byte, at units.Time) {
	if !s.Data() {
		return
	}
	b = b[:DataSize]
	binary.BigEndian.PutUint64(b[sentAtByte:], uint64(at))
	seal(b)
}

// sentAtByte is the offset of SentAt in a data header.
const sentAtByte = 40
