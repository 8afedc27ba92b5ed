package wire

import (
	"encoding/binary"
	"math"

	"weft/units"
)

// SackSize is the size of the header of a selective acknowledgement in bytes.
const SackSize units.Bytes = 56

// RateSize is the size of a base rate behind a selective acknowledgement in bytes.
const RateSize units.Bytes = 8

// SackBits is the number of packets in the bitmap of a selective acknowledgement.
const SackBits = 64

// Sack is a selective acknowledgement (STrack, section 3.3.1): every packet before Expected has
// arrived, and among the SackBits packets from Base those whose bit is set.
type Sack struct {
	CE         bool // the packet that caused it was ECN-marked
	Probe      bool // a probe caused it
	Conn       uint32
	Expected   uint32      // EPSN, the next PSN in order
	Base       uint32      // PSN of bit 0, at or after Expected
	Bitmap     uint64      // bit i: packet Base+i has arrived
	Received   units.Bytes // bytes on the wire of all packets that have arrived, without duplicates
	OutOfOrder uint16      // number of packets beyond Expected that have arrived
	PSN        uint32      // PSN of the packet that caused it, or that a probe asked for
	Due        units.Time  // SentAt plus Baseline of that packet, when it was due on an idle path
	OneWay     units.Time  // its one-way queueing delay in whole nanoseconds, within ±2 s
	Path       uint16      // path of that packet, echoed

	Rated    bool            // a base rate follows the header; excludes telemetry
	BaseRate units.Bandwidth // Rated: base rate (PC4, base_rate), 0 if none
	Room     uint8           // number of telemetry records that fit behind the header, 0 to MaxHops
}

// Len returns the size of the header with its base rate or telemetry, in bytes.
func (a *Sack) Len() units.Bytes {
	n := SackSize + TelemetrySize(int(a.Room))
	if a.Rated {
		n += RateSize
	}
	return n
}

// Encode writes the header to the first Len bytes of b, with an empty table of telemetry if there
// is Room. Fields must be in range, but OneWay is clamped.
func (a *Sack) Encode(b []byte) {
	f := Flags(0)
	if a.Rated {
		f |= Rated
		binary.BigEndian.PutUint64(b[SackSize:], uint64(a.BaseRate))
	}
	if a.Room > 0 {
		f |= Telemetry
		clearTelemetry(b[SackSize:], a.Room)
	}
	b = b[:SackSize]
	if a.CE {
		f |= CE
	}
	if a.Probe {
		f |= Probed
	}
	putPrefix(b, TypeSack, f, a.Conn, a.Expected, 0)
	oneWay := min(max(a.OneWay/units.Nanosecond, math.MinInt32), math.MaxInt32)
	binary.BigEndian.PutUint64(b[16:], uint64(a.Due))
	binary.BigEndian.PutUint64(b[24:], uint64(a.Received))
	binary.BigEndian.PutUint64(b[32:], a.Bitmap)
	binary.BigEndian.PutUint64(b[40:], uint64(a.Base)<<32|uint64(a.PSN))
	binary.BigEndian.PutUint64(b[48:], uint64(a.Path)<<48|uint64(a.OutOfOrder)<<32|uint64(uint32(oneWay)))
	seal(b)
}

// Decode reads the header at the beginning of b, all Len bytes of it. If it returns an error, a is
// undefined.
func (a *Sack) Decode(b []byte) (err error) {
	if err := checkHead(b, TypeSack, int(SackSize), CE|Probed|Rated|Telemetry, check); err != nil {
		return err
	}
	behind := b[SackSize:]
	b = b[:SackSize]
	f := Flags(b[3])
	a.CE, a.Probe, a.Rated, a.BaseRate, a.Room = f&CE != 0, f&Probed != 0, f&Rated != 0, 0, 0
	switch {
	case f&(Rated|Telemetry) == Rated|Telemetry:
		return ErrFlags
	case a.Rated && len(behind) < int(RateSize):
		return ErrShort
	case a.Rated:
		a.BaseRate = units.Bandwidth(binary.BigEndian.Uint64(behind))
	case f&Telemetry != 0:
		if a.Room, err = checkTelemetry(behind); err != nil {
			return err
		}
	}
	a.Conn = binary.BigEndian.Uint32(b[4:])
	a.Expected = binary.BigEndian.Uint32(b[8:])
	a.Due = units.Time(binary.BigEndian.Uint64(b[16:]))
	a.Received = units.Bytes(binary.BigEndian.Uint64(b[24:]))
	a.Bitmap = binary.BigEndian.Uint64(b[32:])
	psns, last := binary.BigEndian.Uint64(b[40:]), binary.BigEndian.Uint64(b[48:])
	a.Base, a.PSN = uint32(psns>>32), uint32(psns)
	a.Path, a.OutOfOrder, a.OneWay = uint16(last>>48), uint16(last>>32), units.Time(int32(last))*units.Nanosecond
	if a.Received < 0 || a.BaseRate < 0 || int32(a.Base-a.Expected) < 0 || binary.BigEndian.Uint16(b[14:]) != 0 {
		return ErrRange
	}
	return nil
}
