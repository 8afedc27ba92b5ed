package expect

import (
	"fmt"
	"strconv"
	"strings"

	"weft/units"
)

// shape is the kind of a value.
type shape uint8

const (
	unknown shape = iota // a setting of a lab that is not known yet; matches anything
	number
	truth
	word
)

// dim is the dimension of a number: powers of time and data. A rate is {-1, 1}.
type dim struct{ time, data int8 }

// typ is the type of an expression.
type typ struct {
	shape shape
	dim   dim  // of a number
	list  bool // a list with a number for each of several points
}

var (
	plain     = typ{shape: number}
	duration  = typ{shape: number, dim: dim{time: 1}}
	size      = typ{shape: number, dim: dim{data: 1}}
	rate      = typ{shape: number, dim: dim{time: -1, data: 1}}
	truthType = typ{shape: truth}
	wordType  = typ{shape: word}
)

func (t typ) String() string {
	switch t {
	case plain:
		return "a plain number"
	case duration:
		return "a time"
	case size:
		return "a size"
	case rate:
		return "a rate"
	case truthType:
		return "true or false"
	case wordType:
		return "a word"
	}
	return fmt.Sprintf("a quantity in s^%d·B^%d", t.dim.time, t.dim.data)
}

// A value is the value of an expression.
type value struct {
	typ  typ
	num  float64 // in microseconds, bytes or bytes per microsecond; 1 or 0 of a truth
	word string
	list []float64 // the numbers of a list
}

// truthValue returns the value of a bool.
func truthValue(b bool) value {
	if b {
		return value{typ: truthType, num: 1}
	}
	return value{typ: truthType}
}

// gbps is one Gb/s in bytes per microsecond.
const gbps = 125.0

// A unit is a suffix of a quantity, and its size in the unit of value.num.
type unit struct {
	name   string
	typ    typ
	factor float64
}

// suffixes lists the units of quantities, spelled as in package units.
func suffixes() []unit {
	return []unit{
		{"%", plain, 0.01},
		{"ps", duration, 1e-6}, {"ns", duration, 1e-3}, {"us", duration, 1}, {"µs", duration, 1}, {"μs", duration, 1},
		{"ms", duration, 1e3}, {"s", duration, 1e6},
		{"B", size, 1}, {"KB", size, 1e3}, {"kB", size, 1e3}, {"MB", size, 1e6}, {"GB", size, 1e9},
		{"KiB", size, 1 << 10}, {"MiB", size, 1 << 20}, {"GiB", size, 1 << 30},
		{"bps", rate, gbps / 1e9}, {"kbps", rate, gbps / 1e6}, {"Mbps", rate, gbps / 1e3}, {"Gbps", rate, gbps},
		{"Tbps", rate, gbps * 1e3},
		{"bit", rate, gbps / 1e9}, {"kbit", rate, gbps / 1e6}, {"Mbit", rate, gbps / 1e3}, {"Gbit", rate, gbps},
		{"Tbit", rate, gbps * 1e3},
	}
}

// quantity parses a number with an optional unit.
func quantity(text string) (value, error) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || end == 0 {
		return value{}, fmt.Errorf("%q is not a number", text)
	}
	if end == len(text) {
		return value{typ: plain, num: n}, nil
	}
	for _, u := range suffixes() {
		if u.name == text[end:] && !finite(n*u.factor) {
			return value{}, fmt.Errorf("%q is too large", text)
		}
		if u.name == text[end:] {
			return value{typ: u.typ, num: n * u.factor}, nil
		}
	}
	return value{}, fmt.Errorf("%q is not a unit; write a time (10us), a size (4KiB), a rate (100Gbps) or a share "+
		"(25%%)",
		text[end:])
}

// String formats v with four significant digits in a suitable unit.
func (v value) String() string {
	switch v.typ {
	case truthType:
		return strconv.FormatBool(v.num != 0)
	case wordType:
		return v.word
	case duration:
		return v.in("ps", "ns", "us", "ms", "s")
	case size:
		return v.in("B", "KB", "MB", "GB")
	case rate:
		return v.in("bps", "kbps", "Mbps", "Gbps", "Tbps")
	}
	return units.Number(v.num)
}

// in formats v in the largest of the named units, smallest first, in which it is at least 1.
func (v value) in(names ...string) string {
	best := unit{}
	for _, name := range names {
		for _, u := range suffixes() {
			if u.name == name && (best.name == "" || max(v.num, -v.num) >= u.factor) {
				best = u
			}
		}
	}
	n := v.num / best.factor
	if n >= 1000 || n <= -1000 {
		return strconv.FormatFloat(n, 'f', 0, 64) + best.name
	}
	return strconv.FormatFloat(n, 'g', 4, 64) + best.name
}

// inSummaryUnits returns the number of v in the units of the summary: microseconds, bytes, Gb/s.
func (v value) inSummaryUnits() float64 {
	if v.typ == rate {
		return v.num / gbps
	}
	return v.num
}
