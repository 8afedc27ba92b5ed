package ptp

import "weft/units"

// Values of clockAccuracy (IEEE 1588-2019, table 5). A master announces the finest class that its
// bound fits in. Its slaves add it to their own bounds, so that these are relative to the reference
// and not to the master. The reference is exact; a master that was never synchronized to it has
// unknown accuracy.
const (
	accuracyExact   = 0x17 // the finest class: a picosecond
	accuracyUnknown = 0xfe
)

// accuracies lists the bounds of the classes from accuracyExact on. 2.5 ps is rounded up to 3 ps.
var accuracies = [...]units.Time{
	1, 3, 10, 25, 100, 250,
	units.Nanosecond, 2500, 10 * units.Nanosecond,
	25 * units.Nanosecond, 100 * units.Nanosecond, 250 * units.Nanosecond,
	units.Microsecond, 2500 * units.Nanosecond, 10 * units.Microsecond,
	25 * units.Microsecond, 100 * units.Microsecond, 250 * units.Microsecond,
	units.Millisecond, 2500 * units.Microsecond, 10 * units.Millisecond,
	25 * units.Millisecond, 100 * units.Millisecond, 250 * units.Millisecond,
	units.Second, 10 * units.Second,
}

// accuracyOf returns the finest class that a bound fits in. Beyond 10 s it is accuracyUnknown.
func accuracyOf(bound units.Time) uint8 {
	for i, a := range accuracies {
		if bound <= a {
			return accuracyExact + uint8(i)
		}
	}
	return accuracyUnknown
}

// accuracyBound returns the bound of a class. ok is false if the class is unknown.
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
