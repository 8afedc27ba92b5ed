// Package clip makes text from a file, a person or another process safe to print in a message.
package clip

import (
	"strings"
	"unicode"
)

// longest is the number of characters that Text keeps.
const longest = 40

// Text returns the first 40 characters of a text, with U+FFFD for each that is Forbidden, and an
// ellipsis if there are more.
func Text(text string) string {
	if len(text) > (longest+1)*4 { // a character has up to 4 bytes
		text = text[:(longest+1)*4]
	}
	runes := []rune(visible(text))
	if len(runes) > longest {
		runes = append(runes[:longest], '…')
	}
	return string(runes)
}

// maxLine is the number of bytes that Line keeps.
const maxLine = 1000

// Line returns a text as one line of at most 1000 bytes, with U+FFFD for each character that is
// Forbidden: for reasons and names of files, whose end matters.
func Line(text string) string {
	if len(text) > maxLine {
		text = text[:maxLine/2] + "…" + text[len(text)-maxLine/2:]
	}
	return visible(text)
}

// maxLines is the number of bytes that Lines keeps.
const maxLines = 8 << 10

// Lines returns the end of a text of several lines, at most 8 KiB, with U+FFFD for each character
// that is Forbidden, but for the ends of lines and tabs: for what another process says.
func Lines(text string) string {
	text = text[max(0, len(text)-maxLines):]
	return strings.Map(func(c rune) rune {
		if Forbidden(c) && c != '\n' && c != '\t' {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// oneLine has what stands for the ends of lines and tabs in a line.
var oneLine = strings.NewReplacer("\r\n", "↵", "\n", "↵", "\r", "↵", "\t", " ")

// OneLine returns a text of several lines as one, with ↵ for the ends of its lines and a blank for
// a tab: for a cell of a table, whose lines no text may add to.
func OneLine(text string) string { return oneLine.Replace(text) }

// visible returns a text with U+FFFD for each character that is Forbidden.
func visible(text string) string {
	return strings.Map(func(c rune) rune {
		if Forbidden(c) {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// Forbidden reports whether c must be in no lab file and no message: control characters, and those
// that only change how the text around them looks or where its lines end.
func Forbidden(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029'
}
