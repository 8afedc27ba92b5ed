package units

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A Scale is a unit in which people read a quantity, and how many of the given unit it has.
type Scale struct {
	Unit string
	Of   float64
}

// scales are the units for people by the unit of a number in a record, in rising order.
var scales = map[string][]Scale{
	"us":   {{"ps", 1e-6}, {"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}},
	"ns":   {{"ps", 1e-3}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}},
	"B":    {{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}},
	"Gb/s": {{"b/s", 1e-9}, {"kb/s", 1e-6}, {"Mb/s", 1e-3}, {"Gb/s", 1}, {"Tb/s", 1e3}},
}

// ScaleOf returns the unit in which values read best: the largest in which the largest of them is
// at least 1. The units of us, ns, B and Gb/s are known; of another, and if all values are 0, it is
// the given unit.
func ScaleOf(unit string, values ...float64) Scale {
	all, largest := scales[unit], 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			largest = max(largest, math.Abs(v))
		}
	}
	if len(all) == 0 || largest == 0 {
		return Scale{unit, 1}
	}
	best := all[0]
	for _, s := range all {
		if largest >= s.Of*0.99995 { // 999.95 would be shown as 1000
			best = s
		}
	}
	return best
}

// Shown formats a value of a unit for people, in the unit that ScaleOf chooses: 8.283 ms. String of
// Time, Bytes and Bandwidth is for lab files, which need every digit.
func Shown(v float64, unit string) string {
	s := ScaleOf(unit, v)
	return strings.TrimSpace(Number(v/s.Of) + " " + s.Unit)
}

// Number formats a number for people: four significant digits, or all of its whole part, without an
// exponent below 1e15, and with commas as Count has them. The script of package view has the same
// rule, with the same arithmetic.
func Number(v float64) string {
	abs, scale := math.Abs(v), 1.0
	if !(abs < 1e15) {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	for abs*scale < 1000 && scale < 1e12 {
		scale *= 10
	}
	text := commas(strconv.FormatFloat(math.Round(abs*scale)/scale, 'f', -1, 64))
	if v < 0 && text != "0" {
		text = "-" + text
	}
	return text
}

// Count formats a count for people: with commas between thousands if it has five digits or more.
func Count(n int64) string {
	if n < 0 {
		return "-" + commas(strconv.FormatInt(n, 10)[1:])
	}
	return commas(strconv.FormatInt(n, 10))
}

// unspaced matches a value with its unit, and rate one of a rate, as messages write them. Settings
// in a message (x=5us) can be copied, and stay.
var (
	unspaced = regexp.MustCompile(`(^|[^=\w.])(\d+(?:\.\d+)?)([pnum]?s|[KMGT]?i?B|[kMGT]?bps)\b`)
	rate     = regexp.MustCompile(`(\d [kMGT]?b)ps\b`)
)

// Spaced writes the values of a message as Shown does: 300 us for 300us.
func Spaced(text string) string {
	return rate.ReplaceAllString(unspaced.ReplaceAllString(text, "$1$2 $3"), "$1/s")
}

// commas puts commas between the thousands of a decimal number's whole part, from five digits on.
func commas(text string) string {
	whole, rest, point := strings.Cut(text, ".")
	if len(whole) < 5 {
		return text
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + rest
	}
	return whole
}
