package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weft/results/record"
)

// A name stands for a run, a sweep, or the newest runs of a lab, as a path or below the root.
func TestFind(t *testing.T) {
	root := t.TempDir()
	put := func(name string, v any) {
		t.Helper()
		text, err := json.Marshal(v)
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(name, began, series string, number int, retry *record.Retry) {
		t.Helper()
		put(name+"/"+ManifestFile, record.Manifest{
			Format: Format, Lab: "a", Started: began, Status: record.OK, Retry: retry, Series: &record.Series{ID: series, Number: number},
		})
	}
	run("a/20260101T000000-1", "2026-01-01T00:00:00Z", "x", 1, nil)
	run("a/20260102T000000-2", "2026-01-02T00:00:00Z", "y", 2, nil)
	run("a/20260102T000000-10", "2026-01-02T00:00:00Z", "y", 10, nil)
	run("a/20260102T000000-3", "2026-01-02T00:00:00Z", "y", 3, nil)
	run("a/20260102T000000-4", "2026-01-02T00:00:00Z", "y", 3, &record.Retry{Of: filepath.Join(root, "a/20260102T000000-3"), Counts: true})
	put("a/sweep-1/"+SweepFile, record.Sweep{Points: []record.SweepPoint{{Run: "elsewhere/20260101T000000-1"}, {Run: "20260102T000000-2"}, {Run: "gone"}}})
	for name, want := range map[string][]string{
		"a":                                      {"20260102T000000-2", "20260102T000000-4", "20260102T000000-10"},
		"a/20260101T000000-1":                    {"20260101T000000-1"},
		filepath.Join(root, "a/sweep-1"):         {"20260101T000000-1", "20260102T000000-2"},
		"b":                                      nil,
		filepath.Join(root, "a/20260101T000000"): nil,
	} {
		var got []string
		dirs, err := Find(root, name)
		for _, dir := range dirs {
			got = append(got, filepath.Base(dir))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Find(%s) = %q, %v, want %q", name, got, err, want)
		}
	}
	if got := Newest(root); len(got) != 3 {
		t.Errorf("newest runs: %q", got)
	}
}
