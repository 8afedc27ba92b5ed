package store

import (
	"errors"
	"testing"
	"time"

	"weft/results/record"
)

// A run whose report cannot be written is a failed run, and its data stay readable.
func TestFailMarksAFinishedRun(t *testing.T) {
	r, err := Open(Options{Root: t.TempDir(), Now: time.Unix(1e9, 0), Manifest: record.Manifest{Lab: "full", Engine: "sim"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Flows([]record.Flow{{Src: "h0"}}); err != nil {
		t.Fatal(err)
	}
	s := &record.Summary{Lab: "full", Status: record.OK}
	if err := r.Finish(time.Unix(1e9+1, 0), s); err != nil {
		t.Fatal(err)
	}
	if err := Fail(r.Dir(), s, errors.New("report: no space left on device")); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(r.Dir())
	if err != nil || m.Status != record.Failed || m.Error != "report: no space left on device" || m.Ended == "" {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
	got, err := ReadSummary(r.Dir())
	if err != nil || got.Status != record.Failed || s.Status != record.Failed {
		t.Errorf("the summary is %+v, %v", got, err)
	}
	if n, err := Numbers(r.Dir(), FlowsFile, "conn"); err != nil || len(n) != 1 {
		t.Errorf("flows: %v, %v", n, err)
	}
}
