package summary

import (
	"strings"
	"testing"

	"weft/results/record"
)

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

// What was cut off belongs to the fault that had the link down then, whatever the order of the
// faults in the lab.
func TestCutRows(t *testing.T) {
	x := build(t, strings.Replace(faultyLab, "FAULT", "{at: 9us, link: leaf0-spine1, down: 1us}, {at: 1us, link: h3-leaf1, loss: 5%, for: 500ns}, {at: 1us, link: spine1-leaf0, down: 1us}, {at: 2us, link: h3-leaf1, down: 1us}", 1))
	id, ok := x.Graph.LinkNamed("leaf0-spine1")
	if !ok {
		t.Fatal("no such link")
	}
	cutBy := make([][]int64, len(x.Fabric.Ports))
	cutBy[2*int(id)], cutBy[2*int(id)+1] = []int64{5, 100}, []int64{7, 200}
	want := []int64{300, 0, 12, 0}
	for i, row := range CutRows(x, FaultRows(x), cutBy) {
		if row.Cut != want[i] {
			t.Errorf("%s cut off %d packets, want %d", row.Path, row.Cut, want[i])
		}
	}
}
