package table_test

import (
	"strings"
	"testing"

	"weft/results/record"
	"weft/results/table"
)

// Variants of a run stand side by side: a number that was not measured is a dash, a lower bound
// says so, and the column of a variant that did not run has the reason, however long, in narrow
// lines.
func TestSideBySide(t *testing.T) {
	run := func(fct float64) *record.Summary {
		return &record.Summary{Run: "runs/x/1", Status: record.OK, Verified: true, WallS: 2,
			Flows:       record.Flows{Count: 4, FCT: record.Quantiles{Mean: fct, P99: 2 * fct}},
			Collectives: []record.Collective{{Name: "all-reduce", Ranks: 4, TimeUS: 3 * fct}},
			Network: record.Network{Packets: 1000, Delivered: 1000, CEMarks: 7, MaxQueue: 4000,
				QueueDelay: record.Quantiles{Mean: 0.5, P99: 2}}}
	}
	emulated := run(11)
	emulated.Fidelity, emulated.Dilation = &record.Fidelity{Verdict: record.OK}, 2900
	emulated.Lack("nobody counts", "network.ce_marks")
	emulated.AtLeast("samples", "network.max_queue_bytes")
	emulated.Collectives[0].TimeUS = 0 // it did not finish
	var out strings.Builder
	err := table.SideBySide(&out, "lab", []table.Variant{{Name: "one", Run: run(10)}, {Name: "two", Run: emulated},
		{Name: "three", Missing: strings.Repeat("this kernel has none; ", 20)}}, table.Style{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	lines := strings.Split(out.String(), "\n")
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "  ")
		rows[name] = strings.Fields(strings.TrimPrefix(line, name))
	}
	for name, want := range map[string]string{
		"lab": "one two three", "all-reduce of 4": "30 us –", "flow completion, mean": "10 us 11 us", "CE marks": "7 –",
		"drops": "0 0", "largest queue": "4 KB at least 4 KB", "queueing, p99": "2 us 2 us", "fidelity": "– ok",
		"dilation": "– 2900", "wall time": "2 s 2 s", "outcome": "ok ok",
	} {
		if got := strings.Join(rows[name], " "); got != want && !strings.HasPrefix(got, want+" ") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if len(lines) < 15 || strings.Count(out.String(), "none;") != 20 || !strings.Contains(lines[1], "did not run: this kernel has") {
		t.Errorf("the reason is not all there:\n%s", &out)
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("a line of %d characters: %q", n, line)
		}
	}
}
