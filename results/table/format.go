package table

import "weft/units"

// micros formats a time in microseconds.
func micros(us float64) string { return units.Shown(us, "us") }

// gbps formats a rate in Gb/s.
func gbps(v float64) string { return units.Shown(v, "Gb/s") }

// size formats a number of bytes.
func size(n int64) string { return units.Shown(float64(n), "B") }

func percent(share float64) string { return units.Shown(100*share, "%") }

// known returns text, or a dash where there is no value: a 0 would look like one.
func known(is bool, text string) string {
	if is {
		return text
	}
	return "–"
}
