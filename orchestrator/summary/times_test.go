package summary

import "testing"

func TestRanges(t *testing.T) {
	var r ranges
	for _, n := range []int{0, 2, 3, 4, 9} {
		r.add(n)
	}
	if got := r.String(); got != "0,2-4,9" {
		t.Errorf("%q", got)
	}
}
