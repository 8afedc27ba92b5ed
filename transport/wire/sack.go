package wire

import (
	"encoding/binary"
	"math"

	"weft/units"
)

// SackSize is the size of the header of a selective acknowledgement in bytes.
const SackSize units.Bytes = 56

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
}

// Encode writes the header to the first SackSize bytes of b. Fields must be in range, but OneWay is
// clamped.
func (a *Sack) Encode(b []byte) {
	b = b[:SackSize]
	f := Flags(0)
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

// Decode reads the header at the beginning of b. If it returns an error, a is undefined.
func (a *Sack) Decode(b []byte) error {
	if err := checkHead(b, TypeSack, int(SackSize), CE|Probed, check); err != nil {
		return err
	}
	b = b[:SackSize]
	f := Flags(b[3])
	a.CE, a.Probe = f&CE != 0, f&Probed != 0
	a.Conn = binary.BigEndian.Uint32(b[4:])
	a.Expected = binary.BigEndian.Uint32(b[8:])
	a.Due = units.Time(binary.BigEndian.Uint64(b[16:]))
	a.Received = units.Bytes(binary.BigEndian.Uint64(b[24:]))
	a.Bitmap = binary.BigEndian.Uint64(b[32:])
	psns, last := binary.BigEndian.Uint64(b[40:]), binary.BigEndian.Uint64(b[48:])
	a.Base, a.PSN = uint32(psns>>32), uint32(psns)
	a.Path, a.OutOfOrder, a.OneWay = uint16(last>>48), uint16(last>>32), units.Time(int32(last))*units.Nanosecond
	if a.Received < 0 || int32(a.Base-a.Expected) < 0 || binary.BigEndian.Uint16(b[14:]) != 0 {
		return ErrRange
	}
	return nil
}
