package deploy

import (
	"fmt"
	"strconv"
	"strings"

	"weft/units"
)

// Properties are those of a link that Set knows.
func Properties() []string {
	return []string{"rate", "delay", "loss", "bit_errors", "duplicate", "reorder", "reorder_by", "jitter"}
}

// Set reads properties from a list such as delay=5us,loss=0.1%.
func (k *Link) Set(list string) error {
	for setting := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(setting, "=")
		if !ok {
			return fmt.Errorf("%q; expected a setting such as delay=5us", setting)
		}
		var err error
		switch key {
		case "rate":
			k.Rate, err = lineRate(value)
		case "delay":
			k.Delay, err = span(value)
		case "loss":
			k.Loss, err = probability(value)
		case "bit_errors":
			k.BitErrors, err = probability(value)
		case "duplicate":
			k.Duplicate, err = probability(value)
		case "reorder":
			k.Reorder, err = probability(value)
		case "reorder_by":
			k.ReorderBy, err = span(value)
		case "jitter":
			k.Jitter, err = span(value)
		default:
			return fmt.Errorf("unknown link property %q; expected rate, delay, loss, bit_errors, duplicate, reorder, reorder_by or jitter", key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// lineRate reads a rate such as 10Gbps.
func lineRate(text string) (*units.Bandwidth, error) {
	v, err := units.ParseBandwidth(text)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%q is not a rate that a line can have", text)
	}
	return &v, err
}

// span reads a time that is not negative, such as 5us.
func span(text string) (*units.Time, error) {
	v, err := units.ParseTime(text)
	if err == nil && v < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	return &v, err
}

// probability reads a share such as 0.1% or 1e-9.
func probability(text string) (*float64, error) {
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
