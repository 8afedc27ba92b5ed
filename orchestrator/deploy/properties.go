package deploy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"weft/fabric"
	"weft/internal/plural"
	"weft/units"
)

// properties are the properties of a link, in the order of tables. read assigns a setting's text;
// of returns the value of one direction, which must have a Disorder.
var properties = []struct {
	name string
	read func(k *Link, text string) error
	of   func(l *fabric.Link) any
}{
	{"rate", reader(parseRate, func(k *Link) **units.Bandwidth { return &k.Rate }),
		func(l *fabric.Link) any { return l.Rate }},
	{"delay", reader(parseTime, func(k *Link) **units.Time { return &k.Delay }),
		func(l *fabric.Link) any { return l.Delay }},
	{"loss", reader(parseProbability, func(k *Link) **float64 { return &k.Loss }),
		func(l *fabric.Link) any { return l.Loss }},
	{"bit_errors", reader(parseProbability, func(k *Link) **float64 { return &k.BitErrors }),
		func(l *fabric.Link) any { return l.BitErrors }},
	{"duplicate", reader(parseProbability, func(k *Link) **float64 { return &k.Duplicate }),
		func(l *fabric.Link) any { return l.Disorder.Duplicate }},
	{"reorder", reader(parseProbability, func(k *Link) **float64 { return &k.Reorder }),
		func(l *fabric.Link) any { return l.Disorder.Reorder }},
	{"reorder_by", reader(parseTime, func(k *Link) **units.Time { return &k.ReorderBy }),
		func(l *fabric.Link) any {
			if l.Disorder.Reorder == 0 { // then it has no effect
				return units.Time(0)
			}
			return l.Disorder.By
		}},
	{"jitter", reader(parseTime, func(k *Link) **units.Time { return &k.Jitter }),
		func(l *fabric.Link) any { return l.Disorder.Jitter }},
}

// Properties returns the names of the link properties that Link.Set knows.
func Properties() (names []string) {
	for i := range properties {
		names = append(names, properties[i].name)
	}
	return names
}

// changes returns the properties of one link that differ from those of another, with their values:
// "loss=0.01". Both must have a Disorder.
func changes(of, from *fabric.Link) (all []string) {
	for _, p := range properties {
		if v := p.of(of); v != p.of(from) {
			all = append(all, p.name+"="+fmt.Sprint(v))
		}
	}
	return all
}

// further returns the properties that l has beyond its rate, delay and loss, with their values.
func further(l *fabric.Link) (all []string) {
	for _, p := range properties[3:] {
		if v := p.of(l); !reflect.ValueOf(v).IsZero() {
			all = append(all, p.name+"="+fmt.Sprint(v))
		}
	}
	return all
}

// Set reads properties from a list such as delay=5us,loss=0.1%.
func (k *Link) Set(list string) error {
	for setting := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(setting, "=")
		if !ok {
			return fmt.Errorf("%q; expected a setting such as delay=5us", setting)
		}
		i := slices.Index(Properties(), key)
		if i < 0 {
			return fmt.Errorf("unknown link property %q; expected %s", key, plural.Or(Properties()))
		}
		if err := properties[i].read(k, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// reader returns a function that parses a text into a field of a Link.
func reader[T any](parse func(string) (*T, error), field func(*Link) **T) func(*Link, string) error {
	return func(k *Link, text string) (err error) {
		*field(k), err = parse(text)
		return err
	}
}

// parseRate reads a rate above 0, such as 10Gbps.
func parseRate(text string) (*units.Bandwidth, error) {
	v, err := units.ParseBandwidth(text)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%q is not above 0", text)
	}
	return &v, err
}

// parseTime reads a time that is not negative, such as 5us.
func parseTime(text string) (*units.Time, error) {
	v, err := units.ParseTime(text)
	if err == nil && v < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	return &v, err
}

// parseProbability reads a probability such as 0.1% or 1e-9.
func parseProbability(text string) (*float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return nil, fmt.Errorf("%q is not a share; expected one such as 0.1%%", text)
	}
	return &v, nil
}
