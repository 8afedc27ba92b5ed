package expect

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Error is an error at a position of an expression.
type Error struct {
	Offset int // in bytes, from 0
	Msg    string
}

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Offset+1, e.Msg) }

// errorAt returns an Error at an offset.
func errorAt(at int, format string, args ...any) *Error {
	return &Error{Offset: at, Msg: fmt.Sprintf(format, args...)}
}

// kind is the kind of a token.
type kind uint8

const (
	end kind = iota
	quantityToken
	nameToken
	operator  // + - * / ( ) , and the comparisons
	selection // from [ to ]
	quoted    // from " to "
)

// A token is a token of the text.
type token struct {
	kind kind
	text string
	at   int // offset in bytes
}

// String returns the token for an error message.
func (t token) String() string {
	if t.kind == end {
		return "the end of the line"
	}
	return fmt.Sprintf("%q", t.text)
}

// lex splits the text into tokens; the last is end.
func lex(text string) ([]token, error) {
	var out []token
	for i := 0; i < len(text); {
		n, k := 1, operator
		switch c := text[i]; {
		case c == ' ' || c == '\t':
			i++
			continue
		case digit(c) || c == '.':
			n, k = quantityLen(text[i:]), quantityToken
		case letter(c):
			n, k = nameLen(text[i:]), nameToken
		case c == '"':
			n, k = strings.IndexByte(text[i+1:], '"')+2, quoted
			if n == 1 {
				return nil, errorAt(i, "missing closing \"")
			}
		case c == '[':
			n, k = strings.IndexByte(text[i:], ']')+1, selection
			if n == 0 {
				return nil, errorAt(i, "missing ] for this [")
			}
		case strings.IndexByte("<>=!", c) >= 0:
			if i+1 < len(text) && text[i+1] == '=' {
				n = 2
			} else if c == '=' || c == '!' {
				return nil, errorAt(i, "%q is not a comparison; write ==, !=, <, <=, > or >=", string(c))
			}
		case strings.IndexByte("+-*/(),", c) < 0:
			r, _ := utf8.DecodeRuneInString(text[i:])
			return nil, errorAt(i, "unexpected character %q", r)
		}
		out = append(out, token{k, text[i : i+n], i})
		i += n
	}
	return append(out, token{kind: end, at: len(text)}), nil
}

func digit(c byte) bool  { return c >= '0' && c <= '9' }
func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

// nameLen returns the length of the name at the start of s: letters, digits, _ and dots.
func nameLen(s string) int {
	n := 0
	for n < len(s) && (letter(s[n]) || digit(s[n]) || s[n] == '.') {
		n++
	}
	return n
}

// quantityLen returns the length of the number and unit at the start of s.
func quantityLen(s string) int {
	n := 0
	for n < len(s) && (digit(s[n]) || s[n] == '.') {
		n++
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		rest := strings.TrimLeft(s[n+1:], "+-")
		if signs := len(s[n+1:]) - len(rest); signs <= 1 && rest != "" && digit(rest[0]) {
			n += 1 + signs
			for n < len(s) && digit(s[n]) {
				n++
			}
		}
	}
	if n < len(s) && s[n] == '%' {
		return n + 1
	}
	for n < len(s) {
		switch {
		case letter(s[n]):
			n++
		case strings.HasPrefix(s[n:], "µ"), strings.HasPrefix(s[n:], "μ"): // U+00B5, U+03BC
			n += 2
		default:
			return n
		}
	}
	return n
}
