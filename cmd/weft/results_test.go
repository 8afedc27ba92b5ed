package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weft/internal/shell"
	"weft/orchestrator/experiment"
	"weft/orchestrator/pages"
	"weft/orchestrator/paper"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/view"
)

// sweepLab compares two transports over two sizes of incast, with expectations across points.
const sweepLab = `weft: 1
name: sweep
topology: {kind: star, hosts: 5, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: incast, ranks: 2, size: 64KB}]
measure: {queues: 1us, cwnd: true, rates: 2us}
sweep: {transport.kind: [pc4, roce], workload.0.ranks: [2, 4], seed: [1, 2]}
expect:
  - verified == true
  - fct.p99[ranks=4] > 1.5 * fct.p99[ranks=2]
  - max(drops[transport=*, ranks=*, seed=*]) == 0
`

// simulateSweep simulates a lab and returns the directory of its runs.
func simulateSweep(t *testing.T, text string, args ...string) (root string, code int, stdout, stderr string) {
	t.Helper()
	root = t.TempDir()
	path := filepath.Join(root, "sweep.yaml")
	write(t, path, text)
	root = filepath.Join(root, "results")
	code, stdout, stderr = weft(t, orchestrated{}, append([]string{"run", path, "--engine", "sim", "--out", root}, args...)...)
	return root, code, stdout, stderr
}

// A table of a sweep whose controller helps one transport alone says so, like a comparison; and so
// does the sweep's page.
func TestSweepSaysWhichTransportAControllerHelps(t *testing.T) {
	for kinds, want := range map[string]bool{"[pc4, roce]": true, "[pc4]": false, "[strack, roce]": false} {
		root, _, stdout, _ := simulateSweep(t, "weft: 1\nname: sweep\ntopology: {kind: star, hosts: 4}\n"+
			"workload: [{collective: incast, ranks: 2, size: 10KB}]\nsweep: {transport.kind: "+kinds+", seed: [1, 2]}\n")
		pages, err := filepath.Glob(filepath.Join(root, "sweep", "sweep-*", "report.html"))
		if err != nil || len(pages) != 1 {
			t.Fatal(pages, err)
		}
		page, err := os.ReadFile(pages[0])
		const note = "in runs of pc4 a controller that knows all flows helps senders"
		if err != nil || strings.Contains(stdout, note) != want || strings.Contains(string(page), note) != want {
			t.Errorf("%s: want a note: %v; %v, got %s", kinds, want, err, stdout)
		}
	}
}

// results runs weft results, checks its exit code, and returns all output.
func results(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, words := weft(t, orchestrated{}, append([]string{"results"}, args...)...)
	if code != want {
		t.Fatalf("weft results %v: code %d, want %d: %s%s", args, code, want, out, words)
	}
	return out + words
}

func TestSweepOutput(t *testing.T) {
	root, code, stdout, stderr := simulateSweep(t, sweepLab)
	if code != exitOK {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "across points") || strings.Count(stdout, "met") < 2 {
		t.Errorf("got %s", stdout)
	}
	dirs, err := filepath.Glob(filepath.Join(root, "sweep", "sweep-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	table, err := os.ReadFile(filepath.Join(dirs[0], pages.TableFile))
	if err != nil || strings.Count(string(table), "\n") != 9 || !strings.HasPrefix(string(table), "seed,transport.kind,workload.0.ranks,flows,flows done,packets cut,FCT p50 us") {
		t.Errorf("%v: %s", err, table)
	}
	text, err := os.ReadFile(filepath.Join(dirs[0], store.SweepFile))
	var sum record.Sweep
	if err != nil || json.Unmarshal(text, &sum) != nil || len(sum.Points) != 8 || len(sum.Expect) != 2 || !sum.Expect[1].OK {
		t.Errorf("%v: %s", err, text)
	}
	// Pages link to each other, and name their points.
	for _, p := range sum.Points {
		base := filepath.Base(p.Run)
		own, err := os.ReadFile(filepath.Join(root, "sweep", base, pages.PageFile))
		kind := map[any]string{"pc4": "pc4", "roce": "roce (DCQCN)"}[p.Point["transport.kind"]]
		title := fmt.Sprintf("<h1>sweep: %s, ranks %v, seed %v</h1>", kind, p.Point["workload.0.ranks"], p.Point["seed"])
		if err != nil || !strings.Contains(string(own), `href="../`+filepath.Base(dirs[0])+`/report.html"`) || !strings.Contains(string(own), title) {
			t.Errorf("%s: %v; no link back, or no %s", base, err, title)
		}
		if text, err := os.ReadFile(filepath.Join(dirs[0], pages.PageFile)); err != nil || !strings.Contains(string(text), `href="../`+base+`/report.html"`) {
			t.Errorf("%v: no link to %s", err, base)
		}
	}
	plots, _ := filepath.Glob(filepath.Join(dirs[0], pages.PlotsFolder, "*.svg"))
	page, err := os.ReadFile(filepath.Join(dirs[0], pages.PageFile))
	if err != nil || len(plots) < 4 || strings.Count(string(page), "<figure>") != len(plots) {
		t.Errorf("%v: %d plots, %d figures", err, len(plots), strings.Count(string(page), "<figure>"))
	}
	firsts, _ := filepath.Glob(filepath.Join(root, "sweep", "2*-1", "lab.yaml"))
	if len(firsts) != 1 {
		t.Fatal(firsts)
	}
	for _, want := range []string{"How to run it again", html.EscapeString(shell.Quote(firsts[0])) + " --engine sim\n", "the lab file", "sweep: {", ">collective<", `href="../`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page of the sweep has no %q", want)
		}
	}
}

// stopping is an engine whose user interrupts the third run.
type stopping struct {
	orchestrated
	stop context.CancelFunc
	left *atomic.Int32
}

func (e stopping) Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	if e.left.Add(-1) == 0 {
		e.stop()
	}
	return e.orchestrated.Run(ctx, x, o)
}

