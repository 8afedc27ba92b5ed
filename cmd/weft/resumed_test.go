package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/internal/natural"
	"weft/results/report"
)

// A sweep that was interrupted and resumed, and then got one more seed, is compared with all its
// points, by whatever name, and so shown and listed.
func TestResumedSweepsAreWhole(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	text := func(seeds string) string {
		return "weft: 1\nname: s\ntopology: {kind: star, hosts: 4, link: {delay: 1us}}\nworkload: [{collective: permute, size: 64KB, jitter: 5us}]\n" +
			"sweep: {seed: " + seeds + ", workload.0.size: [16KB, 32KB, 64KB, 128KB]}\n"
	}
	write(t, "s.yaml", text("[1, 2, 3, 4]"))
	// run runs the lab; it is interrupted after some runs, unless that is 0
	run := func(want int, after int32, out string, more ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := stopping{stop: cancel, left: new(atomic.Int32)}
		e.left.Store(after)
		var stdout, stderr bytes.Buffer
		a := &app{stdout: &stdout, stderr: &stderr, engine: e}
		args := append([]string{"run", "s.yaml", "--engine", "sim", "--out", out}, more...)
		if code := a.execute(ctx, args); code != want {
			t.Fatalf("%q: code %d: %s%s", args, code, &stdout, &stderr)
		}
	}
	run(exitOK, 0, "base")
	run(exitInterrupted, 9, "new", "--set", "topology.link.delay=1100ns")
	names := func(root string) []string {
		sweeps, err := filepath.Glob(root + "/s/sweep-*")
		if err != nil || len(sweeps) == 0 {
			t.Fatal(sweeps, err)
		}
		newest := slices.MaxFunc(sweeps, natural.Compare)
		return []string{root, root + "/s", newest}
	}
	compare := func(name, says string, numbers int, more ...string) {
		t.Helper()
		got := results(t, exitMissed, append([]string{"compare", "base", name, "--fail-if", "worse", "--json"}, more...)...)
		var c report.Comparison
		if err := json.NewDecoder(strings.NewReader(got)).Decode(&c); err != nil || !strings.Contains(strings.Join(c.Fails, "; "), says) {
			t.Errorf("%s: %v: %s", name, err, got)
		}
		points := map[string]int{} // and the seeds of each
		for _, d := range c.Differences {
			points[d.Point] = max(d.A.N, d.B.N)
		}
		n := 0
		for _, seeds := range points {
			n += seeds
		}
		if n != numbers {
			t.Errorf("%s: %d runs are compared, want %d", name, n, numbers)
		}
	}
	for _, name := range names("new") {
		if got := results(t, exitMissed, "compare", "base", name, "--fail-if", "worse"); !strings.Contains(got, "not compared: NEW lacks workload.0.size=") {
			t.Errorf("%s, interrupted: %s", name, got)
		}
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // names have seconds
	run(exitOK, 0, "new", "--set", "topology.link.delay=1100ns", "--resume")
	for _, name := range names("new") {
		compare(name, "numbers are worse by more than 1%", 16)
		if name == "new" {
			continue // no name of a run or a lab
		}
		if n := strings.Count(results(t, exitOK, "show", name, "--json"), "\"lab\":\"s\""); n != 16 {
			t.Errorf("show %s has %d points", name, n)
		}
	}
	if n := strings.Count(results(t, exitOK, "show", "s", "--out", "new"), " ok\n"); n != 16 {
		t.Errorf("show by the name of the lab has %d points", n)
	}
	write(t, "s.yaml", text("[1, 2, 3, 4, 5]"))
	// Directories are named by the second, and the newest decides which sweep a name stands for.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	run(exitOK, 0, "new", "--set", "topology.link.delay=1100ns", "--resume")
	for _, name := range names("new") {
		compare(name, "BASE lacks a successful run for 4 runs of NEW", 16)
		got := results(t, exitMissed, "compare", "base", name, "--fail-if", "worse")
		if !strings.Contains(got, "not compared: BASE lacks workload.0.size=16KB seed=5: not run\n") {
			t.Errorf("%s, with a fifth seed: %s", name, got)
		}
		compare(name, "worse by more than 1%", 16, "--partial")
	}
}

// A single run that --resume takes from an earlier command line is the newest of its lab, and not a
// later one of other settings: a gate compares what the command line asked for.
func TestResumedRunsAreNewest(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "s.yaml", "weft: 1\nname: s\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 64KB}]\n")
	run := func(out, delay string, more ...string) {
		t.Helper()
		args := append([]string{"run", "s.yaml", "--engine", "sim", "--out", out, "--set", "topology.link.delay=" + delay}, more...)
		if code, _, words := weft(t, orchestrated{}, args...); code != exitOK {
			t.Fatal(code, words)
		}
		// The next command line begins in another second, which orders them.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	}
	run("base", "1us")
	for _, delay := range []string{"1300ns", "1us"} {
		run("new", delay)
	}
	for delay, want := range map[string]int{"1300ns": exitMissed, "1us": exitOK} {
		run("new", delay, "--resume")
		if runs, err := filepath.Glob("new/s/2*"); len(runs) != 2 {
			t.Errorf("%d runs: %v", len(runs), err)
		}
		for _, name := range []string{"new", "new/s"} {
			results(t, want, "compare", "base", name, "--fail-if", "worse")
		}
	}
}
