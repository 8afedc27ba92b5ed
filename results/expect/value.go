package expect

import (
	"fmt"
	"strconv"
	"strings"
)

// shape is what kind of thing an expression stands for.
type shape uint8

const (
	unknown shape = iota // a setting of a lab that is not at hand yet: fits anything
	number
	truth
	word
)

// dim is the dimension of a number: powers of time and of data. A rate is {-1, 1}.
type dim struct{ time, data int8 }

// typ is the type of an expression. dim has a meaning for numbers only.
type typ struct {
	shape shape
	dim   dim
	list  bool // one for each of several points of a sweep
}

var (
	plain  = typ{shape: number}
	span   = typ{shape: number, dim: dim{time: 1}}
	size   = typ{shape: number, dim: dim{data: 1}}
	rate   = typ{shape: number, dim: dim{time: -1, data: 1}}
	aTruth = typ{shape: truth}
	aWord  = typ{shape: word}
)

func (t typ) String() string {
	switch t {
	case plain:
		return "a plain number"
	case span:
		return "a time"
	case size:
		return "a size"
	case rate:
		return "a rate"
	case aTruth:
		return "true or false"
	case aWord:
		return "a word"
	}
	return fmt.Sprintf("a quantity in s^%d·B^%d", t.dim.time, t.dim.data)
}

// value is what an expression comes to. num is in microseconds, bytes and bytes per microsecond.
type value struct {
	typ  typ
	num  float64 // truth: 1 or 0
	word string
	list []float64 // of a list: its numbers
}

func boolean(b bool) value {
	if b {
		return value{typ: aTruth, num: 1}
	}
	return value{typ: aTruth}
}

// gbps is one Gb/s in bytes per microsecond.
const gbps = 125.0

// unit is a suffix of a quantity.
type unit struct {
	name   string
	typ    typ
	factor float64
}

// suffixes lists the units of a quantity, spelled as package units spells them.
func suffixes() []unit {
	return []unit{
		{"%", plain, 0.01},
		{"ps", span, 1e-6}, {"ns", span, 1e-3}, {"us", span, 1}, {"µs", span, 1}, {"μs", span, 1}, {"ms", span, 1e3}, {"s", span, 1e6},
		{"B", size, 1}, {"KB", size, 1e3}, {"kB", size, 1e3}, {"MB", size, 1e6}, {"GB", size, 1e9},
		{"KiB", size, 1 << 10}, {"MiB", size, 1 << 20}, {"GiB", size, 1 << 30},
		{"bps", rate, gbps / 1e9}, {"kbps", rate, gbps / 1e6}, {"Mbps", rate, gbps / 1e3}, {"Gbps", rate, gbps}, {"Tbps", rate, gbps * 1e3},
		{"bit", rate, gbps / 1e9}, {"kbit", rate, gbps / 1e6}, {"Mbit", rate, gbps / 1e3}, {"Gbit", rate, gbps}, {"Tbit", rate, gbps * 1e3},
	}
}

// quantity reads a number with an optional unit.
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
		if u.name == text[end:] {
			return value{typ: u.typ, num: n * u.factor}, nil
		}
	}
	return value{}, fmt.Errorf("%q is not a unit; write a time (10us), a size (4KiB), a rate (100Gbps) or a share (25%%)", text[end:])
}

// String writes v with four significant digits in the unit that suits it.
func (v value) String() string {
	switch v.typ {
	case aTruth:
		return strconv.FormatBool(v.num != 0)
	case aWord:
		return v.word
	case span:
		return v.in("ps", "ns", "us", "ms", "s")
	case size:
		return v.in("B", "KB", "MB", "GB")
	case rate:
		return v.in("bps", "kbps", "Mbps", "Gbps", "Tbps")
	}
	return strconv.FormatFloat(v.num, 'g', 4, 64)
}

// in writes v in the largest of the named units, smallest first, in which it is at least 1.
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

// natural is the number of v in the units of the summary: microseconds, bytes, Gb/s.
func (v value) natural() float64 {
	if v.typ == rate {
		return v.num / gbps
	}
	return v.num
}