// The table, the page and the record of an interrupted sweep say how many of its points ran.
func TestInterruptedSweep(t *testing.T) {
	root := t.TempDir()
	file, out := filepath.Join(root, "sweep.yaml"), filepath.Join(root, "results")
	write(t, file, sweepLab)
	ctx, stop := context.WithCancel(t.Context())
	var stdout, stderr strings.Builder
	e := stopping{stop: stop, left: new(atomic.Int32)}
	e.left.Store(3)
	a := &app{stdout: &stdout, stderr: &stderr, engine: e}
	code := a.execute(ctx, []string{"run", file, "--engine", "sim", "--out", out})
	all, _ := filepath.Glob(filepath.Join(out, "sweep", "sweep-*", pages.PageFile))
	if code != exitInterrupted || len(all) != 1 {
		t.Fatalf("code %d, pages %q\n%s%s", code, all, &stdout, &stderr)
	}
	page, err := os.ReadFile(all[0])
	if err != nil {
		t.Fatal(err)
	}
	shown := results(t, exitOK, "--out", out, "show", "sweep")
	note := regexp.MustCompile(`interrupted: [1-3] of 8 points ran`)
	if text := stdout.String(); !strings.Contains(text, "not tested: the sweep was interrupted") || strings.Contains(text, "of 4 met") {
		t.Errorf("an expectation that was not tested is not told as that:\n%s", text)
	}
	for what, text := range map[string]string{"table": stdout.String(), "page": string(page), "results show": shown} {
		if !note.MatchString(text) || strings.Contains(text, "runs failed") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
	if text := string(page); !strings.Contains(text, "8 points; ") || !strings.Contains(text, "pc4, roce") {
		t.Error("the page does not tell what was swept")
	}
	if n := strings.Count(results(t, exitOK, "--out", out, "show", "sweep", "--json"), `"lab":"sweep"`); n != 8 {
		t.Errorf("results show --json has %d points, want 8", n)
	}
}

// late is an engine whose last run receives a signal as it ends.
type late struct {
	orchestrated
	stop context.CancelFunc
	left *atomic.Int32 // runs
}

func (e late) Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	s, err := e.orchestrated.Run(ctx, x, o)
	if e.left.Add(-1) == 0 {
		e.stop()
	}
	return s, err
}

// A signal that arrives when all runs have ended changes no exit code: 0, or 3 for a miss.
func TestSignalAfterTheLastRun(t *testing.T) {
	for expect, want := range map[string]int{"drops == 0": exitOK, "drops > 0": exitMissed} {
		root := t.TempDir()
		file := filepath.Join(root, "sweep.yaml")
		write(t, file, "weft: 1\nname: sweep\ntopology: {kind: star, hosts: 3}\nsweep: {seed: [1, 2]}\n"+
			"workload: [{collective: incast, ranks: 2, size: 1KB}]\nexpect: ["+expect+"]\n")
		ctx, stop := context.WithCancel(t.Context())
		e := late{stop: stop, left: new(atomic.Int32)}
		e.left.Store(2)
		var stdout, stderr strings.Builder
		a := &app{stdout: &stdout, stderr: &stderr, engine: e}
		code := a.execute(ctx, []string{"run", file, "--engine", "sim", "--out", filepath.Join(root, "results")})
		if code != want || strings.Contains(stderr.String(), "torn down") {
			t.Errorf("%s: code %d, want %d\n%s%s", expect, code, want, &stdout, &stderr)
		}
		stop()
	}
}

// A sweep that was killed is shown with the points that it has, and with what it lacks.
func TestKilledSweep(t *testing.T) {
	root, _, _, _ := simulateSweep(t, "weft: 1\nname: sweep\ntopology: {kind: star, hosts: 3}\n"+
		"workload: [{collective: incast, ranks: 2, size: 1KB}]\nsweep: {workload.0.size: [1KB, 2KB, 3KB]}\n")
	edit := func(pattern string, change func(i int, file map[string]any)) {
		files, _ := filepath.Glob(filepath.Join(root, "sweep", pattern))
		for i, path := range files {
			var file map[string]any
			text, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(text, &file)
			}
			if err != nil {
				t.Fatal(err)
			}
			change(i, file)
			if text, err = json.Marshal(file); err != nil {
				t.Fatal(err)
			}
			write(t, path, string(text))
		}
	}
	edit("sweep-*/"+store.SweepFile, func(_ int, sweep map[string]any) {
		for _, p := range sweep["points"].([]any) {
			p.(map[string]any)["status"], p.(map[string]any)["run"] = record.Running, ""
		}
	})
	edit("[0-9]*/"+store.ManifestFile, func(i int, m map[string]any) { // the process of the second is gone
		if i == 1 {
			m["status"], m["files"] = record.Running, []any{}
			m["process"].(map[string]any)["started_ticks"] = 1
		}
	})
	dirs, _ := filepath.Glob(filepath.Join(root, "sweep", "[0-9]*"))
	if len(dirs) != 3 || os.Remove(filepath.Join(dirs[1], store.SummaryFile)) != nil || os.RemoveAll(dirs[2]) != nil {
		t.Fatal(dirs)
	}
	got := results(t, exitOK, "--out", root, "show", "sweep")
	for _, want := range []string{"\n1KB ", "\n2KB ", "the run was killed",
		"the sweep did not end (it was killed): 1 of 3 points have a result"} {
		if !strings.Contains(strings.ReplaceAll(got, "\n ", "\n"), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(results(t, exitOK, "--out", root, "show", "sweep", "--json"), `"lab":"sweep"`); n != 3 {
		t.Errorf("results show --json has %d points, want 3", n)
	}
}

// If points of a sweep fail, the table, the page and the files show how far each got and why it
// failed. They show no times of the flows that happened to finish.
func TestSweepWithFailedPoints(t *testing.T) {
	root, code, stdout, stderr := simulateSweep(t, `weft: 1
name: sweep
topology: {kind: star, hosts: 5, link: {rate: 100Gbps, delay: 1us}}
transport: {kind: roce}
workload: [{collective: incast, ranks: 2, size: 1MB}]
faults: [{at: 50us, link: h3-switch0, down: true}]
sweep: {workload.0.ranks: [2, 3, 4]}
`)
	if code != exitFailed {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	lines := strings.Split(stdout, "\n")
	if head := strings.Fields(lines[0]); head[1] != "done" {
		t.Errorf("columns %q", head)
	}
	for i, want := range []string{"2 2 of 2 456.6 us", "3 0 of 3 – – – –", "4 3 of 4 – – – –"} {
		if row := strings.Join(strings.Fields(lines[i+1]), " "); !strings.HasPrefix(row, want) {
			t.Errorf("row %q, want %q", row, want)
		}
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "sweep", "sweep-*"))
	table, err := os.ReadFile(filepath.Join(dirs[0], pages.TableFile))
	if err != nil || !strings.Contains(string(table), "\n4,4,3,") || !strings.Contains(string(table), ",,,,") {
		t.Errorf("%v: %s", err, table)
	}
	page, err := os.ReadFile(filepath.Join(dirs[0], pages.PageFile))
	for _, want := range []string{"3 of 4", "What went wrong", "link h3-switch0 is down from 50 us", "<h2>Warnings", "roce is outside its conditions"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%v: the page does not say %q", err, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dirs[0], store.SweepFile))
	var sum record.Sweep
	if err != nil || json.Unmarshal(text, &sum) != nil || sum.Points[2].Done != 3 || sum.Points[2].Error == "" || len(sum.Points[0].Warnings) == 0 {
		t.Errorf("%v: %s", err, text)
	}
	var listed []report.Listed
	if err := json.Unmarshal([]byte(results(t, exitOK, "ls", "--json", "--out", root)), &listed); err != nil || listed[2].Done != 3 || listed[2].Slowdown != 0 {
		t.Errorf("%v: %+v", err, listed)
	}
	show := results(t, exitOK, "show", "sweep", "--out", root)
	for _, want := range []string{"3 of 4", "link h3-switch0 is down from 50 us", "roce is outside its conditions"} {
		if !strings.Contains(show, want) {
			t.Errorf("show does not say %q: %s", want, show)
		}
	}
}

func TestMissAcrossPoints(t *testing.T) {
	folder := t.TempDir()
	junit, summary := filepath.Join(folder, "j.xml"), filepath.Join(folder, "s.md")
	_, code, stdout, _ := simulateSweep(t, sweepLab+"  - fct.p99[transport=pc4] <= 0.1 * fct.p99[transport=roce]\n", "--junit", junit, "--summary", summary)
	if code != exitMissed || !strings.Contains(stdout, "0 of 4 met; worst at seed=1 workload.0.ranks=4: ") {
		t.Errorf("code %d: %s", code, stdout)
	}
	if _, code, stdout, stderr := simulateSweep(t, sweepLab+"  - fct.p99[transport=pc4] <= 0.1 * fct.p99[transport=roce]\n", "--json"); code != exitMissed ||
		strings.Count(stdout, "\n") != 8 || !strings.Contains(stderr, "0 of 4 met; worst at seed=1 workload.0.ranks=4: ") {
		t.Errorf("--json: code %d: %s%s", code, stdout, stderr)
	}
	for _, file := range []string{junit, summary} {
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "0.1 * fct.p99[transport=roce]") {
			t.Errorf("%v: %s", err, b)
		}
	}
}

// --set can remove points that an expectation needs. The expectation is skipped then, and every
// report says so.
func TestNarrowedSweepsSkipExpectations(t *testing.T) {
	folder := t.TempDir()
	junit, summary := filepath.Join(folder, "j.xml"), filepath.Join(folder, "s.md")
	root, code, stdout, _ := simulateSweep(t, sweepLab, "--set", "workload.0.ranks=2", "--junit", junit, "--summary", summary)
	if code != exitOK {
		t.Errorf("code %d: %s", code, stdout)
	}
	const why = "--set leaves no points to compare: column 9: no point has workload.0.ranks=4; there are 2"
	pages, _ := filepath.Glob(filepath.Join(root, "sweep", "sweep-*", pages.PageFile))
	if len(pages) != 1 {
		t.Fatal(pages)
	}
	told := map[string]string{"stdout": stdout}
	for _, file := range []string{junit, summary, pages[0]} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		told[file] = string(b)
	}
	for where, text := range told {
		if !strings.Contains(text, why) || !strings.Contains(text, "skipped") {
			t.Errorf("%s does not say what was skipped: %s", where, text)
		}
	}
	if !strings.Contains(told[junit], `failures="0" skipped="1"`) || !strings.Contains(told[pages[0]], "4 runs, 5 of 6 expectations met, the others skipped") {
		t.Errorf("%s", told[junit])
	}
}

