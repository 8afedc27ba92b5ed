package metrics

import "weft/units"

// A Class is a class of boundary or slave clocks of ITU-T G.8273.2: limits of the time error that
// one clock adds, observed for 1000 s at constant temperature. MaxTE applies to the error itself,
// the others to the error after a low-pass filter of 0.1 Hz. The limits are for comparison only. A
// run of a lab is a thousandth as long or less, measures many clocks and the network between them,
// and is not filtered, so it cannot show compliance.
type Class struct {
	Name     string
	MaxTE    units.Time // maximum absolute time error
	Constant units.Time // constant time error
	MTIE     units.Time // maximum time interval error
	TDEV     units.Time // time deviation
}

// Classes lists the classes for which all four limits are defined.
var Classes = []Class{
	{"A", 100 * units.Nanosecond, 50 * units.Nanosecond, 40 * units.Nanosecond, 4 * units.Nanosecond},
	{"B", 70 * units.Nanosecond, 20 * units.Nanosecond, 40 * units.Nanosecond, 4 * units.Nanosecond},
	{"C", 30 * units.Nanosecond, 10 * units.Nanosecond, 10 * units.Nanosecond, 2 * units.Nanosecond},
}
