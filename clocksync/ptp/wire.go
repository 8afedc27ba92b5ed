package ptp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"weft/clocksync"
	"weft/units"
)

// Type is the type of a message (IEEE 1588-2019, table 36).
type Type uint8

// Types of messages. Those below 8 are event messages, which are stamped.
const (
	Sync               Type = 0x0
	DelayReq           Type = 0x1
	PDelayReq          Type = 0x2
	PDelayResp         Type = 0x3
	FollowUp           Type = 0x8
	DelayResp          Type = 0x9
	PDelayRespFollowUp Type = 0xa
	Announce           Type = 0xb
)

// Flags of a message (table 37).
const (
	FlagTwoStep   uint16 = 1 << 9
	FlagUnicast   uint16 = 1 << 10
	FlagTimescale uint16 = 1 << 3 // ptpTimescale: the time is TAI, not of an arbitrary scale
)

// Event reports whether messages of the type are event messages: stamped, and sent to the event
// port.
func (t Type) Event() bool { return t < 8 }

// size returns the length of a message without TLVs in bytes, or 0 for a type that is not
// supported.
func (t Type) size() int {
	switch t {
	case Sync, DelayReq, FollowUp:
		return headerSize + 10
	case PDelayReq, PDelayResp, DelayResp, PDelayRespFollowUp:
		return headerSize + 20
	case Announce:
		return headerSize + 30
	}
	return 0
}

// control returns the controlField, which is obsolete but still sent (IEEE 1588-2008, table 42).
func (t Type) control() byte {
	switch t {
	case Sync, DelayReq:
		return byte(t)
	case FollowUp:
		return 2
	case DelayResp:
		return 3
	}
	return 5
}

// ClockIdentity identifies a clock.
type ClockIdentity uint64

// PortIdentity identifies a port of a clock. Ports count from 1.
type PortIdentity struct {
	Clock ClockIdentity
	Port  uint16
}

// Timestamp is the format of an instant in messages.
type Timestamp struct {
	Seconds     uint64 // 48 bits
	Nanoseconds uint32 // below 10^9
}

// Message is a message of any type. Fields that its type does not have are zero.
type Message struct {
	Type        Type
	Domain      uint8
	Flags       uint16
	Correction  int64 // correctionField, in units of 2^-16 ns
	Source      PortIdentity
	Sequence    uint16
	LogInterval int8

	Timestamp  Timestamp    // origin, precise origin, receive, request receipt or response origin
	Requesting PortIdentity // Delay_Resp and the answers of the peer delay mechanism
	Announce   DataSet      // Announce: the grandmaster
}

const (
	headerSize = 34
	version    = 0x12 // 2.1
	// MaxSize is the size of the longest message that Encode writes, in bytes.
	MaxSize = headerSize + 30

	noInterval = 0x7f // logMessageInterval of unicast messages (table 42)
	taiOffset  = 37   // currentUtcOffset
	oscillator = 0xa0 // timeSource INTERNAL_OSCILLATOR
)

// Errors of Decode.
var (
	ErrShort     = errors.New("ptp: message is cut short")
	ErrVersion   = errors.New("ptp: not version 2 of the protocol, or of another profile")
	ErrType      = errors.New("ptp: unknown type of message")
	ErrLength    = errors.New("ptp: messageLength does not fit")
	ErrTimestamp = errors.New("ptp: timestamp out of range")
)

// Encode writes m to the beginning of b, which has room for MaxSize bytes, and returns its length.
// The type must be one of the constants above.
func (m *Message) Encode(b []byte) int {
	n := m.Type.size()
	b = b[:n]
	clear(b)
	b[0], b[1] = byte(m.Type), version
	binary.BigEndian.PutUint16(b[2:], uint16(n))
	b[4] = m.Domain
	binary.BigEndian.PutUint16(b[6:], m.Flags)
	binary.BigEndian.PutUint64(b[8:], uint64(m.Correction))
	m.Source.put(b[20:])
	binary.BigEndian.PutUint16(b[30:], m.Sequence)
	b[32], b[33] = m.Type.control(), byte(m.LogInterval)
	binary.BigEndian.PutUint16(b[34:], uint16(m.Timestamp.Seconds>>32))
	binary.BigEndian.PutUint32(b[36:], uint32(m.Timestamp.Seconds))
	binary.BigEndian.PutUint32(b[40:], m.Timestamp.Nanoseconds)
	switch m.Type {
	case PDelayResp, DelayResp, PDelayRespFollowUp:
		m.Requesting.put(b[44:])
	case Announce:
		m.Announce.put(b[44:])
	}
	return n
}

