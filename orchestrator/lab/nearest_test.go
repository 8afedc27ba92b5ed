package lab

import (
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

func TestNearest(t *testing.T) {
	d := &decoder{report: newReport("f")}
	keys := []string{"kind", "link", "hosts", "hosts_per_leaf", "oversubscription"}
	for word, want := range map[string]string{
		"kin":              ` (did you mean "kind"?)`,
		"hots":             ` (did you mean "hosts"?)`, // two letters swapped count as one mistake
		"host-per-leaf":    ` (did you mean "hosts_per_leaf"?)`,
		"over-subcription": ` (did you mean "oversubscription"?)`,
		"x":                "",
		"mtu":              "",
	} {
		if got := d.nearest(word, keys); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// The distance is a metric but for the triangle, and no more than the longer word.
func TestEdits(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := edits(a, b)
		if d != edits(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("edits(%q, %q) = %d, the other way %d", a, b, d, edits(b, a))
		}
	})
}

// A size that is printed is read back as the same size.
func TestParseOfSizeIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Size{Bytes: units.Bytes(rapid.Int64Range(0, int64(maxBuffer)).Draw(t, "bytes"))}
		if rapid.Bool().Draw(t, "bdp") {
			s = Size{BDP: float64(rapid.IntRange(1, 1_000_000).Draw(t, "thousandths")) / 1000}
		}
		if got, err := parseSize(s.String()); err != nil || got != s {
			t.Fatalf("%+v: %q reads as %+v, %v", s, s, got, err)
		}
	})
}
