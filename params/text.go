package params

import (
	"strings"
	"unicode"
)

// Clip shortens a word for a message and makes it safe to print.
func Clip(word string) string {
	runes := []rune(strings.Map(func(c rune) rune {
		if Forbidden(c) {
			return '\uFFFD'
		}
		return c
	}, word))
	const longest = 40
	if len(runes) > longest {
		runes = append(runes[:longest], '…')
	}
	return string(runes)
}

// Forbidden says that c has no business in a lab file: control characters, and those that only change how
// the text around them looks or where its lines end.
func Forbidden(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029'
}
