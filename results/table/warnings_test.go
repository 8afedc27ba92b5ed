package table

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/results/record"
)

// A warning is printed once, whatever number of runs it is about.
func TestWarningsOfSeveralRuns(t *testing.T) {
	run := func(seed int, warnings ...string) *record.Summary {
		return &record.Summary{Lab: "lab", Point: map[string]any{"seed": seed}, Warnings: warnings}
	}
	var b bytes.Buffer
	if err := Warnings(&b, []*record.Summary{run(1, "a", "c"), run(2, "a", "b"), run(3, "a", "c")}, Style{}); err != nil {
		t.Fatal(err)
	}
	const want = "\nwarning  all runs                      a\nwarning  2 of 3 runs (seed=1, seed=3)  c\n" +
		"warning  seed=2                        b\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
	b.Reset()
	doubtful := run(4)
	doubtful.Fidelity = &record.Fidelity{Verdict: "degraded", Reasons: []string{"late"}, Advice: "run it slower"}
	worse := run(5)
	worse.Fidelity = &record.Fidelity{Verdict: "degraded", Reasons: []string{"late"}, Advice: "run it much slower"}
	const advised = "\nwarning  3 of 4 runs (seed=4, seed=5)  fidelity degraded: late\nwarning  advice for 2 of 4 runs (seed=4)  run it " +
		"slower\nwarning  advice for seed=5  run it much slower\n"
	if err := Warnings(&b, []*record.Summary{run(1), doubtful, doubtful, worse}, Style{}); err != nil ||
		strings.Join(strings.Fields(b.String()), " ") != strings.Join(strings.Fields(advised), " ") {
		t.Errorf("%v, got\n%q\nwant\n%q", err, b.String(), advised)
	}
	b.Reset()
	if err := Warnings(&b, []*record.Summary{run(1), run(2)}, Style{}); err != nil || b.Len() > 0 {
		t.Errorf("%v, %q", err, b.String())
	}
}

