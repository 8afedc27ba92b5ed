package main

import (
	"encoding/json"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weft/results/table"
)

// terminal reports whether w is a terminal that understands more than lines of text.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	return reachesTerminal(f)
}

// style is how text on w may be decorated and how wide it may be: with colour on terminals, unless NO_COLOR asks for none
// (https://no-color.org).
func style(w io.Writer) table.Style {
	return table.Style{Colour: terminal(w) && os.Getenv("NO_COLOR") == "", Width: widthOf(w)}
}

// widthOf is how wide the terminal is that w is; 0 where it is none, or does not say.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// writeJSON writes v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeLine writes v as one line of JSON.
func writeLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// newPace returns a pace that writes to standard error.
func (a *app) newPace(quiet bool) *table.Pace {
	return table.NewPace(a.stderr, terminal(a.stderr), quiet, a.time)
}

// time returns the present instant, by the test's clock if there is one.
func (a *app) time() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}