// What no point of the file's sweep has is no point that --set removed.
func TestPointsThatNoSettingRemoved(t *testing.T) {
	for _, set := range []string{"seed=1", "topology.mtu=1000", "workload.0.ranks=2"} {
		_, code, stdout, stderr := simulateSweep(t, sweepLab+"  - fct.p99[seed=9] > 0us\n", "--set", set)
		if code != exitUsage || !strings.Contains(stderr, "seed=9") {
			t.Errorf("%s: code %d: %s%s", set, code, stdout, stderr)
		}
	}
}

// Points that an expectation of the command line compares must be among those of the command.
func TestComparedPointsOfTheCommandLine(t *testing.T) {
	for seed, want := range map[string]int{"9": exitUsage, "1": exitOK} {
		_, code, stdout, stderr := simulateSweep(t, sweepLab, "--set", `expect=["fct.p99[seed=`+seed+`] > 0us"]`)
		if code != want || want == exitUsage && !strings.Contains(stderr, "seed=9") {
			t.Errorf("seed %s: code %d: %s%s", seed, code, stdout, stderr)
		}
	}
}

// If --set leaves one seed, expectations over all seeds are judged with it.
func TestOneSeedIsEverySeed(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"  - mean(fct.p99[transport=pc4, seed=*]) <= 10 * mean(fct.p99[transport=roce, seed=*])\n", exitOK, "met"},
		{"  - mean(fct.p99[transport=pc4, seed=*]) <= 0.01 * mean(fct.p99[transport=roce, seed=*])\n", exitMissed, "missed  mean("},
		{"  - fct.p99[seed=2] > 0us\n", exitOK, "skipped"},
	} {
		_, code, stdout, stderr := simulateSweep(t, sweepLab+c.line, "--set", "seed=1")
		if code != c.code || !strings.Contains(stdout, c.says) || strings.Contains(stdout, "skipped") != (c.says == "skipped") {
			t.Errorf("%s: code %d: %s%s", c.line, code, stdout, stderr)
		}
	}
}

// Names of runs and traces that do not print do not reach the terminal.
func TestNamesOfRunsThatDoNotPrint(t *testing.T) {
	t.Chdir(t.TempDir())
	const name = "a\x1b[31m\nb"
	for _, args := range [][]string{{"results", "show", name}, {"results", "ls", name}, {"results", "compare", name, name},
		{"results", "export", name, "flows", "csv"}, {"view", name}, {"trace", name}, {"convert", name, "x.goal"}} {
		_, stdout, stderr := weft(t, &fake{}, args...)
		if all := stdout + stderr; strings.Contains(all, "\x1b") || !strings.Contains(all, "a\uFFFD[31m\uFFFDb") ||
			strings.Count(all, "\n") != 1 {
			t.Errorf("%q: %q", args, all)
		}
	}
}

