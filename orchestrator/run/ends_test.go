package run

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/clocksync/node"
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// A run ends although a host's only link goes down for good, whatever it waits for and however long
// clocks go on.
func TestCutOffHostEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct{ text, status, why string }{
		"nothing to send": {text: "clocks: {sync: ptp, for: 10ms}\nfaults: [{link: h1-switch0, down: true, at: 1ms}]", status: record.OK},
		"in the last instant": {text: "clocks: {sync: ptp, for: 10ms}\nfaults: [{link: h1-switch0, down: true, at: 9.999ms}]",
			status: record.OK},
		"for a while": {text: "clocks: {sync: ptp, for: 10ms}\nfaults: [{link: h1-switch0, down: 20ms, at: 1ms}]", status: record.OK},
		"while it sends": {text: "clocks: {sync: ptp}\nfaults: [{link: h0-switch0, down: true, at: 10us}]", status: record.Failed,
			why: "cannot get through"},
		"while it sends, with a length": {text: "clocks: {sync: ptp, for: 10ms}\nfaults: [{link: h0-switch0, down: true, at: 10us}]",
			status: record.Failed, why: "cannot get through"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, _ := runLab(ctx, parse(t, "weft: 1\nname: cut\ntopology: {kind: star, hosts: 4}\n"+
				"workload: [{collective: broadcast, size: 1MB}]\n"+c.text), Options{Engine: "sim", Root: t.TempDir()})
			if ctx.Err() != nil {
				t.Fatal("it does not end")
			}
			if s == nil || s.Status != c.status || !strings.Contains(s.Error, c.why) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Once a run was interrupted for long enough, what takes long is left out and named.
func TestInterruptedRunLeavesOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	soon, at := after(ctx, time.Hour), after(ctx, -1)
	if soon() || at() {
		t.Error("stopped before the interruption")
	}
	cancel()
	if soon() || !at() {
		t.Error("not stopped when its time is over, or before")
	}
	l := parse(t, star+"clocks: {sync: ptp, for: 10ms}\nworkload: [{collective: broadcast, size: 1MB}]")
	x, err := experiment.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	o := summary.NewOutcome()
	o.Flows = make([]host.Flow, 1)
	o.Clocks = make([]node.Report, len(x.Plans))
	for h := range o.Clocks {
		o.Clocks[h].Samples = make([]node.Sample, 1000)
	}
	for _, stop := range []bool{false, true} {
		dir, err := store.Open(store.Options{Root: t.TempDir(), Now: time.Now(), Manifest: record.Manifest{Lab: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		stopped := func() bool { return stop }
		var s record.Summary
		summary.Summarize(x, o, &s, stopped)
		short, err := storeAll(x, o, nil, dir, stopped)
		told := slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "not evaluated") })
		if err != nil || told != stop || (s.Clocks.Samples == 0) != stop ||
			len(short) != map[bool]int{true: 2}[stop] {
			t.Errorf("stop %t: %v, %q, %q, %d samples", stop, err, short, s.Warnings, s.Clocks.Samples)
		}
		if err := dir.Abandon(time.Now(), context.Canceled); err != nil {
			t.Error(err)
		}
	}
}

// Only a planned corruption that finds no data is reported as not having happened.
func TestSparedCorruption(t *testing.T) {
	s, err := simulateLab(t, star+"workload: [{collective: broadcast, size: 1MB}]\nclocks: {for: 10ms}\n"+
		"faults: [{corrupt: h1, at: 3ms}, {corrupt: h1, at: 0us}, {corrupt: h2, at: 1us}, {corrupt: h0, at: 1us}, {corrupt: h1, at: 1s}]")
	if s == nil {
		t.Fatal(err)
	}
	m, err := store.ReadManifest(s.Run)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range m.Faults {
		got = append(got, table.When(m.Faults[i], s.End()))
	}
	want := []string{"did not happen: no data arrived from 3 ms on", "at 0 us", "at 1 us",
		"did not happen: no data arrived from 1 us on", "did not happen: the run ended before 1 s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
