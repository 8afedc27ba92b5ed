package store

import "testing"

// The span of a sweep's runs is that of their names, whatever the order of its points.
func TestSpan(t *testing.T) {
	f := Found{Runs: []string{"a/20260101T000000-2", "a/20260101T000000-10", "a/20260101T000000-1", "a/20260101T000000-5"}}
	if first, last := f.Span(); first != f.Runs[2] || last != f.Runs[1] {
		t.Errorf("%s to %s", first, last)
	}
}
