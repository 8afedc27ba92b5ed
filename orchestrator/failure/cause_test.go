package failure

import (
	"strings"
	"testing"

	"weft/transport"
	"weft/units"
)

// A suggested time has one digit and is shorter than its limit.
func TestTimesBelowALimit(t *testing.T) {
	for limit, want := range map[units.Time]units.Time{
		127 * units.Millisecond: 100 * units.Millisecond, 100 * units.Millisecond: 80 * units.Millisecond,
		units.Second: 800 * units.Millisecond, 12 * units.Microsecond: 9 * units.Microsecond, 0: 0,
	} {
		if got := below(limit); got != want {
			t.Errorf("below %v: %v, want %v", limit, got, want)
		}
	}
}

// Hosts with the same peers are listed together.
func TestPairsOfHostsAreGrouped(t *testing.T) {
	x := build(t, strings.Replace(faultyLab, "FAULT", "", 1))
	type pair = [2]transport.HostID
	for want, flows := range map[string]map[pair]int{
		"4 flows from h0..h3 to h5": {{0, 5}: 1, {1, 5}: 1,
			{2, 5}: 1, {3, 5}: 1},
		"4 flows from h2 to h0, h1, h3 and h5": {{2, 0}: 1, {2, 1}: 1,
			{2, 3}: 1, {2, 5}: 1},
		"3 flows from h0 and h1 to h2, 1 flow from h5 to h4": {{0, 2}: 2, {1, 2}: 1,
			{5, 4}: 1},
		"1 flow from h0 to h1, 1 flow from h1 to h2, 1 flow from h2 to h3, and 2 more": {{0, 1}: 1, {1, 2}: 1,
			{2, 3}: 1, {3, 4}: 1, {4, 5}: 1},
	} {
		if got := pairs(x, flows); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
