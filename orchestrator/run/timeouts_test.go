package run

import (
	"slices"
	"strings"
	"testing"
)

// A run whose slowest messages wait for timeouts warns about it, with the timeout and its setting.
// A run with no timeouts, or with timeouts elsewhere, does not.
func TestTimeoutsInTheTailGiveAWarning(t *testing.T) {
	const cut = "workload: [{collective: incast, ranks: 2, size: 1MB}]\nfaults: [{at: 20us, link: h1-switch0, down: 30us}]\n"
	for _, c := range []struct{ transport, want string }{
		{"{kind: swift}", "1 timeout decides the p99 flow completion time, "},
		{"{kind: pc4, pc4: {rto_min: 3ms}}", "the minimum timeout is 3ms (pc4, transport.pc4.rto_min: 3ms)"},
	} {
		s := mustSimulate(t, star+"transport: "+c.transport+"\n"+cut)
		told := slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, c.want) })
		if !told || s.Tail == nil || s.Tail.Timeouts < 1 || s.Tail.Messages < 1 || s.Tail.WaitedUS < 0.9*s.RTOMinUS || s.RTOMinUS < 1000 || s.RTOMinKey != "transport."+s.Transport+".rto_min" {
			t.Errorf("%s: %q, %+v, minimum timeout %v us", c.transport, s.Warnings, s.Tail, s.RTOMinUS)
		}
	}
	s, err := simulateLab(t, star+"transport: {kind: swift}\nworkload: [{collective: incast, ranks: 2, size: 1MB}]\n")
	if err != nil || s.Tail != nil || len(s.Warnings) > 0 {
		t.Errorf("without a loss: %v, %+v, %q", err, s.Tail, s.Warnings)
	}
}
