package wire

import (
	"encoding/binary"

	"weft/units"
)

// MaxHops is how many switches may write telemetry into one packet.
const MaxHops = 8

// Telemetry lies behind the header of a data packet, whose sender leaves room for it, and of an acknowledgement, which
// takes it back:
//
//	0  records that fit (1)   1  records written (1)   2  reserved, zero (2)
//	4  first record: instant (5), sent (4), queued (3); then the next
//
// Instants are in nanoseconds modulo 2^40 (18 minutes), what was sent in 16 bytes modulo 2^32 (64 GiB), queues
// in 64 bytes up to 2^24 of them (1 GiB). HPCC's own records (SIGCOMM 2019, Fig. 7) are 8 bytes with a rate: their
// time wraps after 17 ms and their queue ends at 10 MB on 25 Gb/s, less than the incasts it is compared on. Rates are known
// from the topology.
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

// Hop is what a switch's port says of itself when it begins to send a packet.
type Hop struct {
	At     units.Time
	Sent   units.Bytes // all that it sent before
	Queued units.Bytes // what it holds behind the packet
}

// TelemetrySize is the room that telemetry of so many switches takes behind a header; none takes none.
func TelemetrySize(hops int) units.Bytes {
	if hops == 0 {
		return 0
	}
	return telemetryPrefix + units.Bytes(hops)*recordSize
}

// Stamp adds a switch's record to the packet that header b belongs to. It returns false, and changes nothing, when the
// packet is none of the transport's, has no room for telemetry or none left.
func Stamp(b []byte, h Hop) bool {
	t := telemetry(b)
	if t == nil || t[1] >= t[0] {
		return false
	}
	r := t[telemetryPrefix+int(t[1])*recordSize:][:recordSize]
	queued := min(uint64(h.Queued/queuedUnit), queuedMax)
	binary.BigEndian.PutUint64(r, uint64(h.At/atUnit)<<(64-atBits)|uint64(h.Sent/sentUnit)>>8&0xffffff)
	binary.BigEndian.PutUint32(r[8:], uint32(h.Sent/sentUnit)<<24|uint32(queued))
	t[1]++
	return true
}

// AppendHops appends the records that header b carries, in the order of the way, to hops. Decode has accepted b. Instants
// and sums count from an unknown origin: see Unwrap.
func AppendHops(hops []Hop, b []byte) []Hop {
	t := telemetry(b)
	if t == nil {
		return hops
	}
	for i := range int(min(t[0], t[1])) {
		r := t[telemetryPrefix+i*recordSize:][:recordSize]
		hi, lo := binary.BigEndian.Uint64(r), binary.BigEndian.Uint32(r[8:])
		hops = append(hops, Hop{
			At:     units.Time(hi>>(64-atBits)) * atUnit,
			Sent:   units.Bytes(hi&0xffffff<<8|uint64(lo>>24)) * sentUnit,
			Queued: units.Bytes(lo&queuedMax) * queuedUnit,
		})
	}
	return hops
}

// Unwrap returns h with its instant and its sum nearest to those of last, an earlier or later record of the same port.
func (h Hop) Unwrap(last Hop) Hop {
	at := int64(h.At/atUnit-last.At/atUnit) << (64 - atBits) >> (64 - atBits)
	sent := int64(h.Sent/sentUnit-last.Sent/sentUnit) << (64 - sentBits) >> (64 - sentBits)
	h.At = last.At + units.Time(at)*atUnit
	h.Sent = last.Sent + units.Bytes(sent)*sentUnit
	return h
}

// HeaderLen returns the length of the header that b begins with, telemetry included.
func HeaderLen(b []byte) (int, error) {
	t, err := Peek(b)
	if err != nil {
		return 0, err
	}
	n := 0
	switch t {
	case TypeData:
		n = int(DataSize)
	case TypeAck, TypeNak:
		n = int(AckSize)
	case TypeCNP, TypeProbe:
		return CNPSize, nil
	case TypeSack:
		return int(SackSize), nil
	case TypeNotice:
		return NoticeSize, nil
	default:
		return 0, ErrType
	}
	if t == TypeData && Flags(b[3])&Coordinated != 0 {
		return n + CoordinationSize, nil
	}
	if Flags(b[3])&Telemetry == 0 {
		return n, nil
	}
	if len(b) <= n {
		return 0, ErrShort
	}
	if b[n] < 1 || b[n] > MaxHops {
		return 0, ErrRange
	}
	return n + int(TelemetrySize(int(b[n]))), nil
}

// telemetry returns the telemetry behind header b, or nil where there is none.
func telemetry(b []byte) []byte {
	n, err := HeaderLen(b)
	if err != nil || n > len(b) || Flags(b[3])&Telemetry == 0 {
		return nil
	}
	switch Type(b[2]) {
	case TypeData:
		return b[DataSize:n]
	case TypeAck, TypeNak:
		return b[AckSize:n]
	default:
		return nil
	}
}

// clearTelemetry writes an empty table of so many records.
func clearTelemetry(b []byte, hops uint8) {
	clear(b[:TelemetrySize(int(hops))])
	b[0] = hops
}

// checkTelemetry returns the records that fit into the table that b begins with.
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
