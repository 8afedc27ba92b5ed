package path_test

import (
	"testing"

	"weft/transport/path"
)

// The path stays the same until a switch asks for the next one, cyclically.
func TestRepath(t *testing.T) {
	r := path.NewRepath(3)
	for i := range uint16(7) {
		if a, b := r.Choose(0), r.Choose(1); a != i%3 || b != a {
			t.Fatalf("paths %d and %d, want %d", a, b, i%3)
		}
		r.OnFeedback(0, path.Feedback{Path: i % 3, Marked: true, Lost: true})
		r.Next()
	}
}
