package deploy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/fabric"
	"weft/internal/plural"
	"weft/units"
)

// property is a property of a link that weft link sets. set reads its text, and of returns it.
type property struct {
	name string
	set  func(l *fabric.Link, text string) error
	of   func(l *fabric.Link) any
}

// propertyOf returns the property in a field of a link.
func propertyOf[T any](name string, parse func(string) (T, error), field func(*fabric.Link) *T) property {
	return property{name, func(l *fabric.Link, text string) error {
		v, err := parse(text)
		if err == nil {
			*field(l) = v
		}
		return err
	}, func(l *fabric.Link) any { return *field(l) }}
}

// properties are the properties of a link, in the order of tables.
var properties = []property{
	propertyOf("rate", parseRate, func(l *fabric.Link) *units.Bandwidth { return &l.Rate }),
	propertyOf("delay", parseTime, func(l *fabric.Link) *units.Time { return &l.Delay }),
	propertyOf("loss", parseProbability, func(l *fabric.Link) *float64 { return &l.Loss }),
	propertyOf("bit_errors", parseProbability, func(l *fabric.Link) *float64 { return &l.BitErrors }),
	propertyOf("duplicate", parseProbability, func(l *fabric.Link) *float64 { return &l.Duplicate }),
	propertyOf("reorder", parseProbability, func(l *fabric.Link) *float64 { return &l.Reorder }),
	propertyOf("reorder_by", parseTime, func(l *fabric.Link) *units.Time { return &l.ReorderBy }),
	propertyOf("jitter", parseTime, func(l *fabric.Link) *units.Time { return &l.Jitter }),
}

// Properties returns the names of the link properties that Link.Set may name.
func Properties() (names []string) {
	for i := range properties {
		names = append(names, properties[i].name)
	}
	return names
}

// changes returns the properties of one link that differ from those of another, with their values:
// "loss=0.01".
func changes(of, from fabric.Link) (all []string) {
	for _, p := range properties {
		if v := p.of(&of); v != p.of(&from) {
			all = append(all, p.name+"="+fmt.Sprint(v))
		}
	}
	return all
}

// further returns the properties that l has beyond its rate, delay and loss, with their values.
func further(l fabric.Link) (all []string) {
	return changes(l, fabric.Link{Rate: l.Rate, Delay: l.Delay, Loss: l.Loss})
}

// effective returns l without the delay of late packets if no packet is late.
func effective(l fabric.Link) fabric.Link {
	if l.Reorder == 0 {
		l.ReorderBy = 0
	}
	return l
}

// Check returns an error unless k.Set can be read.
func (k *Link) Check() error {
	if k.Set == "" {
		return nil
	}
	return change(new(fabric.Link), k.Set)
}

// change sets the properties in a list such as delay=5us,loss=0.1%.
func change(l *fabric.Link, list string) error {
	for setting := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(setting, "=")
		if !ok {
			return fmt.Errorf("%q; expected a setting such as delay=5us", setting)
		}
		i := slices.Index(Properties(), key)
		if i < 0 {
			return fmt.Errorf("unknown link property %q; expected %s", key, plural.Or(Properties()))
		}
		if err := properties[i].set(l, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// changed returns a link after the properties in list are set. by is the lab's reorder_by, which
// holds unless something else sets it.
func changed(l fabric.Link, by units.Time, list string) (fabric.Link, error) {
	if l.ReorderBy == 0 {
		l.ReorderBy = by
	}
	if err := change(&l, list); err != nil {
		return l, err
	}
	if l.Reorder > 0 && l.ReorderBy == 0 {
		return l, errors.New("reordering needs a delay; set reorder_by, for example reorder_by=10us")
	}
	return effective(l), nil
}

// parseRate reads a rate above 0, such as 10Gbps.
func parseRate(text string) (units.Bandwidth, error) {
	v, err := units.ParseBandwidth(text)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%q is not above 0", text)
	}
	return v, err
}

// parseTime reads a time that is not negative, such as 5us.
func parseTime(text string) (units.Time, error) {
	v, err := units.ParseTime(text)
	if err == nil && v < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	return v, err
}

// parseProbability reads a probability such as 0.1% or 1e-9.
func parseProbability(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not a share; expected one such as 0.1%%", text)
	}
	return v, nil
}
