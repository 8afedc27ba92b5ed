package schedule

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "n")
		size := Element * units.Bytes(rapid.IntRange(0, 10000).Draw(t, "elements"))
		k, end := cutBlocks(size, n, Element), units.Bytes(0)
		for b := range n {
			if k.at(b) != end {
				t.Fatalf("block %d at %d, want %d", b, k.at(b), end)
			}
			end += k.size(b)
			if d := k.size(0) - k.size(b); d != 0 && d != Element {
				t.Fatalf("blocks of %d and %d", k.size(0), k.size(b))
			}
		}
		if end != size {
			t.Fatalf("blocks add up to %d of %d", end, size)
		}
	})
}

func TestDerangement(t *testing.T) {
	if _, err := Derangement(1, 1); err == nil {
		t.Fatal("a derangement of one")
	}
	// The two derangements of 3 and the nine of 4 are equally likely: chi-squared with 8 degrees of
	// freedom is above 26.1 in one case of 1000.
	for n, all := range map[int]int{3: 2, 4: 9} {
		count := map[string]int{}
		const draws = 9000
		for seed := range uint64(draws) {
			p, err := Derangement(n, seed)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkPermutation(p, n, 0); err != nil {
				t.Fatal(err)
			}
			count[fmt.Sprint(p)]++
		}
		chi := 0.0
		for _, c := range count {
			d := float64(c) - draws/float64(all)
			chi += d * d / (draws / float64(all))
		}
		if len(count) != all || chi > 26.1 {
			t.Errorf("n=%d: %d of %d derangements, chi-squared %.1f: %v", n, len(count), all, chi, count)
		}
	}
	a, _ := Derangement(1000, 7)
	b, _ := Derangement(1000, 7)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave two derangements")
	}
}
