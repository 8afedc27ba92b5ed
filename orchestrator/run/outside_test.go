package run

import (
	"slices"
	"strings"
	"testing"

	"weft/orchestrator/experiment"
)

// The summary of a run says so, and so does nobody of a lab that is deployed without a workload.
func TestRunsOutsideConditionsSaySo(t *testing.T) {
	s, err := simulateIn(t, t.TempDir(), star+"transport: {kind: roce}\nqueues: {ecn: off, buffer: 5bdp}\nworkload: [{collective: incast, size: 1MB}]\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"queues.pfc: ", "queues.ecn: "} {
		if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.HasPrefix(w, path+"roce is outside its conditions: ") }) {
			t.Errorf("no warning about %s in %q", path, s.Warnings)
		}
	}
	if bare := parse(t, star+"transport: {kind: roce}\n"); len(experiment.Outside(bare)) > 0 {
		t.Errorf("without a workload: %v", experiment.Outside(bare))
	}
}
