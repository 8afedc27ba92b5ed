package table

import (
	"math"
	"strconv"
)

// micros formats a time in microseconds with four significant digits, in the unit that suits it.
func micros(us float64) string {
	return scaled(us*1e6, []string{"ps", "ns", "us", "ms", "s"}, 1000)
}

// gbps formats a rate in Gb/s.
func gbps(v float64) string {
	return scaled(v*1e9, []string{"bps", "kbps", "Mbps", "Gbps", "Tbps"}, 1000)
}

// Bytes formats a size with four significant digits, in the unit that suits it.
func Bytes(n int64) string {
	return scaled(float64(n), []string{"B", "KB", "MB", "GB", "TB"}, 1000)
}

// scaled formats v in the largest unit that leaves at least 1 before the point.
func scaled(v float64, names []string, step float64) string {
	if v == 0 {
		return "0"
	}
	i := 0
	for i+1 < len(names) && math.Abs(v) >= step*0.99995 { // 999.95 would be printed as 1000
		v /= step
		i++
	}
	return digits(v) + names[i]
}

// digits formats v with four significant digits and without an exponent.
func digits(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(round(v), 'f', -1, 64)
}

// round keeps four significant digits.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return v
	}
	return r
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func percent(share float64) string { return digits(100*share) + " %" }

// known returns text, or a dash where there is no value: a 0 would look like one.
func known(is bool, text string) string {
	if is {
		return text
	}
	return "–"
}
