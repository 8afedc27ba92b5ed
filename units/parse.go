package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The quantities of text. Each has a name, an example, a resolution, its units, and what people
// write for them by mistake.
var (
	timeText = quantity{"a time", "10us", "1 ps", []unit{
		{"ps", int64(Picosecond)}, {"ns", int64(Nanosecond)},
		{"us", int64(Microsecond)}, {"µs", int64(Microsecond)}, {"μs", int64(Microsecond)}, // U+00B5 and U+03BC
		{"ms", int64(Millisecond)}, {"s", int64(Second)},
	}, map[string][]string{
		"nsec": {"ns"}, "nanoseconds": {"ns"}, "usec": {"us"}, "microsec": {"us"}, "microseconds": {"us"},
		"msec": {"ms"}, "milliseconds": {"ms"}, "sec": {"s"}, "secs": {"s"}, "second": {"s"}, "seconds": {"s"},
	}}
	bytesText = quantity{"a size", "4KiB or 50MB", "1 byte", []unit{
		{"B", int64(Byte)}, {"KB", int64(KB)}, {"kB", int64(KB)}, {"KiB", int64(KiB)},
		{"MB", int64(MB)}, {"MiB", int64(MiB)}, {"GB", int64(GB)}, {"GiB", int64(GiB)},
	}, map[string][]string{
		"b": {"B"}, "byte": {"B"}, "bytes": {"B"},
		"k": {"KB", "KiB"}, "K": {"KB", "KiB"}, "kb": {"KB"}, "Kb": {"KB"}, "kib": {"KiB"}, "Ki": {"KiB"},
		"m": {"MB", "MiB"}, "M": {"MB", "MiB"}, "mb": {"MB"}, "Mb": {"MB"}, "mib": {"MiB"}, "Mi": {"MiB"},
		"g": {"GB", "GiB"}, "G": {"GB", "GiB"}, "gb": {"GB"}, "Gb": {"GB"}, "gib": {"GiB"}, "Gi": {"GiB"},
	}}
	bandwidthText = quantity{"a rate", "100Gbps", "1 bit per second", []unit{
		{"bps", int64(BitPerSecond)}, {"bit", int64(BitPerSecond)}, {"kbps", int64(Kbps)}, {"kbit", int64(Kbps)},
		{"Mbps", int64(Mbps)}, {"Mbit", int64(Mbps)}, {"Gbps", int64(Gbps)}, {"Gbit", int64(Gbps)},
		{"Tbps", int64(Tbps)}, {"Tbit", int64(Tbps)},
	}, map[string][]string{
		"k": {"kbps"}, "K": {"kbps"}, "Kbps": {"kbps"}, "kb/s": {"kbps"}, "kbit/s": {"kbps"},
		"m": {"Mbps"}, "M": {"Mbps"}, "mbps": {"Mbps"}, "Mb": {"Mbps"}, "Mb/s": {"Mbps"}, "Mbit/s": {"Mbps"},
		"mbit": {"Mbps"},
		"g":    {"Gbps"}, "G": {"Gbps"}, "gbps": {"Gbps"}, "Gb": {"Gbps"}, "Gb/s": {"Gbps"}, "Gbit/s": {"Gbps"},
		"gbit": {"Gbps"}, "GbE": {"Gbps"},
		"T": {"Tbps"}, "tbps": {"Tbps"}, "Tb": {"Tbps"}, "Tb/s": {"Tbps"}, "Tbit/s": {"Tbps"},
	}}
)

// ParseTime parses a time: a decimal number followed by ps, ns, us (or µs), ms or s. It is exact: a
// fraction of a picosecond, a missing unit and a value outside ±106 days are errors.
func ParseTime(text string) (Time, error) {
	v, err := timeText.parse(text)
	return Time(v), err
}

// String formats t exactly, in the largest unit that leaves it at least 1: 1500 ns is "1.5us".
// ParseTime reads it back.
func (t Time) String() string {
	if t == 0 {
		return "0s"
	}
	return timeText.format(int64(t))
}

