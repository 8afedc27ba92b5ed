package run

import (
	"math"
	"testing"

	"weft/results/store"
)

// Flows are written in batches. No flow is lost between two batches, and a run without flows has
// the file, too.
func TestAllFlowsAreStored(t *testing.T) {
	for workload, want := range map[string]int{"workload: [{collective: permute, size: 4B, repeat: 1700}]": 8500, "clocks: {for: 1us}": 0} {
		s := mustSimulate(t, star+workload)
		got, err := store.Numbers(s.Run, store.FlowsFile, "bytes")
		if err != nil || len(got) != want || s.Flows.Count != int64(want) {
			t.Errorf("%s: %d flows stored, %d in the summary, %v, want %d", workload, len(got), s.Flows.Count, err, want)
		}
	}
}

// The bandwidth of a list of flows does not count the time before its first flow; its time does, as
// in the file.
func TestBandwidthOfFlowsCountsFromTheFirst(t *testing.T) {
	flows := func(at, later string) string {
		return eight + "workload: [{repeat: 2, flows: [{from: h0, to: h1, size: 1MB, at: " + at + "}, {from: h2, to: h3, size: 1MB, at: " + later + "}]}]"
	}
	now, late := mustSimulate(t, flows("0s", "5us")).Collectives[0], mustSimulate(t, flows("2s", "2000005us")).Collectives[0]
	if math.Abs(late.BusBWGbps/now.BusBWGbps-1) > 0.01 || math.Abs(late.AlgBWGbps/now.AlgBWGbps-1) > 0.01 || now.BusBWGbps < 50 {
		t.Errorf("%g Gb/s from the start of the run on, %g Gb/s two seconds later", now.BusBWGbps, late.BusBWGbps)
	}
	if late.TimeUS < 2e6 {
		t.Errorf("the time is %g us, not from the start of the run", late.TimeUS)
	}
}