// A file of this machine that a failed program did not find in its node is named, with what to do.
func TestUnseenFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "mine.py", "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"python3", "-u", "mine.py"}, "weft: programs see /usr and the folder that they lie in, so not mine.py; try mine.py\n"},
		{[]string{"python3", dir + "/mine.py"}, "so not " + dir + "/mine.py; try " + dir + "/mine.py\n"},
		{[]string{dir + "/prog", "mine.py"}, "weft: programs start in /tmp of their node, where mine.py is not; name it " + dir + "/mine.py\n"},
		{[]string{dir + "/prog", dir + "/mine.py"}, ""},
		{[]string{"cat", "/etc/passwd", "nothing", "."}, ""},
		{[]string{"true"}, ""},
		{nil, ""},
	} {
		var b bytes.Buffer
		(&app{stderr: &b}).explainUnseen(c.args, func(file string) string { return "try " + file })
		if got := b.String(); !strings.HasSuffix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}

// Finished runs are not repeated; changed ones are.
func TestResume(t *testing.T) {
	root, code, _, stderr := simulateSweep(t, sweepLab)
	if code != exitOK {
		t.Fatal(stderr)
	}
	path := filepath.Join(filepath.Dir(root), "sweep.yaml")
	again := func(want string, runs int, args ...string) {
		t.Helper()
		code, out, words := weft(t, orchestrated{}, append([]string{"run", path, "--engine", "sim", "--out", root, "--resume", "--json"}, args...)...)
		if code != exitOK {
			t.Fatal(words)
		}
		if strings.Contains(words, "finished before") != (want != "") || !strings.Contains(words, want) || strings.Count(out, "\n") != runs {
			t.Errorf("got %s, with %d lines", words, strings.Count(out, "\n"))
		}
	}
	again("8 of 8 runs were finished before", 8)
	again("", 8, "--set", "workload.0.size=32KB")
	again("8 of 8 runs were finished before", 8, "--set", "workload.0.size=32KB")
	dirs, _ := filepath.Glob(filepath.Join(root, "sweep", "[0-9]*"))
	if err := os.Truncate(filepath.Join(dirs[0], store.SummaryFile), 10); err != nil {
		t.Fatal(err)
	}
	again("7 of 8 runs were finished before", 8)
}

func TestResultsCommands(t *testing.T) {
	root, code, _, stderr := simulateSweep(t, sweepLab)
	if code != exitOK {
		t.Fatal(stderr)
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "sweep", "[0-9]*"))
	if got := results(t, 0, "--out", root, "ls"); strings.Count(got, "transport.kind=pc4") != 4 {
		t.Errorf("ls: %s", got)
	}
	if got := results(t, 0, "--out", root, "show", "sweep"); strings.Count(got, " ok\n") != 8 {
		t.Errorf("show: %s", got)
	}
	if got := results(t, 0, "show", dirs[0]); !strings.Contains(got, "every expectation met") {
		t.Errorf("show of one: %s", got)
	}
	if got := results(t, 0, "show", dirs[0], "--json"); !strings.Contains(got, `"lab":"sweep"`) || strings.Count(got, "\n") != 1 {
		t.Errorf("show --json: %s", got)
	}
	if got := results(t, 0, "compare", dirs[0], dirs[0]); !strings.Contains(got, "none of") {
		t.Errorf("a run differs from itself: %s", got)
	}
	if got := results(t, 0, "--out", root, "compare", dirs[0], dirs[2]); !strings.Contains(got, "largest queue") || !strings.Contains(got, "better") {
		t.Errorf("ranks=2 and ranks=4: %s", got)
	}
	if got := results(t, 0, "--out", root, "compare", "sweep", "sweep", "--json"); !strings.Contains(got, `"beyond": false`) || strings.Contains(got, `"beyond": true`) || !strings.Contains(got, `"mean": `) || strings.Contains(got, `"Mean"`) {
		t.Errorf("compare --json: %s", got)
	}
	for _, format := range []string{"svg", "png"} {
		got := results(t, 0, "plot", dirs[0], "--format", format, "--json")
		for _, name := range []string{"fct", "slowdown", "queueing", "queues", "rates", "cwnd"} {
			if !strings.Contains(got, name+"."+format) {
				t.Errorf("no plot %s.%s: %s", name, format, got)
			}
		}
	}
	if got := results(t, 0, "plot", dirs[0]); got != dirs[0]+": 6 charts in plots/, and report.html\n" {
		t.Errorf("plot: %s", got)
	}
	charts := 6*len(dirs) - len(dirs)/2 // DCQCN, the transport of half of them, has no window to draw
	want := fmt.Sprintf("%s: %d charts in plots/, and report.html for each of %d runs\n", filepath.Join(root, "sweep"), charts, len(dirs))
	if got := results(t, 0, "--out", root, "plot", "sweep"); got != want {
		t.Errorf("plot of a sweep: %swant %s", got, want)
	}
	if got := results(t, 0, "export", dirs[0], "flows", "csv"); !strings.HasPrefix(got, "item,repeat,src,dst,") || strings.Count(got, "\n") != 3 {
		t.Errorf("export: %s", got)
	}
	results(t, exitUsage, "--out", root, "export", "sweep", "flows", "csv")
	results(t, exitUsage, "export", dirs[0], "pods", "csv")
	results(t, exitUsage, "export", dirs[0], "flows", "xml")
	results(t, exitFailed, "export", dirs[0], "clocks", "csv")
	results(t, exitUsage, "plot", dirs[0], "--format", "gif")
	results(t, exitUsage, "show", t.TempDir())
}

