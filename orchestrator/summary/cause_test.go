package summary

import (
	"strings"
	"testing"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// What is told to be set has one digit, and is shorter than what it has to be shorter than.
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

// What happened is in the manifest, for reports.
func TestFaultRows(t *testing.T) {
	x := build(t, strings.Replace(faultyLab, "FAULT", "{at: 1us, link: spine1-leaf0, down: 1us}, {at: 3us, link: h3-leaf1, loss: 5%, rate: 1Gbps, toward: h3}, {at: 1us, host: h1, kill: true}, {at: 2us, corrupt: h2}", 1))
	want := []record.Fault{
		{Path: "faults.0", Link: "leaf0-spine1", What: "down", FromUS: 1, UntilUS: 2},
		{Path: "faults.1", Link: "h3-leaf1", What: "rate 1Gbps, loss 5% towards h3", FromUS: 3},
		{Path: "faults.2", Host: "h1", What: "killed", FromUS: 1},
		{Path: "faults.3", Host: "h2", What: "a byte is corrupted", FromUS: 2, Once: true},
	}
	got := FaultRows(x)
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("%d: got %+v, want %+v", i, got, want[i])
		}
	}
}

// Hosts with the same peers are told together.
func TestPairsOfHostsAreGrouped(t *testing.T) {
	x := build(t, strings.Replace(faultyLab, "FAULT", "", 1))
	type pair = [2]transport.HostID
	for want, flows := range map[string]map[pair]int{
		"4 flows from h0..h3 to h5":                                                    {{0, 5}: 1, {1, 5}: 1, {2, 5}: 1, {3, 5}: 1},
		"4 flows from h2 to h0, h1, h3 and h5":                                         {{2, 0}: 1, {2, 1}: 1, {2, 3}: 1, {2, 5}: 1},
		"3 flows from h0 and h1 to h2, 1 flow from h5 to h4":                           {{0, 2}: 2, {1, 2}: 1, {5, 4}: 1},
		"1 flow from h0 to h1, 1 flow from h1 to h2, 1 flow from h2 to h3, and 2 more": {{0, 1}: 1, {1, 2}: 1, {2, 3}: 1, {3, 4}: 1, {4, 5}: 1},
	} {
		if got := pairs(x, flows); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
