package junit

import (
	"encoding/xml"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/results/record"
)

func runs() []*record.Summary {
	return []*record.Summary{
		{Lab: "incast", Engine: "sim", Point: map[string]any{"seed": 1}, Status: "ok", Verified: true, WallS: 1.25, Expect: []record.Expect{
			{That: "fct.p99 < 10us", Got: 12, Note: "12us is not < 10us"}, {That: "drops == 0", OK: true},
		}},
		{Lab: "quick<start>", Engine: "emu", Status: "failed", Error: "node h3 died\x00", Fidelity: &record.Fidelity{Verdict: "degraded", Reasons: []string{"late"}}},
	}
}

func TestReport(t *testing.T) {
	across := []*record.Summary{{Lab: "incast: across points", Engine: "sim", Expect: []record.Expect{{That: "fct.p99[seed=1] < 1us", Note: "no"}}}}
	var out strings.Builder
	if err := Write(&out, runs(), across, true); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "report", out.String())
	var back report
	if err := xml.Unmarshal([]byte(out.String()), &back); err != nil {
		t.Fatal(err)
	}
	if back.Tests != 8 || back.Failures != 5 {
		t.Errorf("%d tests, %d failures; want 8 and 5", back.Tests, back.Failures)
	}
}

func TestDegradedIsFatalUnderStrictOnly(t *testing.T) {
	if got := describe(runs()[1], false).Failures; got != 2 {
		t.Errorf("%d failures, want 2: the run and its data", got)
	}
}