// A damaged file in the directory of a run gives a message with its name, and exit code 1.
func TestResultsOfDamagedRuns(t *testing.T) {
	root, _, _, _ := simulateSweep(t, sweepLab, "--set", "transport.kind=pc4", "--set", "workload.0.ranks=2", "--set", "seed=1")
	dirs, _ := filepath.Glob(filepath.Join(root, "sweep", "[0-9]*"))
	if len(dirs) != 1 {
		t.Fatal(dirs)
	}
	dir := dirs[0]
	for _, file := range []string{store.SummaryFile, store.FlowsFile, store.ManifestFile} {
		path := filepath.Join(dir, file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := append([]byte{}, whole...)
		bad[len(bad)/3] ^= 0x20
		if file == store.ManifestFile {
			bad = bad[:len(bad)/2]
		}
		write(t, path, string(bad))
		command := "show"
		if file == store.FlowsFile {
			command = "plot"
		}
		if got := results(t, exitFailed, command, dir); !strings.Contains(got, file) || !strings.Contains(got, "damaged") {
			t.Errorf("%s: %s", file, got)
		}
		if got := results(t, 0, "--out", root, "ls"); (file != store.FlowsFile) != strings.Contains(got, "damaged") {
			t.Errorf("%s: ls: %s", file, got)
		}
		write(t, path, string(whole))
	}
	results(t, 0, "show", dir)
}

// A run whose summary contradicts itself, though its checksum is right, is damaged for every
// command that reads runs, which names the file and the field; no comparison with it passes.
func TestResultsOfContradictoryRuns(t *testing.T) {
	root, _, _, _ := simulateSweep(t, sweepLab, "--set", "transport.kind=pc4", "--set", "workload.0.ranks=2",
		"--set", "measure.view=auto")
	dirs, _ := filepath.Glob(filepath.Join(root, "sweep", "[0-9]*"))
	sweeps, _ := filepath.Glob(filepath.Join(root, "sweep", "sweep-*"))
	if len(dirs) != 2 || len(sweeps) != 1 {
		t.Fatal(dirs, sweeps)
	}
	dir, base := dirs[0], filepath.Join(t.TempDir(), "base")
	if err := os.CopyFS(base, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	sound := filepath.Join(base, "sweep", filepath.Base(dir))
	if got := results(t, exitOK, "compare", sound, dir, "--fail-if", "worse"); !strings.Contains(got, "none of") {
		t.Fatal(got)
	}
	text, err := os.ReadFile(filepath.Join(dir, store.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(summary map[string]any){
		"verified":                  func(s map[string]any) { s["verified"] = false },
		"collectives.0.wrong":       func(s map[string]any) { s["collectives"].([]any)[0].(map[string]any)["wrong"] = 3 },
		"flows.unfinished":          func(s map[string]any) { s["flows"].(map[string]any)["unfinished"] = 1 },
		"status":                    func(s map[string]any) { s["status"] = "unverified" },
		"network.packets":           func(s map[string]any) { s["network"] = nil },
		"network.drops":             func(s map[string]any) { delete(s["network"].(map[string]any), "drops") },
		"network.retransmits":       func(s map[string]any) { s["network"].(map[string]any)["retransmits"] = nil },
		"expect.0.ok":               func(s map[string]any) { s["expect"].([]any)[0].(map[string]any)["unmeasured"] = true },
		"network.drops is negative": func(s map[string]any) { s["network"].(map[string]any)["drops"] = -1 },
	} {
		var summary map[string]any
		if err := json.Unmarshal(text, &summary); err != nil {
			t.Fatal(err)
		}
		change(summary)
		changed, err := json.Marshal(summary)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, store.SummaryFile), string(changed))
		seal(t, dir, changed)
		named := func(got, how string) {
			if !strings.Contains(got, store.SummaryFile+": damaged: "+field) {
				t.Errorf("%s: %s: %s", field, how, got)
			}
		}
		for _, args := range [][]string{
			{"show", dir}, {"show", dir, "--json"}, {"show", sweeps[0]}, {"compare", sound, dir}, {"compare", dir, sound},
			{"compare", sound, dir, "--fail-if", "worse"}, {"compare", base, root, "--fail-if", "worse"},
			{"plot", dir}, {"plot", sweeps[0]}, {"export", dir, "perfetto"},
		} {
			named(results(t, exitFailed, args...), strings.Join(args, " "))
		}
		if !strings.Contains(field, "negative") { // the data files of such a run are whole
			named(results(t, exitFailed, "export", dir, "flows", "csv"), "export")
		}
		got := results(t, exitOK, "--out", root, "ls", "--json")
		if named(got, "ls --json"); !strings.Contains(got, `"outcome": "damaged"`) {
			t.Errorf("%s: %s", field, got)
		}
		named(results(t, exitOK, "--out", root, "ls"), "ls")
		m, err := view.Load(dir)
		if err != nil || m.Status != record.Damaged || len(m.Facts) != 1 {
			t.Fatalf("%s: %v, %+v", field, err, m)
		}
		named(m.Facts[0], "view")
	}
}

// seal gives the manifest of a run the size and the checksum of another summary.
func seal(t *testing.T, dir string, summary []byte) {
	t.Helper()
	m, err := store.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Files {
		if f := &m.Files[i]; f.Name == store.SummaryFile {
			f.Bytes, f.Sum = int64(len(summary)), crc32.Checksum(summary, crc32.MakeTable(crc32.Castagnoli))
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, store.ManifestFile), string(text))
}

// A paper with one of its figures: a claim that fails is a missed expectation.
func TestPaper(t *testing.T) {
	root := t.TempDir()
	code, out, words := weft(t, orchestrated{}, "paper", "pc4", "--quick", "--only", "P7", "--out", root)
	if code != exitMissed {
		t.Fatalf("code %d: %s%s", code, out, words)
	}
	if strings.Count(out, "  pass") != 4 || !strings.Contains(words, "3 of 3 claims of the paper pass; 1 of 2 of our own, in") {
		t.Errorf("got %s%s", out, words)
	}
	page, err := os.ReadFile(filepath.Join(root, "paper-pc4-quick.html"))
	if err != nil || strings.Count(string(page), "<figure>") != 2 || !strings.Contains(string(page), "initial window") {
		t.Errorf("%v: the page has %d figures", err, strings.Count(string(page), "<figure>"))
	}
	for i, want := range []bool{true, true, false} {
		svg, err := os.ReadFile(filepath.Join(root, fmt.Sprintf("paper-pc4-quick-P7-%d.svg", i+1)))
		if (err == nil) != want || want && !strings.HasPrefix(string(svg), "<svg") {
			t.Errorf("chart %d beside the page: %v", i+1, err)
		}
	}
	code, out, words = weft(t, orchestrated{}, "paper", "pc4", "--quick", "--only", "P7", "--out", root, "--json")
	if code != exitMissed || !strings.Contains(words, "2 of 2 runs were finished before") {
		t.Errorf("code %d: %s", code, words)
	}
	var all judged
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := []paper.Total{{Group: paper.OfPaper, Pass: 3}, {Group: paper.OfOurs, Pass: 1, Fail: 1}}
	if !slices.Equal(all.Totals, want) || len(all.Claims) != 5 || all.Claims[1].Origin != paper.Ours || len(all.NotClaims) == 0 {
		t.Errorf("got %+v", all)
	}
	if !strings.Contains(string(page), notClaims) {
		t.Error("the page does not say what is no claim")
	}
}

func TestPaperPasses(t *testing.T) {
	code, out, words := weft(t, orchestrated{}, "paper", "pc4", "--quick", "--only", "P1", "--out", t.TempDir())
	if code != exitOK {
		t.Errorf("code %d: %s%s", code, out, words)
	}
}

// Figures that were all skipped do not pass.
func TestPaperWithoutAJudgedClaim(t *testing.T) {
	code, out, words := weft(t, orchestrated{}, "paper", "pc4", "--quick", "--only", "S10", "--out", t.TempDir())
	if code != exitFailed || !strings.Contains(words, "no claim was judged") {
		t.Errorf("code %d: %s%s", code, out, words)
	}
}

// The lab in the tutorial does what the tutorial says.
func TestLabInTheTutorial(t *testing.T) {
	example := labOnPage(t, "docs/tutorial.md")
	root, code, stdout, stderr := simulateSweep(t, example)
	if code != exitOK || strings.Count(stdout, " ok\n") != 8 || !strings.Contains(stderr, "all points: ") || strings.Contains(stderr, "warning") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	got := results(t, exitOK, "--out", root, "compare", "mine", "--by", "transport.kind=roce,pc4")
	for _, want := range []string{
		"settings that differ (A / B): transport.kind roce / pc4; and ", "0.029", "mine: the newest sweep, 8 runs, " + root,
		"note: in B a controller that knows all flows",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("compared: no %q: %s", want, got)
		}
	}
	if strings.Contains(got, "seeds on each side") {
		t.Errorf("compared: %s", got)
	}
	runs := regexp.QuoteMeta(root) // which may have a blank
	if !regexp.MustCompile(`the newest sweep, 8 runs, ` + runs + `\S+-1 to \S+-8\n`).MatchString(got) {
		t.Errorf("the range of runs is not theirs: %s", got)
	}
	file := filepath.Join(t.TempDir(), "compared.html")
	results(t, exitOK, "--out", root, "compare", "mine", "--by", "transport.kind=roce,pc4", "--html", file)
	page, err := os.ReadFile(file)
	for _, want := range []string{"compared with", "What differs", "<figure>", "settings that differ"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%v: the page of the comparison has no %q", err, want)
		}
	}
	results(t, exitUsage, "--out", root, "compare", "mine", "--by", "colour")
	results(t, exitUsage, "--out", root, "compare", "mine")
	results(t, exitUsage, "--out", root, "compare", "mine", "mine", "--by", "transport")
	if _, code, stdout, _ := simulateSweep(t, strings.Replace(example, "0.5 * rtt", "0.05 * rtt", 1)); code != exitMissed || !strings.Contains(stdout, "0 of 4 met; worst at seed=") {
		t.Errorf("with 0.05: code %d: %s", code, stdout)
	}
}

