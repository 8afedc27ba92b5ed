package natural

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	want := []string{"", "20260101T000000-1", "20260101T000000-2", "20260101T000000-10", "a", "s2", "s02-x", "s10", "s10a", "sb"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Compare)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
