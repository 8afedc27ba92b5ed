package summary

import (
	"testing"

	"weft/results/record"
)

// Stated bounds have a value if at least half of the pairs of samples state them; if none does, the
// summary has no bounds at all.
func TestBoundsThatFewPairsState(t *testing.T) {
	for _, c := range []struct {
		stated, pairs int64
		why           string
	}{
		{0, 12_006, ""},
		{3, 12_006, "both hosts state a bound in only 3 of 12,006 pairs of samples, and it takes half of them"},
		{6002, 12_006, "both hosts state a bound in only 6002 of 12,006 pairs of samples, and it takes half of them"},
		{6003, 12_006, ""},
		{12_006, 12_006, ""},
	} {
		if got := unstated(&record.Clocks{BoundPairs: c.stated, Pairs: c.pairs}); got != c.why {
			t.Errorf("%d of %d: %q", c.stated, c.pairs, got)
		}
	}
}
