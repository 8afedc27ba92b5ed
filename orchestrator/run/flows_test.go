package run

import (
	"testing"

	"weft/results/store"
)

// Flows are written in batches: none is left out between two, and a run without any has the file all the same.
func TestAllFlowsAreStored(t *testing.T) {
	root := t.TempDir()
	for workload, want := range map[string]int{"workload: [{collective: permute, size: 4B, repeat: 1700}]": 8500, "clocks: {for: 1us}": 0} {
		s, err := simulateIn(t, root, star+workload)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Numbers(s.Run, store.FlowsFile, "bytes")
		if err != nil || len(got) != want || s.Flows.Count != int64(want) {
			t.Errorf("%s: %d flows stored, %d in the summary, %v, want %d", workload, len(got), s.Flows.Count, err, want)
		}
	}
}
