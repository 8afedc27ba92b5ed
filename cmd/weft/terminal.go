package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"weft/internal/terminal"
	"weft/results/table"
)

// isTerminal reports whether w is a terminal that can do more than print lines.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && reachesTerminal(f)
}

// style returns how to decorate text on w, and its width: colour is for terminals, unless NO_COLOR
// is set (https://no-color.org).
func style(w io.Writer) table.Style {
	return table.Style{Colour: isTerminal(w) && os.Getenv("NO_COLOR") == "", Width: widthOf(w)}
}

// widthOf returns the width of the terminal w in columns, or 0 if w is none or has no width.
func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		return terminal.Width(f)
	}
	return 0
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
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// newPace returns the progress display of this invocation, on standard error.
func (a *app) newPace(quiet bool) *table.Pace {
	now := a.now
	if now == nil {
		now = time.Now
	}
	return table.NewPace(a.stderr, isTerminal(a.stderr), quiet, now)
}
