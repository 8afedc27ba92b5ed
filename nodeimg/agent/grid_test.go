package agent

import "testing"

// A node never looks at what is due before it may do it: a quarter of the time ahead and a tick of
// the grid are less.
func TestGridIsNoLongerThanNodesMayLookAhead(t *testing.T) {
	for ahead, want := range map[int64]int64{0: 1, 1: 1, 100: 64, 65_000: 32_768, 174_000: 65_536, 175_000: 131_072,
		400_000: 131_072} {
		if got := gridFor(ahead); got != want {
			t.Errorf("%d ns ahead: a grid of %d ns, want %d", ahead, got, want)
		}
	}
}
