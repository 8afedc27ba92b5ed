package lab

import (
	"testing"

	"pgregory.net/rapid"

	"weft/params"
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

// A size that is printed is read back as the same size.
func TestParseOfSizeIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := params.Size{Bytes: units.Bytes(rapid.Int64Range(0, int64(64*units.GB)).Draw(t, "bytes"))}
		if rapid.Bool().Draw(t, "bdp") {
			s = params.Size{BDP: float64(rapid.IntRange(1, 1_000_000).Draw(t, "thousandths")) / 1000}
		}
		var got params.Size
		if _, err := params.Amount(&got).Set(s.String(), false); err != nil || got != s {
			t.Fatalf("%+v: %q reads as %+v, %v", s, s, got, err)
		}
	})
}
