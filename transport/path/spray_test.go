package path_test

import (
	"testing"

	"pgregory.net/rapid"

	"weft/transport/path"
)

// Oblivious spraying: every cycle uses every path once, in its own order, which depends only on the
// seed.
func TestSprayUsesEveryPathOncePerCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 1 << rapid.IntRange(0, 8).Draw(t, "paths")
		seed := rapid.Uint64().Draw(t, "seed")
		s, twin := path.NewSpray(n, seed), path.NewSpray(n, seed)
		for range 5 {
			seen := make([]bool, n)
			for range n {
				p := s.Choose(0)
				s.OnFeedback(0, path.Feedback{Path: p, Marked: true})
				if int(p) >= n || seen[p] {
					t.Fatalf("path %d of %d, used %v", p, n, seen)
				}
				seen[p] = true
				if twin.Choose(0) != p {
					t.Fatal("the same seed chooses otherwise")
				}
			}
		}
	})
}

func TestSprayDrawsAMaskPerCycle(t *testing.T) {
	s := path.NewSpray(256, 1)
	first := map[uint16]bool{}
	for range 100 {
		first[s.Choose(0)] = true
		for range 255 {
			s.Choose(0)
		}
	}
	if len(first) < 50 {
		t.Errorf("100 cycles begin with %d paths", len(first))
	}
}
