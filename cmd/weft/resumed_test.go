package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/internal/natural"
	"weft/results/report"
	"weft/results/store"
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

// Points that come to the same settings are two runs, whatever was run before: --resume takes each
// stored run for one of them at most, and readers find every point once.
func TestResumeTakesARunForOnePoint(t *testing.T) {
	algorithms := "sweep: {workload.0.algorithm: [ring, auto, halving-doubling]}"
	sizes := "sweep: {workload.0.size: [64KB, 64000B, 128KB]}"
	for _, c := range []struct {
		algorithm string
		before    []string // sweeps of earlier command lines; "": a single run
		sweep     string
		reused    int
	}{
		{", algorithm: ring", []string{""}, algorithms, 1},
		{", algorithm: ring", []string{"", ""}, algorithms, 2},
		{"", []string{""}, sizes, 1},
		{"", []string{"sweep: {seed: [1, 2]}"}, sizes, 1},
		{"", []string{"sweep: {workload.0.size: [64000B, 128KB]}", ""}, sizes, 3}, // the newest may be of any point
		{"", []string{sizes}, sizes, 3},
	} {
		t.Chdir(t.TempDir())
		run := func(sweep, out string, more ...string) string {
			t.Helper()
			write(t, "s.yaml", "weft: 1\nname: s\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: all-reduce, size: 64KB"+
				c.algorithm+"}]\n"+sweep+"\n")
			args := append([]string{"run", "s.yaml", "--engine", "sim", "--out", out}, more...)
			code, _, words := weft(t, orchestrated{}, args...)
			if code != exitOK {
				t.Fatal(code, words)
			}
			// The next command line begins in another second, which orders them.
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			return words
		}
		for _, sweep := range c.before {
			run(sweep, "runs")
		}
		run(c.sweep, "fresh")
		want := fmt.Sprintf("%d of 3 runs were finished before", c.reused)
		if words := run(c.sweep, "runs", "--resume", "--list", "list.json"); !strings.Contains(words, want) {
			t.Errorf("%q, then %s: want %s: %s", c.before, c.sweep, want, words)
		}
		if words := run(c.sweep, "runs", "--resume"); !strings.Contains(words, "3 of 3 runs were finished before") {
			t.Errorf("%q, then %s twice: %s", c.before, c.sweep, words)
		}
		for _, name := range []string{"runs", "list.json"} {
			// Nothing is lacking on either side, and each point is one run.
			got := results(t, exitOK, "compare", "fresh", name, "--fail-if", "worse", "--json")
			var compared report.Comparison
			if err := json.NewDecoder(strings.NewReader(got)).Decode(&compared); err != nil {
				t.Fatal(err)
			}
			points := map[string]bool{}
			for _, d := range compared.Differences {
				points[d.Point] = true
				if d.Noise == "none" && (d.A.N != 1 || d.B.N != 1) || d.Noise == "seeds" {
					t.Errorf("%q, then %s: %s has %d and %d runs", c.before, c.sweep, d.Point, d.A.N, d.B.N)
				}
			}
			if len(points) != 3 {
				t.Errorf("%q, then %s: compared %v", c.before, c.sweep, points)
			}
		}
	}
}

// Earlier versions could write a sweep.json or a list with the same run at two points. The run then
// belongs to the first point, and the second is reported as missing.
func TestARunIsThatOfOnePoint(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "s.yaml", "weft: 1\nname: s\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 64KB}]\n")
	if code, _, words := weft(t, orchestrated{}, "run", "s.yaml", "--engine", "sim", "--out", "runs"); code != exitOK {
		t.Fatal(code, words)
	}
	runs, err := filepath.Glob("runs/s/2*")
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	point := func(size string) string {
		return `{"lab": "s", "engine": "sim", "point": {"workload.0.size": "` + size + `"}, "seed": 1, "status": "ok", "run": "` + runs[0] + `"}`
	}
	both := point("64KB") + "," + point("64000B")
	if err := os.Mkdir("runs/s/sweep-x", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, "runs/s/sweep-x/sweep.json", `{"lab": "s", "engine": "sim", "points": [`+both+`]}`)
	write(t, "list.json", `{"format": 1, "runs": [`+both+`]}`)
	for _, name := range []string{"runs/s/sweep-x", "list.json"} {
		found, err := store.ReadList(name)
		if name != "list.json" {
			found, err = store.Find("", name)
		}
		if err != nil || len(found.Runs) != 1 || len(found.Lacking) != 1 || found.Points[runs[0]]["workload.0.size"] != "64KB" ||
			!strings.Contains(found.Lacking[0].Error, "has the run of another point") {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}
