package failure

import (
	"strings"
	"testing"

	"weft/transport"
)

// Pairs of hosts beyond the first are counted.
func TestPairsOfHosts(t *testing.T) {
	x := build(t, strings.Replace(faultyLab, "FAULT", "", 1))
	type pair = [2]transport.HostID
	for want, flows := range map[string]map[pair]int{
		"h2 to h0": {{2, 0}: 4},
		"h0 to h1, h1 to h2, h2 to h3, and 5 more": {{0, 1}: 1, {2, 3}: 1, {1, 2}: 1, {3, 4}: 1, {4, 5}: 4},
	} {
		if got := pairs(x, flows); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
