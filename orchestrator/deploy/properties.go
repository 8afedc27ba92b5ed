package deploy

import (
	"fmt"
	"strconv"
	"strings"

	"weft/internal/plural"
	"weft/units"
)

// Properties returns the names of the link properties that Link.Set knows.
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
			k.Rate, err = parseRate(value)
		case "delay":
			k.Delay, err = parseTime(value)
		case "loss":
			k.Loss, err = parseProbability(value)
		case "bit_errors":
			k.BitErrors, err = parseProbability(value)
		case "duplicate":
			k.Duplicate, err = parseProbability(value)
		case "reorder":
			k.Reorder, err = parseProbability(value)
		case "reorder_by":
			k.ReorderBy, err = parseTime(value)
		case "jitter":
			k.Jitter, err = parseTime(value)
		default:
			return fmt.Errorf("unknown link property %q; expected %s", key, plural.Or(Properties()))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
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
