package metrics

import "weft/units"

// A Class is what ITU-T G.8273.2 asks of one boundary or slave clock of a class: limits of what it adds to the time error,
// observed for 1000 s at constant temperature. Constant, MTIE and TDEV are of what a low-pass filter of 0.1 Hz leaves of the
// error; MaxTE is of the error as it is. They are numbers to read others beside: a run of a lab is a thousandth as
// long or less, is of many clocks and the network between them, and is not filtered, so that it shows no compliance.
type Class struct {
	Name                        string
	MaxTE, Constant, MTIE, TDEV units.Time
}

// Classes are those for which all four are set.
var Classes = []Class{
	{"A", 100 * units.Nanosecond, 50 * units.Nanosecond, 40 * units.Nanosecond, 4 * units.Nanosecond},
	{"B", 70 * units.Nanosecond, 20 * units.Nanosecond, 40 * units.Nanosecond, 4 * units.Nanosecond},
	{"C", 30 * units.Nanosecond, 10 * units.Nanosecond, 10 * units.Nanosecond, 2 * units.Nanosecond},
}
