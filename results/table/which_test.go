package table

import (
	"testing"

	"weft/results/record"
)

// Warnings of some of several runs name the first of them, in tables and in comparisons.
func TestWarningsNameRuns(t *testing.T) {
	var runs []*record.Summary
	for seed := 1; seed <= 8; seed++ {
		s := record.NotRun("l", map[string]any{"seed": seed}, "sim", record.OK, "")
		if seed <= 2 {
			s.Warnings = append(s.Warnings, "few")
		}
		if seed >= 4 {
			s.Warnings = append(s.Warnings, "many")
		}
		runs = append(runs, s)
	}
	rows := Warned(runs).Rows
	if len(rows) < 2 || rows[0][0].Text != "2 of 8 runs (seed=1, seed=2)" ||
		rows[1][0].Text != "5 of 8 runs (seed=4, seed=5, seed=6 and 2 more)" {
		t.Errorf("got %v", rows)
	}
	notes := Doubts(Side{Name: "A", Runs: runs[:1]}, Side{Name: "B", Runs: runs[1:]})
	if len(notes) != 2 || notes[0] != "warning: A and 1 of 7 runs of B (seed=2): few" {
		t.Errorf("got %q", notes)
	}
}
