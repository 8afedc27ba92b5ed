package wire

import (
	"encoding/binary"

	"weft/units"
)

// MaxHops is the largest number of telemetry records in a packet.
const MaxHops = 8

// Telemetry follows the header of a data packet, whose sender leaves room for it, and that of an
// acknowledgement, which returns it:
//
//	0  records that fit (1)   1  records written (1)   2  reserved, zero (2)
//	4  first record: instant (5), sent (4), queued (3); then the next
//
// Instants are nanoseconds modulo 2^40 (18 minutes), bytes sent are in units of 16 modulo 2^32 (64
// GiB), and queues in units of 64 bytes up to 2^24 (1 GiB). The records of HPCC itself (SIGCOMM
// 2019, Fig. 7) have 8 bytes with a rate, but their time wraps after 17 ms and their queue ends at
// 10 MB for 25 Gb/s, less than the incasts that it is compared on. Here rates are known from the
// topology.
const (
	telemetryPrefix = 4
	recordSize      = 12
)

// Units and ranges of a record.
const (
	atUnit     = units.Nanosecond
	sentUnit   = 16
	queuedUnit = 64
	atBits     = 40
	sentBits   = 32
	queuedMax  = 1<<24 - 1
)

// Hop is the telemetry that a switch port writes when it begins to transmit a packet.
type Hop struct {
	At     units.Time  // when, by the switch's clock
	Sent   units.Bytes // bytes that the port had sent before
	Queued units.Bytes // bytes queued behind the packet
}

// TelemetrySize returns the size of telemetry with room for a number of records, in bytes. It is 0
// for none.
func TelemetrySize(hops int) units.Bytes {
	if hops == 0 {
		return 0
	}
	return telemetryPrefix + units.Bytes(hops)*recordSize
}

// Records is the telemetry of one packet, in its buffer. Only encoding and decoding a packet make
// Records, so the buffer is always large enough. The zero Records have no room.
type Records struct{ b []byte }

// table returns the table with room for a number of records at the beginning of b, which is long
// enough.
func table(b []byte, room uint8) Records {
	if room == 0 {
		return Records{}
	}
	return Records{b[:TelemetrySize(int(room))]}
}

// Records returns the telemetry of the packet b, from which d was decoded or to which it was
// encoded.
func (d *Data) Records(b []byte) Records { return table(b[DataSize:], d.Room) }

// Records returns the telemetry of the packet b, from which a was decoded or to which it was
// encoded.
func (a *Ack) Records(b []byte) Records { return table(b[AckSize:], a.Room) }

// Records returns the telemetry of the packet b, from which a was decoded or to which it was
// encoded.
func (a *Sack) Records(b []byte) Records { return table(b[SackSize:], a.Room) }

// sizes returns the number of records that fit, and the number written.
func (t Records) sizes() (room, written int) {
	if len(t.b) < telemetryPrefix {
		return 0, 0
	}
	room = (len(t.b) - telemetryPrefix) / recordSize
	return room, min(room, int(t.b[1]))
}

// Stamp adds the record of a switch. It returns false, and changes nothing, if there is no room
// left.
func (t Records) Stamp(h Hop) bool {
	room, written := t.sizes()
	if written >= room {
		return false
	}
	r := t.b[telemetryPrefix+written*recordSize:][:recordSize]
	queued := min(uint64(h.Queued/queuedUnit), queuedMax)
	binary.BigEndian.PutUint64(r, uint64(h.At/atUnit)<<(64-atBits)|uint64(h.Sent/sentUnit)>>8&0xffffff)
	binary.BigEndian.PutUint32(r[8:], uint32(h.Sent/sentUnit)<<24|uint32(queued))
	t.b[1] = uint8(written + 1)
	return true
}

// AppendHops appends the records to hops, in the order of the path. Instants and bytes sent count
// from an unknown origin; see Unwrap.
func (t Records) AppendHops(hops []Hop) []Hop {
	_, written := t.sizes()
	for i := range written {
		r := t.b[telemetryPrefix+i*recordSize:][:recordSize]
		hi, lo := binary.BigEndian.Uint64(r), binary.BigEndian.Uint32(r[8:])
		hops = append(hops, Hop{
			At:     units.Time(hi>>(64-atBits)) * atUnit,
			Sent:   units.Bytes(hi&0xffffff<<8|uint64(lo>>24)) * sentUnit,
			Queued: units.Bytes(lo&queuedMax) * queuedUnit,
		})
	}
	return hops
}

// Unwrap returns h with the wrap-around of At and Sent resolved: they become the values nearest to
// those of last, an earlier or later record of the same port.
func (h Hop) Unwrap(last Hop) Hop {
	at := int64(h.At/atUnit-last.At/atUnit) << (64 - atBits) >> (64 - atBits)
	sent := int64(h.Sent/sentUnit-last.Sent/sentUnit) << (64 - sentBits) >> (64 - sentBits)
	h.At = last.At + units.Time(at)*atUnit
	h.Sent = last.Sent + units.Bytes(sent)*sentUnit
	return h
}

// clearTelemetry writes an empty table with room for a number of records.
func clearTelemetry(b []byte, hops uint8) {
	clear(b[:TelemetrySize(int(hops))])
	b[0] = hops
}

// checkTelemetry validates the table at the beginning of b and returns the number of records that
// fit.
func checkTelemetry(b []byte) (hops uint8, err error) {
	switch {
	case len(b) < telemetryPrefix:
		return 0, ErrShort
	case b[0] < 1 || b[0] > MaxHops || b[1] > b[0] || b[2] != 0 || b[3] != 0:
		return 0, ErrRange
	case len(b) < int(TelemetrySize(int(b[0]))):
		return 0, ErrShort
	}
	return b[0], nil
}