// A signal ends an export: the next write returns its cause.
func TestSignalsEndAnExport(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var out strings.Builder
	w := contextWriter{ctx, &out}
	if _, err := w.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("terminated")
	cancel(stopped)
	if _, err := w.Write([]byte("b")); !errors.Is(err, stopped) || out.String() != "a" {
		t.Errorf("%q was written: %v", out.String(), err)
	}
}

// Sweeps of one lab that start at once have separate directories, and no command mixes their runs.
func TestConcurrentSweepsAreSeparate(t *testing.T) {
	const lines = 6
	root := t.TempDir()
	path := filepath.Join(root, "sweep.yaml")
	write(t, path, "weft: 1\nname: sweep\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 64KB}]\nsweep: {seed: [1, 2, 3]}\n")
	var all sync.WaitGroup
	for i := range lines {
		all.Go(func() {
			args := []string{"run", path, "--engine", "sim", "--out", root, "--set", fmt.Sprintf("workload.0.size=%dKB", 10*(i+1))}
			if code, _, words := weft(t, orchestrated{}, args...); code != exitOK {
				t.Errorf("code %d: %s", code, words)
			}
		})
	}
	all.Wait()
	sweeps, err := filepath.Glob(filepath.Join(root, "sweep", "sweep-*"))
	if err != nil || len(sweeps) != lines {
		t.Fatalf("%q, %v; want %d sweeps", sweeps, err, lines)
	}
	sizes, runs := map[int64]bool{}, map[string]bool{}
	for _, dir := range append(sweeps, "sweep") {
		var seeds []uint64
		var size int64
		for line := range strings.Lines(results(t, 0, "--out", root, "show", dir, "--json")) {
			var s record.Summary
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatal(err)
			}
			if size != 0 && s.Flows.Bytes != size {
				t.Errorf("%s has runs of two sweeps", dir)
			}
			seeds, size, runs[s.Run] = append(seeds, s.Seed), s.Flows.Bytes, true
		}
		if !slices.Equal(seeds, []uint64{1, 2, 3}) {
			t.Errorf("%s has runs of the seeds %d", dir, seeds)
		}
		sizes[size] = true
	}
	if len(sizes) != lines || len(runs) != 3*lines {
		t.Errorf("%d sizes, %d runs; want %d and %d", len(sizes), len(runs), lines, 3*lines)
	}
}