// A comparison tells what makes its numbers doubtful, once, with the sides that it is about.
func TestDoubtsOfWhatIsCompared(t *testing.T) {
	run := func(verdict string, warnings ...string) *record.Summary {
		return &record.Summary{Fidelity: &record.Fidelity{Verdict: verdict}, Warnings: warnings}
	}
	type runs = []*record.Summary
	got := Doubts(Side{"A", runs{run("invalid", "slow"), run("degraded", "slow", "lossy")}},
		Side{"B", runs{run("ok"), run("invalid", "slow")}})
	want := []string{
		"warning: 1 of 2 runs of A and 1 of 2 runs of B: fidelity invalid; do not use its numbers",
		"warning: 1 of 2 runs of A: fidelity degraded",
		"warning: A and 1 of 2 runs of B: slow",
		"warning: 1 of 2 runs of A: lossy",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	simulated := Side{"A", runs{{}}}
	if got := Doubts(simulated, simulated); len(got) > 0 {
		t.Errorf("%q", got)
	}
	many := run("ok")
	for i := range maxWarnings + 2 {
		many.Warnings = append(many.Warnings, fmt.Sprint(i))
	}
	if got := Doubts(Side{"A", runs{many}}); len(got) != maxWarnings+1 || got[maxWarnings] != "warning: 2 more; the report of each run has its own" {
		t.Errorf("%q", got)
	}
}

// Runs that are compared and whose timeouts decide say which timeout each has.
func TestTimeoutsOfWhatIsCompared(t *testing.T) {
	slow := &record.Summary{Transport: "roce", RTOMinUS: 31000, Tail: &record.Tail{Timeouts: 2}}
	fast := &record.Summary{Transport: "pc4", RTOMinUS: 1000}
	same := &record.Summary{Transport: "swift", RTOMinUS: 31000}
	alike := &record.Summary{Transport: "roce", RTOMinUS: 31000}
	type runs = []*record.Summary
	for want, sides := range map[string][]Side{
		"timeouts decide the slowest messages of roce (2 timeouts, minimum timeout 31 ms); not of pc4 (minimum timeout 1 ms)": {
			{Runs: runs{slow, fast, same}},
		},
		"timeouts decide the slowest messages of A (roce, 2 timeouts, minimum timeout 31 ms); not of B (pc4, minimum timeout 1 ms)": {
			{"A", runs{slow}}, {"B", runs{fast}},
		},
		"timeouts decide the slowest messages of B (roce, 2 timeouts, minimum timeout 31 ms)": {{"A", runs{alike}}, {"B", runs{slow}}},
		"timeouts decide the slowest messages of A (roce, 2 timeouts, minimum timeout 31 ms), B (roce, 4 timeouts, minimum timeout 31 ms)": {
			{"A", runs{slow}}, {"B", runs{slow, slow}},
		},
	} {
		if got := Timeouts(sides...); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	keyed := func(transport string, us float64, point map[string]any) *record.Summary {
		return &record.Summary{Transport: transport, RTOMinUS: us, RTOMinKey: "transport." + transport + ".rto_min",
			Tail: &record.Tail{Timeouts: 2}, Point: point}
	}
	const remedy = "; to compare them, set the same timeout, such as strack, for all: transport.pc4.rto_min, " +
		"transport.roce.rto_min"
	swept := map[string]any{"transport.pc4.rto_min": "1ms"}
	for remedied, all := range map[bool]runs{
		true: {keyed("pc4", 1000, nil), keyed("roce", 31000, nil)}, false: {keyed("pc4", 1000, swept),
			keyed("roce", 31000, swept)},
	} {
		if got := Timeouts(Side{Runs: all}); strings.HasSuffix(got, remedy) != remedied ||
			!strings.HasPrefix(got, "timeouts decide") {
			t.Errorf("remedy %t: %s", remedied, got)
		}
	}
	for _, sides := range [][]Side{nil, {{Runs: runs{slow, slow}}}, {{Runs: runs{fast, alike}}},
		{{"A", runs{fast}}, {"B", runs{alike}}}, {{"A", runs{slow, fast}}, {"B", runs{slow, fast}}}} {
		if got := Timeouts(sides...); got != "" {
			t.Errorf("of %+v: %s", sides, got)
		}
	}
}

// An invalid run does not begin like a success.
func TestInvalidRunsSaySoFirst(t *testing.T) {
	s := &record.Summary{Lab: "x", Engine: "emu", Transport: "pc4", Status: record.OK, Verified: true,
		Expect:   []record.Expect{{OK: true}},
		Fidelity: &record.Fidelity{Verdict: "invalid", Advice: "run it slower"}}
	got := verdict(s, Style{Colour: true})
	if want := "\x1b[31mfidelity invalid: see advice; do not use its numbers\x1b[0m; data verified"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Programs = []record.Program{{}}
	got = verdict(s, Style{})
	if want := "fidelity invalid: see advice; do not use its numbers"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Expect[0].OK = false
	if got := Outcome(s); got != "fidelity invalid" {
		t.Errorf("got %q", got)
	}
}

// A comparison names the sides whose congestion control never acted.
func TestUnadjusted(t *testing.T) {
	still, acting := &record.Summary{Transport: "roce", Unadjusted: true}, &record.Summary{Transport: "uec"}
	a := Side{"A", []*record.Summary{still, still}}
	for _, c := range []struct {
		b    []*record.Summary
		want string
	}{
		{[]*record.Summary{acting}, "in A (roce), and did in B, which is part of what differs"},
		{[]*record.Summary{still}, "in A (roce) and B (roce), so it is no part of what differs"},
		{[]*record.Summary{still, {Transport: "ccm", Unadjusted: true}}, "in A (roce) and B (roce, ccm), so"},
		{[]*record.Summary{still, acting}, "in A (roce), and did in B"},
	} {
		if got := Unadjusted(a, Side{"B", c.b}); !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := Unadjusted(Side{"A", []*record.Summary{still, acting}}); got != "" {
		t.Error(got)
	}
}

// Below a sweep's table are the transports whose congestion control acted in none of its runs.
func TestWarnedOfIdleControls(t *testing.T) {
	run := func(transport string, still bool) *record.Summary {
		return &record.Summary{Transport: transport, Unadjusted: still, Status: record.OK}
	}
	runs := []*record.Summary{run("roce", true), run("uec", true), run("roce", true), run("uec", false), run("pc4", true)}
	got := Warned(runs).Rows
	if len(got) != 1 || !strings.HasSuffix(got[0][1].Text, "in any run of roce, pc4") {
		t.Error(got)
	}
	if got := Warned(runs[3:4]).Rows; len(got) != 0 {
		t.Error(got)
	}
	unfinished := run("hpcc", true)
	unfinished.Status = record.Interrupted
	if got := Warned([]*record.Summary{unfinished}).Rows; len(got) != 0 {
		t.Errorf("of a run that was interrupted: %v", got)
	}
}

// The verdict ok says how late round trips may be, if that is much.
func TestFidelityTellsRoundTrips(t *testing.T) {
	s := record.Summary{Network: record.Network{Delivered: 9, QueueDelay: record.Quantiles{Mean: 3}}}
	line := func(f *record.Fidelity) string {
		s.Fidelity = f
		return Fidelity(&s)
	}
	f := record.Fidelity{Verdict: "ok", BaseRTTNS: 10_000, LatenessP99NS: 100, RoundTripP99NS: 2000}
	if got := line(&f); strings.Contains(got, "round trips") || strings.Contains(got, "queues") {
		t.Error(got)
	}
	if got := line(&record.Fidelity{Verdict: "ok", BaseRTTNS: 10_000}); got != "not judged: no packet or timer was measured" {
		t.Error(got)
	}
	f.RoundTripP99NS = 9000
	if got := line(&f); !strings.Contains(got, "1 % of round trips may be more than 9 us late") {
		t.Error(got)
	}
	f.LatenessP99NS = 400
	if got := line(&f); !strings.Contains(got, "the mean time in switch queues is 3 us, so queues and marks need --twice") {
		t.Error(got)
	}
}
