package units

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quantity defines the text of one kind of quantity: a decimal number followed directly by a unit.
// Name, example and finest appear in error messages.
type quantity struct {
	name    string // with its article: "a time"
	example string // "10us"
	finest  string // the resolution: "1 ps"

	// units are the accepted units in ascending order. Among spellings of the same unit, the one
	// that format prints comes first.
	units []unit

	// misspelled maps common wrong spellings to the units they may mean, for error messages.
	misspelled map[string][]string
}

// unit is one unit of a quantity.
type unit struct {
	suffix string
	scale  int64 // its size in the quantity's base unit
}

// maxText is the longest text that is parsed, in bytes. The longest exact quantity,
// -9223372.036854775808s, has 21.
const maxText = 64

// parse parses text exactly: "0.1us" is 100000 ps. A value that is not a whole number of base
// units, or does not fit an int64, is an error.
func (q *quantity) parse(text string) (int64, error) {
	number, suffix, err := split(text)
	if err != nil {
		return 0, q.errorf(text, "%w", err)
	}
	if suffix == "" {
		return 0, q.errorf(text, "has no unit")
	}
	u, ok := q.find(suffix)
	if !ok {
		return 0, q.errorf(text, "has the unknown unit %q (%s)", clip(suffix), q.hint(number, suffix))
	}
	whole, fraction, _ := strings.Cut(number, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return 0, q.errorf(text, "does not begin with a decimal number")
	}
	n.Mul(n, big.NewInt(u.scale))
	den := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)
	n, rest := n.QuoRem(n, den, new(big.Int))
	if rest.Sign() != 0 {
		return 0, q.errorf(text, "is not a whole multiple of %s", q.finest)
	}
	if !n.IsInt64() {
		return 0, q.errorf(text, "%w", ErrRange)
	}
	return n.Int64(), nil
}

// ErrRange is wrapped by the errors of quantities that are written well, and too large.
var ErrRange = errors.New("is out of range")

// errorf returns an error that quotes text, says what is wrong with it, and ends in what was
// expected.
func (q *quantity) errorf(text, format string, args ...any) error {
	return fmt.Errorf("%q %w; expected %s such as %s", clip(text), fmt.Errorf(format, args...), q.name, q.example)
}

// clip shortens text to at most 40 bytes for an error message, without cutting a character.
func clip(text string) string {
	const longest = 40
	if len(text) <= longest {
		return text
	}
	end := longest
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// find returns the unit with the given suffix.
func (q *quantity) find(suffix string) (unit, bool) {
	for _, u := range q.units {
		if u.suffix == suffix {
			return u, true
		}
	}
	return unit{}, false
}

// hint suggests what a quantity with an unknown unit was probably meant to be. Without a guess it
// lists the known units.
func (q *quantity) hint(number, suffix string) string {
	word := strings.TrimSpace(suffix)
	meant := q.misspelled[word]
	if u, ok := q.find(word); ok {
		meant = []string{u.suffix}
	}
	if len(meant) == 0 {
		return "known: " + q.known()
	}
	return "did you mean " + number + strings.Join(meant, " or "+number) + "?"
}

// known lists the units, each in the spelling that format prints.
func (q *quantity) known() string {
	var names []string
	for i, u := range q.units {
		if i == 0 || u.scale != q.units[i-1].scale {
			names = append(names, u.suffix)
		}
	}
	return strings.Join(names, ", ")
}

// format formats v in the largest decimal unit that leaves it at least 1, with as many decimals as
// needed: parse returns v again.
func (q *quantity) format(v int64) string {
	u := q.units[0]
	abs := new(big.Int).Abs(big.NewInt(v)) // |math.MinInt64| does not fit an int64
	for _, next := range q.units {
		if next.scale > u.scale && decimal(next.scale) && abs.Cmp(big.NewInt(next.scale)) >= 0 {
			u = next
		}
	}
	whole, rest := new(big.Int).QuoRem(abs, big.NewInt(u.scale), new(big.Int))
	text := whole.String()
	if rest.Sign() != 0 {
		digits := len(strconv.FormatInt(u.scale, 10)) - 1
		text += "." + strings.TrimRight(fmt.Sprintf("%0*s", digits, rest.String()), "0")
	}
	if v < 0 {
		text = "-" + text
	}
	return text + u.suffix
}

// decimal reports whether scale is a power of ten.
func decimal(scale int64) bool {
	for scale > 1 && scale%10 == 0 {
		scale /= 10
	}
	return scale == 1
}

// split splits text into a decimal number and the suffix that follows it. The number consists of
// digits with an optional minus sign in front and an optional point between them.
func split(text string) (number, suffix string, err error) {
	if text == "" {
		return "", "", fmt.Errorf("is empty")
	}
	if len(text) > maxText {
		return "", "", fmt.Errorf("is longer than %d characters", maxText)
	}
	i := 0
	if text[0] == '-' {
		i++
	}
	start := i
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	if i == start {
		return "", "", fmt.Errorf("does not begin with a decimal number")
	}
	if i+1 < len(text) && text[i] == '.' && text[i+1] >= '0' && text[i+1] <= '9' {
		for i++; i < len(text) && text[i] >= '0' && text[i] <= '9'; {
			i++
		}
	}
	return text[:i], text[i:], nil
}

// pattern returns a regular expression, valid in both ECMA 262 and RE2, for the text that parse
// accepts. It does not check range and precision, and allows no sign: no quantity of a lab file is
// negative.
func (q *quantity) pattern() string {
	names := make([]string, len(q.units))
	for i, u := range q.units {
		names[i] = u.suffix
	}
	return `[0-9]+(\.[0-9]+)?(` + strings.Join(names, "|") + `)`
}
