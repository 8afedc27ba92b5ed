package manage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"weft/results/record"
	"weft/results/store"
)

// Took counts what runs at the same time took, and ignores points without a run.
func TestTook(t *testing.T) {
	run := func(host, began, ended string, wall float64) *record.Summary {
		dir := t.TempDir()
		text, err := json.Marshal(record.Manifest{Format: store.Format, Lab: "a", Machine: record.Machine{Host: host},
			Started: "2026-01-01T00:00:" + began + "Z", Ended: "2026-01-01T00:00:" + ended + "Z", Status: record.OK})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return &record.Summary{Run: dir, WallS: wall}
	}
	runs := []*record.Summary{run("m2", "01", "05", 4), run("m1", "02", "06", 4), run("m1", "06", "11", 5.5), {}}
	const want = "the runs took 14s in all and 10s from the first to the last, 1.4 at a time: m1 made 2, m2 made 1"
	if got := Took(runs); got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if got := Took(runs[2:]); got != "the runs took 6s in all and 5s from the first to the last, 1.1 at a time" {
		t.Error(got)
	}
	if got := Took([]*record.Summary{run("m1", "01", "03", 2), {}}); got != "" {
		t.Error(got)
	}
}
