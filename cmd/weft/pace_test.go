package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
	"weft/results/record"
	"weft/results/table"
	"weft/units"
)

// fakeClock is a clock that the test sets.
type fakeClock struct{ at time.Time }

func (h *fakeClock) now() time.Time       { return h.at }
func (h *fakeClock) pass(d time.Duration) { h.at = h.at.Add(d) }

// Without a terminal a line is printed after ten seconds if a tenth more is done, and after a
// minute in any case.
func TestPaceWithoutATerminal(t *testing.T) {
	var out strings.Builder
	h := &fakeClock{time.Unix(1e9, 0)}
	p := table.NewPace(&out, false, false, h.now)
	for second := range 300 {
		p.Set("ring", "ring running", int64(second), 1000) // 1 % in ten seconds
		h.pass(time.Second)
	}
	want := "ring running: 6 %, 16m left\nring running: 12 %, 15m left\nring running: 18 %, 14m left\nring running: 24 %, 13m left\n"
	if out.String() != want {
		t.Errorf("slow: got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	for second := range 60 {
		p.Set("star", "star running", int64(2*second), 100)
		h.pass(time.Second)
	}
	want = "star running: 20 %, 40s left\nstar running: 40 %, 30s left\nstar running: 60 %, 20s left\nstar running: 80 %, 10s left\n"
	if out.String() != want {
		t.Errorf("fast: got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	for second := range 60 { // slower and slower: nobody knows how long the rest takes
		p.Set("tail", "tail running", int64(1000-1000/(second+1)), 1000)
		h.pass(time.Second)
	}
	if strings.Contains(out.String(), "left") || !strings.Contains(out.String(), "tail running: 9") {
		t.Errorf("unsteady: %s", out.String())
	}
	out.Reset()
	p.Set("star", "star running", 0, 100) // a second run of the task
	h.pass(20 * time.Second)
	p.Set("star", "star running", 50, 100)
	if out.String() != "star running: 50 %, 20s left\n" {
		t.Errorf("again: %q", out.String())
	}
	out.Reset()
	p = table.NewPace(&out, false, true, h.now)
	h.pass(time.Hour)
	p.Set("star", "star running", 50, 100)
	p.Say("engine sim: asked for")
	p.Clear()
	if out.Len() > 0 {
		t.Errorf("quiet: %q", out.String())
	}
}

// On a terminal there is a bar, with the time left as soon as it is known, and no lines.
func TestPaceOnATerminal(t *testing.T) {
	var out strings.Builder
	h := &fakeClock{time.Unix(1e9, 0)}
	p := table.NewPace(&out, true, false, h.now)
	p.Set("ring", "ring running", 1, 100)
	h.pass(time.Minute)
	p.Set("ring", "ring running", 50, 100)
	p.Set("star", "star running", 50, 100)
	got := strings.Split(strings.TrimPrefix(out.String(), "\r\x1b[K"), "\r\x1b[K")
	want := []string{
		"ring running [..............................]   1 %", "ring running, 1m0s left [###############...............]  50 %", "star running [###############...............]  50 %",
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
}

// timed is an engine whose runs advance a fakeClock.
type timed struct {
	*fakeClock
	takes time.Duration
	noForecast
}

func (e timed) Run(_ context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	o.Say("engine emu: because")
	for i := range 10 {
		o.Progress(orchestrate.Progress{Phase: "running", Done: units.Bytes(i), Total: 10})
		e.pass(e.takes / 10)
	}
	return &record.Summary{Run: "runs/x/1", Lab: x.Lab.Name, Engine: "emu", Status: "ok", Verified: true}, nil
}

// Without a terminal, emulated runs and sweeps show their progress on standard error, unless
// --quiet.
func TestProgressWithoutATerminal(t *testing.T) {
	run := func(takes time.Duration, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, words strings.Builder
		h := &fakeClock{time.Unix(1e9, 0)}
		a := &app{stdout: &out, stderr: &words, engine: timed{fakeClock: h, takes: takes}, now: h.now}
		if code := a.execute(t.Context(), append([]string{"run", "--out", t.TempDir()}, args...)); code != exitOK {
			t.Fatalf("code %d\n%s", code, words.String())
		}
		return out.String(), words.String()
	}
	one := []string{"labs/quickstart.yaml", "--engine", "emu"}
	if _, stderr := run(3*time.Minute, one...); !strings.Contains(stderr, "quickstart running: 10 %, ") {
		t.Errorf("one run: %s", stderr)
	}
	if _, stderr := run(5*time.Second, one...); strings.Contains(stderr, "%") {
		t.Errorf("a short run: %s", stderr)
	}
	stdout, stderr := run(3*time.Minute, append(one, "--json")...)
	if !strings.Contains(stderr, "quickstart running: 10 %, ") || strings.Contains(stdout, "%") {
		t.Errorf("--json: %s\n%s", stderr, stdout)
	}
	if _, stderr := run(3*time.Minute, append(one, "--quiet")...); stderr != "" {
		t.Errorf("--quiet: %s", stderr)
	}
	several := []string{"labs/quickstart.yaml", "labs/smoke/star.yaml", "labs/smoke/incast.yaml", "labs/smoke/permute.yaml", "--engine", "emu"}
	_, stderr = run(20*time.Second, several...)
	for _, want := range []string{"0 of 5 runs done: 10 %, 1m30s left\n", "1 of 5 runs done: 20 %, 1m20s left\n", "4 of 5 runs done: 90 %, 10s left\n"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
}

// The progress of several runs never falls, even if one of them is repeated. Repeating a single run
// is a task of its own.
func TestProgressNeverFalls(t *testing.T) {
	again := &series.Job{Lab: &lab.Lab{Name: "star"}, Retry: &record.Retry{Of: "runs/star/1"}}
	first := &series.Job{Lab: again.Lab}
	for runs, want := range map[int]string{
		1: "star running: 50 %, 1m0s left\nstar running again: 50 %, 1m0s left\n",
		2: "0 of 2 runs done: 25 %, 3m left\n0 of 2 runs done: 49 %, 2m left\n" +
			"0 of 2 runs done, repeating one: 49 %\n0 of 2 runs done, repeating one: 49 %\n" +
			"1 of 2 runs done: 75 %, 2m left\n1 of 2 runs done: 99 %, 1s left\n",
	} {
		var out strings.Builder
		h := &fakeClock{time.Unix(1e9, 0)}
		w := &runProgress{pace: table.NewPace(&out, false, false, h.now), outcomes: make([]*series.Outcome, runs), parallel: 1}
		one := func(j *series.Job) {
			for done := range 3 {
				w.Progress(j, orchestrate.Progress{Phase: "running", Done: units.Bytes(done), Total: 2})
				if done < 2 {
					h.pass(time.Minute)
				}
			}
		}
		one(first)
		one(again)
		if runs > 1 {
			w.Ended(0, &series.Outcome{Summary: &record.Summary{Run: "runs/star/1"}})
			one(first)
		}
		if out.String() != want {
			t.Errorf("%d runs: got\n%swant\n%s", runs, out.String(), want)
		}
	}
}

// timedShort is an engine whose runs are forecast to take seven seconds of emulation each, and
// print that unless it was announced for all.
type timedShort struct{ timed }

func (timedShort) Predict(context.Context, *experiment.Experiment, orchestrate.Options) (orchestrate.Forecast, error) {
	return orchestrate.Forecast{Engine: "emu", Why: "because", Wall: 7 * time.Second}, nil
}

func (e timedShort) Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	if o.Announced {
		o.Say = func(string) {}
	}
	return e.timed.Run(ctx, x, o)
}

// An emulated sweep announces the time of all runs once; a single run announces its own.
func TestSweepIsAnnouncedOnce(t *testing.T) {
	for args, want := range map[string]string{
		"labs/pc4/incast.yaml":              "engine emu: 4 runs, one after the other; takes about 30 s in all. The first: because\n",
		"labs/quickstart.yaml":              "engine emu: because\n",
		"labs/pc4/incast.yaml --quiet":      "",
		"labs/quickstart.yaml --engine=emu": "engine emu: because\n",
	} {
		var out, words strings.Builder
		h := &fakeClock{time.Unix(1e9, 0)}
		a := &app{stdout: &out, stderr: &words, engine: timedShort{timed{fakeClock: h, takes: time.Second}}, now: h.now}
		if code := a.execute(t.Context(), append([]string{"run", "--out", t.TempDir()}, strings.Fields(args)...)); code != exitOK || words.String() != want {
			t.Errorf("%s: code %d, %q, want %q", args, code, words.String(), want)
		}
	}
}

// Labs that leave the engine open are simulated, all of them, if emulating them would take more
// than half a minute and simulating seconds, or more than ten minutes. The runs say so, with the
// command that emulates. What requests emulation is emulated.
func TestRunSimulatesIfEmulationIsLong(t *testing.T) {
	hour := orchestrate.Forecast{Engine: "emu", Dilation: 2000, Wall: time.Hour, Simulated: time.Minute}
	minutes, soon, slowly, asked := hour, hour, hour, hour
	minutes.Wall, minutes.Simulated = 2*time.Minute, 4*time.Second
	soon.Wall, soon.Simulated = 30*time.Second, time.Second
	slowly.Wall = 2 * time.Minute
	asked.Asked = true
	for _, c := range []struct {
		of   orchestrate.Forecast
		args string
		want string // engine and reason of each run
	}{
		{hour, "labs/quickstart.yaml", "sim emulating 1 run at dilation 2000 takes about 1.0 h, and simulating about 60 s; " +
			"weft run --out DIR labs/quickstart.yaml --engine emu emulates"},
		{minutes, "labs/quickstart.yaml --set seed=2", "sim emulating 1 run at dilation 2000 takes about 2 min, and simulating about 4 s; " +
			"weft run --out DIR labs/quickstart.yaml --set seed=2 --engine emu emulates"},
		{soon, "labs/quickstart.yaml", "auto "},
		{slowly, "labs/quickstart.yaml", "auto "},
		{hour, "labs/quickstart.yaml --engine emu", "emu "},
		{hour, "labs/quickstart.yaml --capture h0=DIR/capture.pcapng", "auto "},
		{asked, "labs/quickstart.yaml", "auto "},
		{orchestrate.Forecast{Engine: "emu"}, "labs/quickstart.yaml", "auto "},
	} {
		var ran []string
		dir := t.TempDir()
		args := append([]string{"run", "--out", dir}, wordsIn(dir, c.args)...)
		code, _, stderr := weft(t, slow{c.of, &ran, new(sync.Mutex)}, args...)
		if got := strings.ReplaceAll(strings.Join(ran, "\n"), dir, "DIR"); code != exitOK || got != strings.TrimSuffix(c.want, "\n") {
			t.Errorf("%s: code %d, %q, want %q\n%s", c.args, code, got, c.want, stderr)
		}
	}
}
