package nearest

import (
	"testing"

	"pgregory.net/rapid"
)

// The distance is a metric except for the triangle inequality, and at most the length of the longer
// word.
func TestEdits(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := Edits(a, b)
		if d != Edits(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a),
			len(b)) {
			t.Fatalf("Edits(%q, %q) = %d, the other way %d", a, b, d, Edits(b, a))
		}
	})
}
