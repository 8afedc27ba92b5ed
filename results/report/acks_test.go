package report

import (
	"testing"
	"time"

	"weft/results/record"
	"weft/results/store"
	"weft/units"
)

// One point for each acknowledgement, marked and not apart; one time for each collective, every group on its own.
func TestAcksAndJobs(t *testing.T) {
	r, err := store.Open(store.Options{Root: t.TempDir(), Now: time.Unix(0, 0).UTC(), Manifest: record.Manifest{Lab: "lab"}})
	if err != nil {
		t.Fatal(err)
	}
	const us = units.Microsecond
	for i := range units.Time(5) {
		if err := r.Ack(record.Ack{At: 8*us + i*us, RTT: 8*us + i*us, Marked: i < 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Parts([]record.Part{
		{Item: 0, Rank: 0, Start: us, End: 4 * us}, {Item: 0, Rank: 1, Start: 2 * us, End: 5 * us},
		{Item: 1, Rank: 0, Start: 0, End: 2 * us}, {Item: 1, Rank: 1, Start: us, End: 7 * us},
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(time.Unix(1, 0).UTC(), &record.Summary{Lab: "lab", Status: "ok"}); err != nil {
		t.Fatal(err)
	}
	run, err := Load(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := run.Acks()
	if err != nil || len(f.Series) != 2 {
		t.Fatalf("%+v, %v", f.Series, err)
	}
	if m, n := f.Series[0], f.Series[1]; m.Name != "marked" || len(m.X) != 2 || m.X[0] != 8 || m.Y[1] != 9 || len(n.X) != 3 {
		t.Errorf("%+v", f.Series)
	}
	if _, err := f.SVG(); err != nil {
		t.Error(err)
	}
	jobs, err := Jobs(r.Dir(), "jobs")
	if err != nil || jobs.X[0] != 4 || jobs.X[len(jobs.X)-1] != 7 {
		t.Errorf("%+v, %v; want 4 and 7 us", jobs, err)
	}
}
