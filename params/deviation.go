package params

import (
	"fmt"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/units"
)

// Deviation is a time from 0 to most with an optional ± before it, or off, which is 0.
func Deviation(to *units.Time, most units.Time) Of[units.Time] {
	signed := false
	return Of[units.Time]{
		to: to, expected: always("off or a time such as 20ns"),
		parse: func(text string) (units.Time, error) {
			text, signed = strings.CutPrefix(text, "±")
			return units.ParseTime(text)
		},
		show: func(t units.Time) string {
			if signed {
				return "±" + t.String()
			}
			return t.String()
		},
		within: func(t units.Time) bool { return t >= 0 && t <= most },
		bounds: func() string { return fmt.Sprintf("off, or up to %v", most) },
		form:   func() Form { return Form{Patterns: []string{"±?" + units.TimePattern()}, Example: "±1ms"} },
	}.Or("off", 0)
}

// Ratio is a frequency error of at most most, such as ±20ppm. The prefix before is optional, the
// suffix after is required. off is 0.
func Ratio(to *float64, before, after string, most float64, example string) Of[float64] {
	return Of[float64]{
		to: to, expected: always("off or a value such as " + example),
		parse: func(text string) (float64, error) {
			v, ok := parseRatio(strings.TrimPrefix(text, before), after)
			if !ok {
				return 0, fmt.Errorf("%q is not understood; expected off or a value such as %s", clip.Text(text),
					example)
			}
			return v, nil
		},
		show:   func(v float64) string { return before + ShowRatio(v) + after },
		within: func(v float64) bool { return v <= most },
		bounds: func() string { return "up to " + ShowRatio(most) + after },
		form: func() Form {
			return Form{Patterns: []string{"±?" + Plain + `(ppm|ppb)(/(√s|sqrt\(s\)))?`}, Example: "±20ppm"}
		},
	}.Or("off", 0)
}

// parseRatio parses a number with the unit ppm or ppb and the given suffix. /√s may also be written
// /sqrt(s).
func parseRatio(text, after string) (float64, bool) {
	if after == "/√s" {
		text = strings.Replace(text, "/sqrt(s)", after, 1)
	}
	text, ok := strings.CutSuffix(text, after)
	exponent := "e-6"
	number, isPPM := strings.CutSuffix(text, "ppm")
	if !isPPM {
		var isPPB bool
		if number, isPPB = strings.CutSuffix(text, "ppb"); !isPPB {
			return 0, false
		}
		exponent = "e-9"
	}
	if _, err := ParseDecimal(number); err != nil || !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(number+exponent, 64)
	return v, err == nil
}

// ShowRatio formats a ratio in ppm, or in ppb if that is shorter. parseRatio reads the same number
// back.
func ShowRatio(v float64) string {
	for _, u := range []struct {
		unit, exponent string
		scale          float64
	}{{"ppm", "e-6", 1e6}, {"ppb", "e-9", 1e9}} {
		text := strconv.FormatFloat(v*u.scale, 'g', 12, 64)
		back, err := strconv.ParseFloat(text+u.exponent, 64)
		exact := err == nil && back == v && !strings.Contains(text, "e")
		if exact && (v == 0 || v*u.scale >= 1 || u.unit == "ppb") {
			return text + u.unit
		}
	}
	return strconv.FormatFloat(v*1e9, 'f', -1, 64) + "ppb"
}
