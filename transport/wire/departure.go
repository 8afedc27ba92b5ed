package wire

import (
	"encoding/binary"

	"weft/units"
)

// DepartureSize is the length of a departure.
const DepartureSize = 16

// departureMagic marks a departure: random, so that what a program happens to send is none.
const departureMagic = 0x9d3f_51c7_e08a_642b

// AppendDeparture appends, behind all that a datagram carries, the instant of lab time at which it leaves its card. A node
// whose clock is not lab time says it so to the emulated network, which takes it off again: the stamp in a header is what
// an imperfect clock showed. It is no part of the modelled packet.
func AppendDeparture(b []byte, at units.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, departureMagic)
	return binary.BigEndian.AppendUint64(b, uint64(at))
}

// Departure returns the instant that the datagram b ends in; ok is false when it says none.
func Departure(b []byte) (at units.Time, ok bool) {
	if len(b) < DepartureSize {
		return 0, false
	}
	b = b[len(b)-DepartureSize:]
	if binary.BigEndian.Uint64(b) != departureMagic {
		return 0, false
	}
	return units.Time(binary.BigEndian.Uint64(b[8:])), true
}
