package summary

import (
	"slices"
	"testing"

	"weft/results/record"
)

// A summary has what was refused as a list, as a number and as sentences.
func TestSummaryTellsOfRefusedPackets(t *testing.T) {
	x := build(t, "weft: 1\nname: refused\ntopology: {kind: star, hosts: 3}\nworkload:\n  - {collective: incast, ranks: [h0], root: h1, size: 1MB}\n")
	o := NewOutcome()
	o.Beside = 7
	o.Refused = []record.Refused{
		{Host: "h2", By: record.ByNetwork, Why: "malformed", Packets: 3}, {Host: "h1", By: record.ByHost, Why: "unreadable", Packets: 2},
	}
	var s record.Summary
	Summarize(x, o, &s)
	if s.Network.Refused != 5 || s.Network.Beside != 7 || !slices.Equal(s.Refused, o.Refused) {
		t.Errorf("%d refused, %d beside, %+v", s.Network.Refused, s.Network.Beside, s.Refused)
	}
	for _, want := range []string{"the network refused 3 packets of h2: malformed", "h1 refused 2 packets: unreadable"} {
		if !slices.Contains(s.Warnings, want) {
			t.Errorf("warnings %q, want %q", s.Warnings, want)
		}
	}
}
