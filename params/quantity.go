package params

import (
	"fmt"

	"weft/units"
)

// quantity is a value from lo to hi with a unit.
func quantity[T interface {
	~int64
	fmt.Stringer
}](to *T, parse func(string) (T, error), lo, hi T, pattern func() string, example string) Of[T] {
	return ranged(Of[T]{
		to: to, parse: parse, show: T.String,
		expected: func() string { return fmt.Sprintf("a value from %v to %v", lo, hi) },
		form:     func() Form { return Form{Patterns: []string{pattern()}, Example: example} },
	}, lo, hi)
}

// Time is a time from lo to hi.
func Time(to *units.Time, lo, hi units.Time) Of[units.Time] {
	return quantity(to, units.ParseTime, lo, hi, units.TimePattern, "10us")
}

// Bytes is an amount of data from lo to hi.
func Bytes(to *units.Bytes, lo, hi units.Bytes) Of[units.Bytes] {
	return quantity(to, units.ParseBytes, lo, hi, units.BytesPattern, "50MB")
}

// Bandwidth is a rate from MinRate to MaxRate.
func Bandwidth(to *units.Bandwidth) Of[units.Bandwidth] {
	return quantity(to, units.ParseBandwidth, MinRate, MaxRate, units.BandwidthPattern, "100Gbps")
}
