package path_test

import (
	"testing"

	"pgregory.net/rapid"

	"weft/transport/path"
	"weft/units"
)

// Whatever comes back, and in whatever order: a path is one of those that there are, and the same
// seed makes the same choices.
func TestUECPathsAreInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 1 << rapid.IntRange(0, 8).Draw(t, "paths")
		seed := rapid.Uint64().Draw(t, "seed")
		made := rapid.SampledFrom([]func() path.Chooser{
			func() path.Chooser { return path.NewREPS(n, seed) },
			func() path.Chooser { return path.NewBitmap(n, seed) },
			func() path.Chooser { return path.NewMixed(n, seed) },
		}).Draw(t, "chooser")
		c, twin := made(), made()
		now := units.Time(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += units.Time(rapid.Int64Range(0, int64(3*units.Millisecond)).Draw(t, "wait"))
			if p := c.Choose(now); int(p) >= n || p != twin.Choose(now) {
				t.Fatalf("path %d of %d", p, n)
			}
			f := path.Feedback{Path: uint16(rapid.IntRange(0, n-1).Draw(t, "path")), Marked: rapid.Bool().Draw(t, "marked"),
				Cut: rapid.Bool().Draw(t, "cut"), Lost: rapid.IntRange(0, 9).Draw(t, "lost") == 0}
			c.OnFeedback(now, f)
			twin.OnFeedback(now, f)
		}
	})
}

// The bitmap skips a path once per mark, and four times after a packet that was trimmed.
func TestBitmapSkips(t *testing.T) {
	for name, c := range map[string]struct {
		f     path.Feedback
		skips int
	}{"marked": {path.Feedback{Marked: true}, 1}, "trimmed": {path.Feedback{Cut: true}, 4}, "lost": {path.Feedback{Lost: true}, 15}, "good": {}} {
		b := path.NewBitmap(4, 1)
		c.f.Path = 2
		b.OnFeedback(0, c.f)
		others := 0
		for b.Choose(0) != 2 {
			others++
		}
		if others < 3*c.skips-3 || others > 3*c.skips+6 { // three others per cycle
			t.Errorf("%s: %d packets took other paths first", name, others)
		}
	}
}

// REPS sends on each path that returned without a mark once more, oldest first, and takes random
// ones when there is none.
func TestREPSRecycles(t *testing.T) {
	r := path.NewREPS(256, 1)
	for _, p := range []uint16{7, 9, 11} {
		r.OnFeedback(0, path.Feedback{Path: p})
	}
	r.OnFeedback(0, path.Feedback{Path: 13, Marked: true})
	for _, want := range []uint16{7, 9, 11} {
		if got := r.Choose(0); got != want {
			t.Errorf("path %d, want %d", got, want)
		}
	}
	seen := map[uint16]bool{}
	for range 100 {
		seen[r.Choose(0)] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d paths in 100 draws", len(seen))
	}
}

// After a timeout REPS stays on the paths that were good, for 10 ms, and then explores.
func TestREPSFreezes(t *testing.T) {
	r := path.NewREPS(256, 1)
	for _, p := range []uint16{7, 9} {
		r.OnFeedback(0, path.Feedback{Path: p})
	}
	r.OnFeedback(0, path.Feedback{Lost: true})
	for i := range 6 {
		if got, want := r.Choose(units.Millisecond), []uint16{7, 9}[i%2]; got != want {
			t.Errorf("path %d, want %d", got, want)
		}
	}
	r.OnFeedback(11*units.Millisecond, path.Feedback{Path: 7, Marked: true})
	seen := map[uint16]bool{}
	for range 16 {
		seen[r.Choose(11*units.Millisecond)] = true
	}
	if len(seen) < 10 {
		t.Errorf("%d paths in 16 draws", len(seen))
	}
}

// Mixed recycles good paths, and otherwise avoids bad ones.
func TestMixed(t *testing.T) {
	m := path.NewMixed(4, 1)
	for range 3 {
		m.OnFeedback(0, path.Feedback{Path: 3})
	}
	for i := range 3 {
		if got := m.Choose(0); got != 3 {
			t.Errorf("choice %d: path %d", i, got)
		}
	}
	m.OnFeedback(0, path.Feedback{Path: 2, Lost: true})
	used := 0
	for range 12 {
		if m.Choose(0) == 2 {
			used++
		}
	}
	if used > 0 {
		t.Errorf("a path with a timeout was used %d times", used)
	}
}
