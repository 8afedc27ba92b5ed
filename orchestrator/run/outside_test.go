package run

import (
	"slices"
	"strings"
	"testing"

	"weft/orchestrator/experiment"
)

// A run outside the conditions of its transport warns about it. A lab without a workload does not.
func TestRunsOutsideConditionsGiveWarnings(t *testing.T) {
	s := mustSimulate(t, star+"transport: {kind: roce}\nqueues: {ecn: off, buffer: 5bdp}\nworkload: [{collective: incast, size: 1MB}]\n")
	for _, path := range []string{"queues.pfc: ", "queues.ecn: "} {
		if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.HasPrefix(w, path+"roce is outside its conditions: ") }) {
			t.Errorf("no warning about %s in %q", path, s.Warnings)
		}
	}
	if bare := parse(t, star+"transport: {kind: roce}\n"); len(experiment.Outside(bare)) > 0 {
		t.Errorf("without a workload: %v", experiment.Outside(bare))
	}
}
