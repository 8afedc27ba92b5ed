package realtime

import (
	"testing"

	"pgregory.net/rapid"
)

// A pause ends on the grid, and lasts at most twice as long as it should.
func TestPausesEndOnTheGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rest{woke: rapid.Int64Range(1, 1<<50).Draw(t, "woke"), pause: rapid.Int64Range(1, maxPause).Draw(t, "pause")}
		end := r.until()
		if end < r.woke || end > r.woke+2*r.pause {
			t.Fatalf("a pause of %d ns at %d ends at %d", r.pause, r.woke, end)
		}
		if r.pause > maxGrid/2 && end%maxGrid != 0 {
			t.Fatalf("a long pause ends at %d, which is not on the grid", end)
		}
	})
	if end := (&rest{woke: 1 << 20}).until(); end != 0 {
		t.Errorf("no pause ends at %d", end)
	}
}
