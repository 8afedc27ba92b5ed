package report

import (
	"strings"
	"testing"
	"time"

	"weft/results/names"
	"weft/results/record"
	"weft/results/store"
	"weft/units"
)

// Acks has one point for each acknowledgement, marked ones in a series of their own. Jobs has one
// time for each collective and group.
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

// Charts name connections by their hosts, with the number if several have the same hosts.
func TestConnectionNames(t *testing.T) {
	r, err := Load(writeRun(t, 1, 10*us, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, draw := range []func() (Figure, error){r.Rates, r.Windows} {
		f, err := draw()
		if err != nil || len(f.Series) == 0 {
			t.Fatal(f.Series, err)
		}
		for _, s := range f.Series {
			if !strings.Contains(s.Name, " to ") {
				t.Errorf("%s: a series is named %q", f.Name, s.Name)
			}
		}
	}
}

func TestAxisAndLegendLabels(t *testing.T) {
	for path, want := range map[string]string{
		"workload.0.ranks": "ranks", "workload.2.size": "size of item 2", "transport.kind": "transport", "transport.pc4.adjust_interval": "adjust interval of pc4",
		"clocks.noise": "noise of clocks", "topology.link.rate": "link rate", "seed": "seed", "queues.ecn.kmin": "kmin of ecn",
	} {
		if got := pathWords(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for y, want := range map[string]string{
		"fct.p99": "flow completion time, 99th percentile", "collective.0.busbw": "bus bandwidth of collective 0", "jain": "Jain's index",
		"fct.p99 / 40us": "fct.p99 / 40us", "collective.0.ranks": "collective.0.ranks",
	} {
		if got := valueWords(y, false); got != want {
			t.Errorf("%s: %q, want %q", y, got, want)
		}
	}
	if got := valueWords("collective.0.busbw", true); got != "bus bandwidth" {
		t.Errorf("of a run with one collective: %q", got)
	}
	at := map[string]string{"transport.kind": "roce", "transport.pc4.ai": "2%", "workload.0.parallel": "2", "lab": "x"}
	if got := names.Label(at, []string{"lab", "transport.kind", "transport.pc4.ai", "workload.0.parallel", "none"}); got != "x, roce, parallel 2" {
		t.Errorf("label %q", got)
	}
	values, unit, ok := axisValues([]string{"off", "±100ns", "uniform ±1us"})
	if !ok || unit != "us" || values["off"] != 0 || values["±100ns"] != 0.1 || values["uniform ±1us"] != 1 {
		t.Errorf("%v %q %v", values, unit, ok)
	}
	if values, unit, ok := axisValues([]string{"0.5%", "2%"}); !ok || unit != "%" || values["0.5%"] != 0.5 {
		t.Errorf("%v %q %v", values, unit, ok)
	}
	if _, _, ok := axisValues([]string{"off", "on"}); ok {
		t.Error("on is a number")
	}
}
