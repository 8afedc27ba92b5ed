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
		{Lab: "incast", Engine: "sim", Point: map[string]any{"seed": 1}, Status: "ok", Verified: true, WallS: 1.25,
			Expect: []record.Expect{
				{That: "fct.p99 < 10us", Got: 12, Note: "got 12us, expected < 10us"}, {That: "drops == 0", OK: true},
			}},
		{Lab: "quick<start>", Engine: "emu", Status: "failed", Error: "node h3 died\x00\n  it was killed",
			Fidelity: &record.Fidelity{Verdict: "degraded", Reasons: []string{"late"}}},
	}
}

func TestReport(t *testing.T) {
	across := []*record.Summary{{Lab: "incast: across points", Engine: "sim",
		Expect: []record.Expect{{That: "fct.p99[seed=1] < 1us", Note: "no"}, {That: "fct.p99[seed=2] < 1us",
			Skipped: true, Note: "no point has seed=2"}}}}
	var out strings.Builder
	if err := Write(&out, runs(), across, "ok"); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "report", out.String())
	var back report
	if err := xml.Unmarshal([]byte(out.String()), &back); err != nil {
		t.Fatal(err)
	}
	if back.Tests != 9 || back.Failures != 4 {
		t.Errorf("%d tests, %d failures; want 9 and 4: a run that failed is one", back.Tests, back.Failures)
	}
}

// A run that an interruption left out is skipped; one that it ended has failed.
func TestRunsLeftOut(t *testing.T) {
	for _, c := range []struct {
		run               string
		failures, skipped int
	}{{"", 0, 1}, {"runs/x/1", 1, 1}} {
		s := &record.Summary{Lab: "x", Engine: "sim", Status: record.Interrupted, Run: c.run}
		if got := describe(s, ""); got.Failures != c.failures || got.Skipped != c.skipped {
			t.Errorf("run %q: %+v", c.run, got)
		}
	}
}

// --strict decides which fidelity is a failure, as for the exit code; otherwise a low fidelity is
// only reported.
func TestFidelityFailsUnderStrictOnly(t *testing.T) {
	nothing := &record.Fidelity{Verdict: record.OK, BaseRTTNS: 1000}
	for strict, failures := range map[string]int{"": 0, "ok": 1, "degraded": 1} {
		s := &record.Summary{Lab: "x", Engine: "emu", Status: "ok", Verified: true, Fidelity: nothing}
		if got := describe(s, strict); got.Failures != failures || got.Skipped != 1-failures {
			t.Errorf("not judged, under %q: %+v", strict, got)
		}
	}
	bare := &record.Summary{Lab: "x", Run: "runs/x/1", Engine: "emu", Status: "ok", Verified: true}
	for strict, failures := range map[string]int{"": 0, "ok": 1, "degraded": 1} {
		if got := describe(bare, strict); got.Failures != failures || got.Skipped != 1-failures {
			t.Errorf("an emulation without a verdict, under %q: %+v", strict, got)
		}
	}
	for _, c := range []struct {
		verdict, strict   string
		failures, skipped int
	}{
		{"ok", "", 0, 0}, {"ok", "ok", 0, 0}, {"degraded", "", 0, 1}, {"degraded", "degraded", 0, 1},
		{"degraded", "ok", 1, 0},
		{"invalid", "", 0, 1}, {"invalid", "degraded", 1, 0}, {"invalid", "ok", 1, 0},
	} {
		s := &record.Summary{Lab: "x", Engine: "emu", Status: "ok", Verified: true,
			Fidelity: &record.Fidelity{Verdict: c.verdict, Reasons: []string{"late"}}}
		got := describe(s, c.strict)
		if got.Failures != c.failures || got.Skipped != c.skipped || got.Failures > 0 == s.Accepted(c.strict) {
			t.Errorf("%s under %q: %+v", c.verdict, c.strict, got)
		}
		if c.skipped > 0 && got.Cases[2].Skipped.Message != "fidelity "+c.verdict+": late" {
			t.Errorf("%s under %q does not say why: %+v", c.verdict, c.strict, got.Cases[2])
		}
	}
}

// An expectation that is met with an invalid fidelity proves nothing, and is no case that passes,
// whatever --strict accepts; one that is missed fails, as does the command.
func TestUnprovenExpectationsDoNotPass(t *testing.T) {
	const doubt = "the fidelity of the run is invalid, so this proves nothing"
	s := &record.Summary{Lab: "x: across points", Engine: "emu", Status: record.OK, Expect: []record.Expect{
		{That: "fct.p99 <= 1ms", OK: true, Unproven: true, Doubt: doubt},
		{That: "fct.p50 <= 1ms", OK: true, Doubt: "timeouts differ"}, {That: "fct.mean <= 1us", Unproven: true, Doubt: doubt},
		{That: "drops == 0", OK: true},
	}}
	for _, strict := range []string{"", "ok", "degraded"} {
		var out strings.Builder
		if err := Write(&out, nil, []*record.Summary{s}, strict); err != nil {
			t.Fatal(err)
		}
		var r report
		if err := xml.Unmarshal([]byte(out.String()), &r); err != nil {
			t.Fatal(err)
		}
		u := r.Suites[0]
		if u.Skipped != 1 || u.Failures != 1 || u.Cases[0].Skipped == nil || u.Cases[0].Skipped.Message != doubt {
			t.Errorf("under %q:\n%s", strict, out.String())
		}
	}
}

// A run whose fidelity --strict refuses proves nothing: its expectations and those across points
// neither pass nor fail.
func TestExpectationsOfRefusedRunsAreSkipped(t *testing.T) {
	expected := []record.Expect{{That: "fct.mean <= 10ms", OK: true}, {That: "rtt.mean <= 1us", Note: "got 24.5us"}}
	runs := []*record.Summary{{Lab: "x", Engine: "emu", Status: "ok", Verified: true, Expect: expected,
		Fidelity: &record.Fidelity{Verdict: "invalid", Reasons: []string{"late"}}}}
	across := []*record.Summary{{Lab: "x: across points", Engine: "emu", Expect: expected},
		{Lab: "y: across points", Engine: "sim", Expect: expected}}
	for strict, passes := range map[string]int{"ok": 3, "degraded": 3, "": 5} {
		var out strings.Builder
		if err := Write(&out, runs, across, strict); err != nil {
			t.Fatal(err)
		}
		var r report
		if err := xml.Unmarshal([]byte(out.String()), &r); err != nil {
			t.Fatal(err)
		}
		passed := 0
		for _, s := range r.Suites {
			passed += s.Tests - s.Failures - s.Skipped
		}
		if passed != passes {
			t.Errorf("under %q %d cases pass, want %d:\n%s", strict, passed, passes, out.String())
		}
	}
}
