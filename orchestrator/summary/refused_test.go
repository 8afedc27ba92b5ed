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
		{Host: "h0", By: record.ByNetwork, Why: "malformed", Packets: 1},
		{Host: "h2", By: record.ByNetwork, Why: "malformed", Packets: 3},
		{Host: "h2", By: record.ByNetwork, Why: "without a destination", Packets: 5},
		{Host: "h1", By: record.ByHost, Why: "unreadable", Packets: 2}, {Host: "h0", By: record.ByHost, Why: "unreadable", Packets: 4},
		{Host: "h0", By: record.ByHost, Why: "from strangers", Packets: 1},
		{Host: "h0", By: record.ByHost, From: "h2", Why: "unreadable", Packets: 9},
		{Host: "h1", By: record.ByHost, From: "h2", Why: "unreadable", Packets: 1},
		{Host: "h1", By: record.ByHost, From: "h2", Why: "impossible in their connection", Packets: 2},
		{Host: "h2", By: record.ByHost, From: "h1", Why: "unreadable", Packets: 3},
	}
	var s record.Summary
	Summarize(x, o, &s, never)
	if s.Network.Refused != 31 || s.Network.Beside != 7 || !slices.Equal(s.Refused, o.Refused) {
		t.Errorf("%d refused, %d beside, %+v", s.Network.Refused, s.Network.Beside, s.Refused)
	}
	want := []string{
		"h2 sent 8 packets that the network refused: 3 malformed, 5 without a destination; " +
			"and 12 packets that crossed the network and were refused by h0, h1: 10 unreadable, 2 impossible in their connection",
		"h1 sent 3 packets that crossed the network and were refused by h2: 3 unreadable",
		"h0 sent 1 packets that the network refused: 1 malformed",
		"7 packets crossed the network and were refused by h1, h0: 6 unreadable, 1 from strangers",
	}
	if len(s.Warnings) < len(want) || !slices.Equal(s.Warnings[:len(want)], want) {
		t.Errorf("warnings %q, want %q first", s.Warnings, want)
	}
}
