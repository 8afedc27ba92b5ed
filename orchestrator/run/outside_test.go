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

// Rates that stay low cost nothing where a link was full all the time, also one that a fault slows
// from the start.
func TestLowRatesOnAFullLinkAreNoWarning(t *testing.T) {
	const roce = star + "transport: {kind: roce}\nqueues: {pfc: on}\n"
	const incast = "  - {collective: incast, ranks: [h1, h2, h3, h4], root: h0, size: 400KB}\n"
	const slow = "faults: [{at: 0s, link: h0-switch0, rate: 10Gbps}]\n"
	const later = "  - {collective: incast, ranks: [h3], root: h0, size: 20MB}\n"
	for text, want := range map[string]bool{
		roce + "workload:\n" + incast:         false,
		roce + "workload:\n" + incast + later: true,
		roce + "workload:\n" + incast + slow:  false,
	} {
		s := mustSimulate(t, text)
		const path = "transport.roce.cnp_interval: "
		warned := slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.HasPrefix(w, path) })
		if warned != want || s.Network.CEMarks == 0 {
			t.Errorf("%s%d marks, warned %t, want %t: %q", text, s.Network.CEMarks, warned, want, s.Warnings)
		}
	}
}