// Decode reads the message at the beginning of b. It ignores what follows the fields, such as TLVs.
// If it returns an error, m is undefined.
func (m *Message) Decode(b []byte) error {
	if len(b) < headerSize {
		return ErrShort
	}
	if b[1]&0x0f != version&0x0f || b[0]>>4 != 0 {
		return ErrVersion
	}
	t := Type(b[0] & 0x0f)
	n := t.size()
	if n == 0 {
		return ErrType
	}
	if len(b) < n {
		return ErrShort
	}
	if l := int(binary.BigEndian.Uint16(b[2:])); l < n || l > len(b) {
		return ErrLength
	}
	*m = Message{
		Type: t, Domain: b[4], Flags: binary.BigEndian.Uint16(b[6:]),
		Correction: int64(binary.BigEndian.Uint64(b[8:])), Source: identity(b[20:]),
		Sequence: binary.BigEndian.Uint16(b[30:]), LogInterval: int8(b[33]),
		Timestamp: Timestamp{
			Seconds:     uint64(binary.BigEndian.Uint16(b[34:]))<<32 | uint64(binary.BigEndian.Uint32(b[36:])),
			Nanoseconds: binary.BigEndian.Uint32(b[40:]),
		},
	}
	if m.Timestamp.Nanoseconds >= 1e9 {
		return ErrTimestamp
	}
	switch t {
	case PDelayResp, DelayResp, PDelayRespFollowUp:
		m.Requesting = identity(b[44:])
	case Announce:
		m.Announce.get(b[44:])
	}
	return nil
}

// put writes p in 10 bytes.
func (p PortIdentity) put(b []byte) {
	binary.BigEndian.PutUint64(b, uint64(p.Clock))
	binary.BigEndian.PutUint16(b[8:], p.Port)
}

// identity reads what PortIdentity.put writes.
func identity(b []byte) PortIdentity {
	return PortIdentity{Clock: ClockIdentity(binary.BigEndian.Uint64(b)), Port: binary.BigEndian.Uint16(b[8:])}
}

// String returns p in the format of PTP tools: 020000.fffe.000001-1.
func (p PortIdentity) String() string {
	c := uint64(p.Clock)
	return fmt.Sprintf("%06x.%04x.%06x-%d", c>>40, c>>24&0xffff, c&0xffffff, p.Port)
}

// put writes the fields of an Announce that follow the timestamp.
func (d *DataSet) put(b []byte) {
	binary.BigEndian.PutUint16(b, taiOffset)
	b[3], b[4], b[5] = d.Priority1, d.Class, d.Accuracy
	binary.BigEndian.PutUint16(b[6:], d.Variance)
	b[8] = d.Priority2
	binary.BigEndian.PutUint64(b[9:], uint64(d.Grandmaster))
	binary.BigEndian.PutUint16(b[17:], d.Steps)
	b[19] = oscillator
}

// get reads what put writes.
func (d *DataSet) get(b []byte) {
	*d = DataSet{
		Priority1: b[3], Class: b[4], Accuracy: b[5], Variance: binary.BigEndian.Uint16(b[6:]), Priority2: b[8],
		Grandmaster: ClockIdentity(binary.BigEndian.Uint64(b[9:])), Steps: binary.BigEndian.Uint16(b[17:]),
	}
}

// epoch is the timestamp of the instant at which a clock shows 0, in seconds. Clocks may show less
// than 0, but timestamps are not negative.
const epoch = 1_000_000_000

// stampOf converts an instant to a timestamp, rounded down to a nanosecond, and a rest in units of
// 2^-16 ns for the correctionField.
func stampOf(t units.Time) (Timestamp, int64) {
	whole, rest := t/units.Second, t%units.Second
	if rest < 0 {
		whole, rest = whole-1, rest+units.Second
	}
	return Timestamp{Seconds: uint64(epoch + int64(whole)), Nanoseconds: uint32(rest / units.Nanosecond)},
		clocksync.Scaled(rest % units.Nanosecond)
}

// instant converts a timestamp to an instant. ok is false if no clock of a lab can show it.
func (s Timestamp) instant() (t units.Time, ok bool) {
	const reach = 1 << 21 // seconds: 24 days
	whole := int64(s.Seconds) - epoch
	if whole < -reach || whole > reach {
		return 0, false
	}
	return units.Time(whole)*units.Second + units.Time(s.Nanoseconds)*units.Nanosecond, true
}

// logInterval returns the logMessageInterval nearest to an interval: the binary logarithm of
// seconds, such as -10 for 1 ms.
func logInterval(t units.Time) int8 {
	return int8(max(-40, min(40, math.Round(math.Log2(t.Seconds())))))
}

// validInterval reports whether a clock of a lab may announce a logMessageInterval: from a
// nanosecond to 48 days.
func validInterval(log int8) bool { return log >= -30 && log <= 22 || log == noInterval }

// maxCorrection is the largest valid correctionField. Below 0 only the fraction of a nanosecond is
// valid that a timestamp cannot hold.
const maxCorrection = 10 * units.Second

// corrected returns the correctionField as a time. ok is false if no network can have caused it.
func (m *Message) corrected() (c units.Time, ok bool) {
	if m.Correction <= -1<<16 {
		return 0, false
	}
	c = clocksync.Unscaled(m.Correction)
	return c, c <= maxCorrection
}
