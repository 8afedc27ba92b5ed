package ptp

import "weft/units"

// What a master says of how well it knows the time is its clockAccuracy (IEEE 1588-2019, table 5): the finest class
// that its bound fits in. Those who follow it add it to their own bounds, so that these are of the cluster's time and
// not of the master's. The reference is the time; a master that has never heard of it knows nothing.
const (
	accuracyExact   = 0x17 // the finest class: a picosecond
	accuracyUnknown = 0xfe
)

// accuracies are the classes from accuracyExact on; 2.5 ps are rounded up.
var accuracies = [...]units.Time{
	1, 3, 10, 25, 100, 250,
	units.Nanosecond, 2500, 10 * units.Nanosecond, 25 * units.Nanosecond, 100 * units.Nanosecond, 250 * units.Nanosecond,
	units.Microsecond, 2500 * units.Nanosecond, 10 * units.Microsecond, 25 * units.Microsecond, 100 * units.Microsecond, 250 * units.Microsecond,
	units.Millisecond, 2500 * units.Microsecond, 10 * units.Millisecond, 25 * units.Millisecond, 100 * units.Millisecond, 250 * units.Millisecond,
	units.Second, 10 * units.Second,
}

// accuracyOf returns the class of a bound; beyond 10 s it says nothing.
func accuracyOf(bound units.Time) uint8 {
	for i, a := range accuracies {
		if bound <= a {
			return accuracyExact + uint8(i)
		}
	}
	return accuracyUnknown
}

// accuracyBound returns what a class says. ok is false when that is nothing.
func accuracyBound(class uint8) (bound units.Time, ok bool) {
	i := int(class) - accuracyExact
	switch {
	case i < 0 || i >= len(accuracies):
		return 0, false
	case i == 0:
		return 0, true
	}
	return accuracies[i], true
}
