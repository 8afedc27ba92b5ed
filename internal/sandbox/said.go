package sandbox

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"weft/internal/clip"
)

// Bounds of what is kept of a module's output, and of what a message shows of it, in bytes.
const (
	maxSaid  = 4096
	maxShown = 300
)

// traceStart begins the stack trace that Go prints behind the reason of a panic.
var traceStart = []byte("\n\ngoroutine ")

// said is the end of what a module printed, without a stack trace of Go.
type said struct {
	kept []byte
	over bool // a stack trace follows
}

func (s *said) clear() { s.kept, s.over = s.kept[:0], false }

// add appends output.
func (s *said) add(text []byte) {
	if s.over {
		return
	}
	text = text[max(0, len(text)-maxSaid):]
	s.kept = append(s.kept, text...)
	if i := bytes.Index(s.kept, traceStart); i >= 0 {
		s.kept, s.over = s.kept[:i], true
	}
	if n := len(s.kept) - maxSaid; n > 0 {
		s.kept = s.kept[:copy(s.kept, s.kept[n:])]
	}
}

// shown returns output as one line that is safe to show.
func shown(text []byte) string {
	return strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return ' '
		case c == utf8.RuneError || clip.Forbidden(c):
			return -1
		}
		return c
	}, string(text))), " ")
}

// text returns the end of the output as one line.
func (s *said) text() string {
	line := shown(s.kept)
	if len(line) <= maxShown {
		return line
	}
	line = line[len(line)-maxShown:]
	for !utf8.RuneStart(line[0]) {
		line = line[1:]
	}
	return "…" + line
}