// compare --fail-if worse distinguishes changes for the worse from others, in runs, sweeps and
// directories of labs.
func TestCompareFailsIfWorse(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	write(t, "a.yaml", "weft: 1\nname: a\ntopology: {kind: star, hosts: 4, link: {delay: 1us}}\nworkload: [{collective: permute, size: 64KB}]\nsweep: {workload.0.size: [16KB, 64KB]}\n")
	write(t, "b.yaml", "weft: 1\nname: b\ntopology: {kind: star, hosts: 3, link: {delay: 1us}}\nworkload: [{collective: all-reduce, size: 64KB}]\n")
	for out, set := range map[string][]string{
		"base": nil, "equal": nil, "slower": {"--set", "topology.link.delay=2us"}, "faster": {"--set", "topology.link.delay=900ns"},
	} {
		code, _, words := weft(t, orchestrated{}, append([]string{"run", "a.yaml", "b.yaml", "--engine", "sim", "--out", out}, set...)...)
		if code != exitOK {
			t.Fatalf("code %d: %s", code, words)
		}
	}
	// Three seeds are too few for statistics, but are the same on both sides. A run that fails has
	// no point in common with any other.
	write(t, "seeds.yaml", "weft: 1\nname: seeds\ntopology: {kind: star, hosts: 4, link: {delay: 1us}}\nworkload: [{collective: permute, size: 64KB}]\nsweep: {seed: [1, 2, 3]}\n")
	write(t, "two.yaml", "weft: 1\nname: two\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: incast, size: 256KB, jitter: 10us}]\nsweep: {transport.kind: [pc4, swift], seed: [1, 2, 3]}\n")
	for out, args := range map[string][]string{
		"three": {"seeds.yaml"}, "threeslower": {"seeds.yaml", "--set", "topology.link.delay=2us"},
		"failed": {"b.yaml", "--set", "faults=[{at: 1us, link: h0-switch0, down: true}]"},
		"others": {"seeds.yaml", "--set", "sweep.seed=[4,5,6]"}, "seed1": {"b.yaml"}, "seed2": {"b.yaml", "--set", "seed=2"},
		"two": {"two.yaml"},
	} {
		code, _, words := weft(t, orchestrated{}, append(append([]string{"run"}, args...), "--engine", "sim", "--out", out)...)
		if want := map[string]int{"failed": exitFailed}[out]; code != want {
			t.Fatalf("%s: code %d: %s", out, code, words)
		}
	}
	// One point of a sweep is missing.
	if err := os.CopyFS("less", os.DirFS("base")); err != nil {
		t.Fatal(err)
	}
	points, err := filepath.Glob("less/a/*-2/" + store.ManifestFile)
	if err != nil || len(points) != 1 || os.RemoveAll(filepath.Dir(points[0])) != nil {
		t.Fatal(points, err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"base equal", exitOK, "none of "},
		{"three threeslower", exitMissed, " numbers are worse"}, // too few seeds for statistics, but the same ones
		// Other seeds are other runs.
		{"three others --tolerance 1000%", exitMissed, "not compared: NEW lacks seed=1: not run\n"},
		{"three others --tolerance 1000% --partial", exitOK, "not compared: BASE lacks seed=4: not run\n"},
		{"seed1 seed2 --tolerance 1000%", exitMissed, "NEW fails: NEW lacks a successful run for 1 run of BASE\n"},
		{"seed2 seed1 --tolerance 1000% --partial", exitOK, "another seed may differ by more"},
		// What one setting does to the same seeds is judged by how much seeds differ.
		{"two --by transport.kind", exitMissed, "there are too few seeds"},
		{"base/b failed/b", exitMissed, "NEW fails: NEW lacks a successful run for 1 run of BASE; 1 run of NEW failed\n"},
		{"base/b failed/b --partial", exitMissed, "NEW fails: NEW lacks a successful run for 1 run of BASE; 1 run of NEW failed\n"},
		{"base slower", exitMissed, " numbers are worse by more than 1%\n"},
		{"base slower --tolerance 1000%", exitOK, "none of "},
		{"base slower --tolerance 0%", exitMissed, "a workload.0.size=16KB"},
		{"base faster --tolerance 2%", exitOK, "better"},
		{"faster base", exitMissed, "worse"},
		{"base/b slower/b", exitMissed, "worse"},
		{"base/a equal/a", exitOK, "none of "},
		{"base/a less/a", exitMissed, "not compared: NEW lacks workload.0.size=64KB: its directory "},
		{"base/a less/a --partial", exitOK, "not compared: NEW lacks workload.0.size=64KB: its directory "},
		{"base less", exitMissed, "NEW fails: NEW lacks a successful run for 1 run of BASE\n"},
		{"less base", exitMissed, "not compared: BASE lacks a workload.0.size=64KB: its directory "},
		{"less base --partial", exitOK, "not compared: BASE lacks a workload.0.size=64KB: its directory "},
	} {
		args := append([]string{"compare", "--fail-if", "worse"}, strings.Fields(c.args)...)
		if got := results(t, c.code, args...); !strings.Contains(got, c.says) {
			t.Errorf("%s: %q is not in\n%s", c.args, c.says, got)
		}
	}
	for args, says := range map[string]string{
		"base equal --fail-if better":                 "expected worse",
		"base equal --tolerance 2%":                   "--tolerance needs --fail-if worse",
		"base equal --partial":                        "--partial needs --fail-if worse",
		"base equal --accept missed":                  "--accept needs --fail-if worse",
		"base equal --fail-if worse --accept fine":    "expected missed, degraded, invalid, unverified, unfinished, failed or unjudged",
		"base equal --fail-if worse --tolerance 2":    "expected a percentage",
		"base equal --fail-if worse --tolerance NaN%": "expected a percentage",
		"base none --fail-if worse":                   "no run is called none",
	} {
		if got := results(t, exitUsage, append([]string{"compare"}, strings.Fields(args)...)...); !strings.Contains(got, says) {
			t.Errorf("%s: %q is not in\n%s", args, says, got)
		}
	}
	var c report.Comparison
	got := results(t, exitMissed, "compare", "base", "slower", "--fail-if", "worse", "--json")
	if err := json.NewDecoder(strings.NewReader(got)).Decode(&c); err != nil || c.Worse == 0 || c.Numbers != len(c.Differences) ||
		c.Worse+c.Better+c.Differs+c.Same+c.Unjudged+c.Unmeasured != c.Numbers || len(c.Fails) != 1 {
		t.Errorf("%v: %s", err, got)
	}
}

