package clocksync

import (
	"encoding/binary"
	"math"

	"weft/units"
)

// Layout of a PTP message (IEEE 1588-2019, section 13.3).
const (
	ptpHeader     = 34
	ptpTypeAt     = 0
	ptpVersionAt  = 1
	ptpVersion    = 2
	correctionAt  = 8
	ptpEventTypes = 4 // Sync, Delay_Req, Pdelay_Req, Pdelay_Resp: 0 to 3
)

// AddResidence adds the residence time of a message in a transparent clock to its correctionField
// (IEEE 1588-2019, section 10.2), rounded to 2^-16 ns. It changes only event messages, and reports
// whether it did.
func AddResidence(message []byte, residence units.Time) bool {
	if len(message) < ptpHeader || message[ptpTypeAt]&0x0f >= ptpEventTypes ||
		message[ptpVersionAt]&0x0f != ptpVersion {
		return false
	}
	field := message[correctionAt:][:8]
	sum := int64(binary.BigEndian.Uint64(field)) + Scaled(residence)
	binary.BigEndian.PutUint64(field, uint64(sum))
	return true
}

// longest is the longest time that a TimeInterval can hold.
const longest = units.Time(math.MaxInt64>>16) * units.Nanosecond

// Scaled converts t to a PTP TimeInterval, in units of 2^-16 ns, rounded to the nearest. Beyond ±39
// hours it returns the largest interval.
func Scaled(t units.Time) int64 {
	if t = max(-longest, min(longest, t)); t == longest || t == -longest {
		return int64(t/longest) * math.MaxInt64
	}
	whole, part := int64(t/units.Nanosecond), int64(t%units.Nanosecond) // both have t's sign
	half := int64(units.Nanosecond) / 2
	if t < 0 {
		half = -half
	}
	return whole<<16 + (part<<16+half)/int64(units.Nanosecond)
}

// Unscaled converts a PTP TimeInterval to a time, rounded to the nearest picosecond.
func Unscaled(interval int64) units.Time {
	whole, part := interval>>16, interval&0xffff
	return units.Time(whole)*units.Nanosecond + units.Time((part*int64(units.Nanosecond)+1<<15)>>16)
}
