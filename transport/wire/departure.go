package wire

import (
	"encoding/binary"

	"weft/units"
)

// DepartureSize is the size of a departure trailer in bytes.
const DepartureSize = 16

// departureMagic marks a departure trailer. It is random, so that no program sends it by chance.
const departureMagic = 0x9d3f_51c7_e08a_642b

// AppendDeparture appends a trailer with the lab time at which a datagram leaves its NIC. A node
// whose clock is not lab time uses it to tell the emulated network, which removes the trailer: the
// stamp in the header is from the imperfect clock. The trailer is not part of the modelled packet.
func AppendDeparture(b []byte, at units.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, departureMagic)
	return binary.BigEndian.AppendUint64(b, uint64(at))
}

// Departure returns the instant in the departure trailer of datagram b. ok is false if it has none.
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