func TestListFilters(t *testing.T) {
	root := t.TempDir()
	made := func(lab string, at time.Time, number int, change func(*record.Manifest, *record.Summary)) {
		t.Helper()
		m := record.Manifest{Lab: lab, Engine: "sim", Settings: []record.Setting{{Path: "transport.kind", Value: "strack"}}}
		s := &record.Summary{
			Lab: lab, Engine: "sim", Transport: "strack", Status: record.OK, Verified: true, Flows: record.Flows{Count: 1, Slowdown: record.Quantiles{P99: 1.5}},
			Collectives: []record.Collective{{BusBWGbps: 80}},
		}
		if change != nil {
			change(&m, s)
		}
		r, err := store.Open(store.Options{Root: root, Now: at, Series: store.Series{ID: lab, Began: at, Number: number, Of: 20}, Manifest: m})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Finish(at, s); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	made("s10", now.Add(-3*time.Hour), 1, nil)
	made("s2", now.Add(-48*time.Hour), 10, func(_ *record.Manifest, s *record.Summary) {
		s.Status, s.Error = record.Unfinished, "1 of 1 messages did not finish"
	})
	made("s2", now.Add(-48*time.Hour), 2, func(m *record.Manifest, s *record.Summary) {
		m.Point = map[string]any{"seed": 3}
		m.Settings = append(m.Settings, record.Setting{Path: "topology.hosts", Value: "9", From: "command line: --set topology.hosts=9"})
		s.Expect = []record.Expect{{That: "drops == 0"}}
	})
	made("s2", now, 1, nil)
	listed := func(args ...string) string {
		var all []struct{ Run string }
		if err := json.Unmarshal([]byte(results(t, 0, append([]string{"ls", "--json", "--out", root}, args...)...)), &all); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range all {
			_, n, _ := strings.Cut(filepath.Base(l.Run), "-")
			names = append(names, filepath.Base(filepath.Dir(l.Run))+"/"+n)
		}
		return strings.Join(names, " ")
	}
	for args, want := range map[string]string{
		"":                      "s2/2 s2/10 s2/1 s10/1",
		"s2":                    "s2/2 s2/10 s2/1",
		"--last 2":              "s2/1 s10/1",
		"-n 9":                  "s2/2 s2/10 s2/1 s10/1",
		"--failed":              "s2/2 s2/10",
		"--since 4h":            "s2/1 s10/1",
		"--since 2.5d --failed": "s2/2 s2/10",
		"--since 2000-01-01":    "s2/2 s2/10 s2/1 s10/1",
		"--since " + now.Add(-time.Minute).Format(time.RFC3339): "s2/1",
	} {
		if got := listed(strings.Fields(args)...); got != want {
			t.Errorf("ls %s: %q, want %q", args, got, want)
		}
	}
	text := results(t, 0, "ls", "--out", root)
	for _, want := range []string{"strack     seed=3 topology.hosts=9       1.5  80 Gb/s  missed 1 of 1", "unfinished     1 of 1 messages did not finish"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, args := range []string{"--since yesterday", "--since -2h", "--last -1"} {
		results(t, exitUsage, append([]string{"ls", "--out", root}, strings.Fields(args)...)...)
	}
}

// A sweep over seeds that all give the same result says so.
func TestSeedsWithoutEffectAreReported(t *testing.T) {
	for rest, want := range map[string]bool{
		"topology: {kind: star, hosts: 4}\nworkload: [{collective: all-reduce, size: 64KB}]":                                      true,
		"topology: {kind: star, hosts: 4}\nworkload: [{collective: all-reduce, size: 64KB, jitter: 10us}]":                        false,
		"topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\nworkload: [{collective: all-reduce, size: 64KB}]": false, // the paths of flows depend on the seed
	} {
		_, code, _, stderr := simulateSweep(t, "weft: 1\nname: lab\n"+rest+"\nsweep: {seed: [1, 2, 3], workload.0.size: [64KB, 128KB]}\n")
		if told := strings.Contains(stderr, "seeds make no difference"); code != exitOK || told != want {
			t.Errorf("%s: code %d, told %v, want %v:\n%s", rest, code, told, want, stderr)
		}
	}
}

// The directory of a run has the files that its lab names, unless they are large: then its report
// names the lab that has them.
func TestRunAgainWithFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	goal := "num_ranks 2\nrank 0 {\nl1: send 4096b to 1 tag 7\n}\nrank 1 {\nl1: recv 4096b from 0 tag 7\n}\n"
	write(t, at("net.dot"), "graph g { h0 -- tor0; h1 -- tor0; }\n")
	write(t, at("job.goal"), goal)
	if err := os.Mkdir(at("jobs"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, at("jobs/step.csv"), "collective,size\nall-reduce,1KB\n")
	lab := at("files.yaml")
	write(t, lab, "weft: 1\nname: files\ntopology: {import: net.dot}\nworkload: [{trace: job.goal}, {trace: jobs/step.csv}]\n")
	simulate := func(lab, out string) (run, report string) {
		t.Helper()
		if code, stdout, stderr := weft(t, orchestrated{}, "run", lab, "--engine", "sim", "--out", at(out)); code != exitOK {
			t.Fatalf("code %d: %s%s", code, stdout, stderr)
		}
		runs, err := filepath.Glob(at(out + "/files/*"))
		if err != nil || len(runs) != 1 {
			t.Fatalf("%q, %v", runs, err)
		}
		text, err := os.ReadFile(filepath.Join(runs[0], pages.PageFile))
		if err != nil {
			t.Fatal(err)
		}
		return runs[0], string(text)
	}
	first, report := simulate(lab, "a")
	if want := "weft run " + html.EscapeString(shell.Quote(first+"/lab.yaml")) + " --engine sim"; !strings.Contains(report, want) {
		t.Errorf("the report has no %q", want)
	}
	m, err := store.ReadManifest(first)
	if err != nil || !slices.ContainsFunc(m.Files, func(f record.File) bool { return f.Name == "jobs/step.csv" }) {
		t.Errorf("files %v, %v", m.Files, err)
	}
	for _, name := range []string{"net.dot", "job.goal", "jobs"} {
		if err := os.RemoveAll(at(name)); err != nil {
			t.Fatal(err)
		}
	}
	again, _ := simulate(first+"/lab.yaml", "b")
	a, erra := os.ReadFile(filepath.Join(first, store.FlowsFile))
	b, errb := os.ReadFile(filepath.Join(again, store.FlowsFile))
	if erra != nil || errb != nil || string(a) != string(b) {
		t.Errorf("%v, %v: the flows differ", erra, errb)
	}

	large := at("large.yaml")
	write(t, at("summary.json"), goal)
	write(t, at("large.goal"), goal+strings.Repeat("// filler\n", store.MaxInputs/10))
	for file, why := range map[string]string{"large.goal": "more than 4 MiB", "summary.json": "a file &#34;summary.json&#34; of its own"} {
		write(t, large, "weft: 1\nname: files\ntopology: {kind: star, hosts: 2}\nworkload: [{trace: "+file+"}]\n")
		run, report := simulate(large, file+"-runs")
		if !strings.Contains(report, "weft run "+html.EscapeString(shell.Quote(large))+" --engine sim") || !strings.Contains(report, why) {
			t.Errorf("%s: the report does not name the lab, or does not say %q", file, why)
		}
		if _, err := os.Stat(filepath.Join(run, "large.goal")); err == nil {
			t.Errorf("%s: kept", file)
		}
	}
}

// A comparison warns of runs that are on both sides, whatever path names them. A gate that would
// compare nothing else is an error of the command line.
func TestCompareOfTheSameRuns(t *testing.T) {
	lab := filepath.Join(t.TempDir(), "same.yaml")
	write(t, lab, "weft: 1\nname: same\ntopology: {kind: star, hosts: 3}\nworkload: [{collective: permute, size: 64KB}]\nsweep: {seed: [1, 2]}\n")
	root := t.TempDir()
	if code, stdout, stderr := weft(t, orchestrated{}, "run", lab, "--engine", "sim", "--out", root); code != exitOK {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	link, copied := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(os.Symlink(root, link), os.CopyFS(copied, os.DirFS(root))); err != nil {
		t.Fatal(err)
	}
	runs, _ := filepath.Glob(filepath.Join(root, "same", "2*"))
	if len(runs) != 2 {
		t.Fatalf("runs %q", runs)
	}
	for _, c := range []struct {
		base, changed string
		gate          int
	}{
		{root, root, exitUsage}, {root, link, exitUsage}, {root, root + "/same/../", exitUsage},
		{runs[0], runs[0], exitUsage},
		{root, copied, exitOK}, // a copy of a run is another run
	} {
		for _, got := range []string{results(t, exitOK, "compare", c.base, c.changed),
			results(t, c.gate, "compare", c.base, c.changed, "--fail-if", "worse")} {
			if told := strings.Contains(got, "have the same runs"); told != (c.gate == exitUsage) {
				t.Errorf("%s, %s: %s", c.base, c.changed, got)
			}
		}
	}
}
