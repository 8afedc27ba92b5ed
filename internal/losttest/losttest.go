// Package losttest tests that a reader loses nothing of its file without a word: with a record left
// out, repeated or added, it must say something else than before. Records are lines, or messages of
// a binary format; what a reader says is its result, its error and its notes in one text.
package losttest

import (
	"slices"
	"strings"
	"testing"
)

// Sample is a file that a reader reads.
type Sample struct {
	Records []string            // the file, when they are joined
	Told    func(string) string // what the reader says of a file
	Added   []string            // records, each of which the reader must tell
	At      int                 // where they are added
	Idle    []string            // parts of records that may be missing or there twice: comments, names
	Default []string            // records that may be missing, since they say what holds without them
}

// Lines returns the lines of a text, each with its end.
func Lines(text string) []string {
	return slices.Collect(strings.Lines(strings.TrimSuffix(text, "\n") + "\n"))
}

// Check tests the reader of a sample.
func Check(t *testing.T, s Sample) {
	t.Helper()
	was := s.Told(strings.Join(s.Records, ""))
	tells := func(records []string) bool { return s.Told(strings.Join(records, "")) != was }
	for i, r := range s.Records {
		if strings.TrimSpace(r) == "" || slices.ContainsFunc(s.Idle, func(part string) bool { return strings.Contains(r, part) }) {
			continue
		}
		if !tells(slices.Delete(slices.Clone(s.Records), i, i+1)) && !slices.Contains(s.Default, r) {
			t.Errorf("nothing tells that %q is missing", r)
		}
		if !tells(slices.Insert(slices.Clone(s.Records), i, r)) {
			t.Errorf("nothing tells that %q is there twice", r)
		}
	}
	for _, r := range s.Added {
		if !tells(slices.Insert(slices.Clone(s.Records), s.At, r)) {
			t.Errorf("nothing tells that %q was added", r)
		}
	}
}
