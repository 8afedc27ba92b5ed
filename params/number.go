package params

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/units"
)

// Regular expressions of numbers: a decimal, a percentage and a fraction.
const (
	Plain    = `[0-9]+(\.[0-9]+)?`
	Percents = Plain + `%`
	Fraction = Plain + `/` + Plain
)

// Integer is a whole number from lo to hi.
func Integer(to *int, lo, hi int) Of[int] {
	expected := func() string { return fmt.Sprintf("a whole number from %d to %d", lo, hi) }
	return ranged(Of[int]{
		to: to, show: strconv.Itoa, expected: expected, bounds: expected,
		bare: func() string { return "a whole number; expected " + expected() },
		form: func() Form { return Form{Number: "integer", Least: strconv.Itoa(lo), Most: strconv.Itoa(hi)} },
		parse: func(text string) (int, error) {
			if !Digits(text) {
				return 0, fmt.Errorf("%q is not a whole number; expected %s", clip.Text(text), expected())
			}
			v, err := strconv.Atoi(text)
			if err != nil {
				err = fmt.Errorf("%q is out of range; expected %s", clip.Text(text), expected())
			}
			return v, err
		},
	}, lo, hi)
}

// Decimal is a number from lo to hi without a unit.
func Decimal(to *float64, lo, hi float64) Of[float64] {
	return ranged(Of[float64]{
		to: to, parse: ParseDecimal, show: ShowDecimal,
		expected: func() string { return fmt.Sprintf("a number from %v to %v", lo, hi) },
		form:     func() Form { return Form{Number: "number", Least: ShowDecimal(lo), Most: ShowDecimal(hi)} },
	}, lo, hi)
}

// Share is a ratio from lo to hi, written as a number or in percent.
func Share(to *float64, lo, hi float64) Of[float64] {
	return ranged(Of[float64]{
		to: to, parse: OrPercent(ParseDecimal), show: ShowDecimal,
		expected: func() string { return fmt.Sprintf("a share from %v to %v, such as 0.5 or 50%%", lo, hi) },
		form: func() Form {
			return Form{
				Number: "number", Least: ShowDecimal(lo), Most: ShowDecimal(hi),
				Patterns: []string{Percents}, Example: "50%",
			}
		},
	}, lo, hi)
}

// Probability is a share from 0 to below 1 that may be very small: 0.1%, 0.001 or 1e-12.
func Probability(to *float64) Of[float64] {
	const expected = "a share from 0 to below 1, such as 0.1% or 1e-12"
	return Of[float64]{
		to: to, expected: always(expected), bounds: always(expected),
		parse: func(text string) (float64, error) {
			p, err := OrPercent(parseProbability)(text)
			if err != nil {
				err = fmt.Errorf("%q is not a share; expected %s", clip.Text(text), expected)
			}
			return p, err
		},
		show: func(p float64) string {
			if p != 0 && p < 1e-6 {
				return strconv.FormatFloat(p, 'e', -1, 64)
			}
			return ShowDecimal(p)
		},
		within: func(p float64) bool { return p < 1 },
		form:   always(Form{Number: "number", Least: "0", Most: "1", Patterns: []string{Percents}, Example: "0.1%"}),
	}
}

var probabilityText = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(e-[0-9]{1,2})?$`)

func parseProbability(text string) (float64, error) {
	if !probabilityText.MatchString(text) || len(text) > 32 {
		return 0, errors.New("no decimal number")
	}
	return strconv.ParseFloat(text, 64)
}

// Percent is a share from 0 to 1 that is written in percent. The message about a missing value says
// what it is a percentage of.
func Percent(to *float64, of string) Of[float64] {
	return ranged(Of[float64]{
		to: to, parse: units.ParsePercent, show: units.FormatPercent,
		expected: always("a percentage of " + of + " such as 0.5%"),
		form:     always(Form{Patterns: []string{Percents}, Example: "0.5%"}),
	}, 0, 1)
}

// Gain is a share above 0 and up to 1. NICs and papers like to write it as a fraction such as
// 1/256.
func Gain(to *float64) Of[float64] {
	const expected = "a share above 0, up to 1, such as 1/256 or 0.4%"
	return Of[float64]{
		to: to, parse: ParseGain, show: ShowDecimal, expected: always(expected), bounds: always(expected),
		within: func(v float64) bool { return v > 0 && v <= 1 },
		form: always(Form{
			Number: "number", Least: "0", Most: "1", Patterns: []string{Percents, Fraction}, Example: "1/256",
		}),
	}
}

// Flag is true or false, which may also be written on, off, yes or no.
func Flag(to *bool) Of[bool] {
	return Of[bool]{
		to: to, show: strconv.FormatBool, expected: always("true or false"), form: always(Form{Flag: true}),
		parse: func(text string) (bool, error) {
			switch text {
			case "true", "on", "yes":
				return true, nil
			case "false", "off", "no":
				return false, nil
			}
			return false, fmt.Errorf("%q is neither true nor false", clip.Text(text))
		},
	}
}

// ParseDecimal parses a number of at most 32 characters without a sign or an exponent.
func ParseDecimal(text string) (float64, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !Digits(whole) || point && !Digits(fraction) || len(text) > 32 {
		return 0, fmt.Errorf("%q is not a decimal number; expected one such as 1.25", clip.Text(text))
	}
	return strconv.ParseFloat(text, 64)
}

// ShowDecimal formats a number so that ParseDecimal reads the same number back.
func ShowDecimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// OrPercent returns a parser that takes a percentage if the text ends in %, and else calls parse.
func OrPercent(parse func(string) (float64, error)) func(string) (float64, error) {
	return func(text string) (float64, error) {
		if strings.HasSuffix(text, "%") {
			return units.ParsePercent(text)
		}
		return parse(text)
	}
}

// ParseGain parses a number, a percentage or a fraction. A fraction by 0 is infinite or not a
// number, which is outside every range.
func ParseGain(text string) (float64, error) {
	over, under, fraction := strings.Cut(text, "/")
	if !fraction {
		return OrPercent(ParseDecimal)(text)
	}
	a, err := ParseDecimal(over)
	if err != nil {
		return 0, err
	}
	b, err := ParseDecimal(under)
	if err != nil {
		return 0, err
	}
	return a / b, nil
}

// Digits reports whether text is one or more digits and nothing else.
func Digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
