package run

import (
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