// ParseBytes parses a size: a decimal number followed by B, KB (or kB), MB or GB (powers of 1000),
// or KiB, MiB or GiB (powers of 1024). It is exact: a fraction of a byte is an error.
func ParseBytes(text string) (Bytes, error) {
	v, err := bytesText.parse(text)
	return Bytes(v), err
}

// String formats b exactly: in the largest binary unit that divides it if b is a multiple of 1024
// but not of 1000, else in a decimal unit. Examples are "4KiB", "50MB" and "1.5KB". ParseBytes
// reads it back.
func (b Bytes) String() string {
	if b != 0 && b%KiB == 0 && b%KB != 0 {
		for _, u := range []unit{{"GiB", int64(GiB)}, {"MiB", int64(MiB)}, {"KiB", int64(KiB)}} {
			if int64(b)%u.scale == 0 {
				return strconv.FormatInt(int64(b)/u.scale, 10) + u.suffix
			}
		}
	}
	return bytesText.format(int64(b))
}

// ParseBandwidth parses a rate in bits per second: a decimal number followed by bps, kbps, Mbps,
// Gbps or Tbps, or by the same with "bit" in place of "bps". A bare "G" and "GB" are errors,
// because some programs read them as bytes.
func ParseBandwidth(text string) (Bandwidth, error) {
	v, err := bandwidthText.parse(text)
	return Bandwidth(v), err
}

// String formats b exactly, in the largest unit that leaves it at least 1: "100Gbps", "2.5Gbps".
// ParseBandwidth reads it back.
func (b Bandwidth) String() string { return bandwidthText.format(int64(b)) }

// ParsePercent parses a percentage and returns the float64 nearest to the ratio: "0.5%" is 0.005.
// Percentages exist in text only; code computes with ratios.
func ParsePercent(text string) (float64, error) {
	number, suffix, err := split(text)
	switch {
	case err != nil:
	case suffix == "":
		err = fmt.Errorf("has no unit")
	case suffix != "%":
		err = fmt.Errorf("has the unknown unit %q", clip(suffix))
	}
	if err != nil {
		return 0, fmt.Errorf("%q %w; expected a percentage such as 25%%", clip(text), err)
	}
	return strconv.ParseFloat(number+"e-2", 64) // rounds once; dividing by 100 would round twice
}

// FormatChange formats a ratio of two quantities minus 1 as a signed percentage of one decimal;
// from a million percent on, or below, of two digits.
func FormatChange(share float64) string {
	percent := 100 * share
	switch {
	case math.Abs(percent) >= 1e6:
		return fmt.Sprintf("%+.2g %%", percent)
	case math.Abs(percent) < 0.05:
		percent = 0 // not -0.0
	}
	return fmt.Sprintf("%+.1f %%", percent)
}

// FormatPercent formats a finite ratio as the shortest percentage that ParsePercent reads back as
// the same float64.
func FormatPercent(ratio float64) string {
	// Multiplying by 100 would round. Moving the decimal point in the shortest text does not.
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(ratio, 'e', -1, 64), "e")
	e, _ := strconv.Atoi(exponent)
	negative := strings.HasPrefix(mantissa, "-")
	digits := strings.Replace(strings.TrimPrefix(mantissa, "-"), ".", "", 1)
	point := e + 3 // digits before the point, once multiplied by 100
	if point <= 0 {
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	}
	if len(digits) < point {
		digits += strings.Repeat("0", point-len(digits))
	}
	text := digits[:point]
	if rest := strings.TrimRight(digits[point:], "0"); rest != "" {
		text += "." + rest
	}
	if text = strings.TrimLeft(text, "0"); text == "" || text[0] == '.' {
		text = "0" + text
	}
	if negative {
		text = "-" + text
	}
	return text + "%"
}

// TimePattern returns an unanchored regular expression for the text that ParseTime accepts, for the
// JSON schema of lab files. It allows no sign and does not check range and precision.
func TimePattern() string { return timeText.pattern() }

// BytesPattern is like TimePattern, for ParseBytes.
func BytesPattern() string { return bytesText.pattern() }

// BandwidthPattern is like TimePattern, for ParseBandwidth.
func BandwidthPattern() string { return bandwidthText.pattern() }
