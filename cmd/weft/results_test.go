package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/results/store"
)

// sweepLab compares two transports over two sizes of incast, with what is expected across points.
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

// simulateSweep runs the lab in the simulator and returns the root of its results.
func simulateSweep(t *testing.T, text string, args ...string) (root string, code int, stdout, stderr string) {
	t.Helper()
	root = t.TempDir()
	path := filepath.Join(root, "sweep.yaml")
	write(t, path, text)
	var out, words strings.Builder
	code = run(t.Context(), append([]string{"run", path, "--engine", "sim", "--out", filepath.Join(root, "results")}, args...), &out, &words)
	return filepath.Join(root, "results"), code, out.String(), words.String()
}

// results runs `weft results` and returns what it printed.
func results(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, words strings.Builder
	if code := run(t.Context(), append([]string{"results"}, args...), &out, &words); code != want {
		t.Fatalf("weft results %v: code %d, want %d: %s%s", args, code, want, out.String(), words.String())
	}
	return out.String() + words.String()
}

func TestSweepIsOneTableOnePlotAndOnePage(t *testing.T) {
	root, code, stdout, stderr := simulateSweep(t, sweepLab)
	if code != exitOK {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "across points") || strings.Count(stdout, "met") < 2 {
		t.Errorf("it said %s", stdout)
	}
	dirs, err := filepath.Glob(filepath.Join(root, "sweep", "sweep-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	table, err := os.ReadFile(filepath.Join(dirs[0], tableFile))
	if err != nil || strings.Count(string(table), "\n") != 9 || !strings.HasPrefix(string(table), "seed,transport.kind,workload.0.ranks,FCT p50 us") {
		t.Errorf("%v: %s", err, table)
	}
	text, err := os.ReadFile(filepath.Join(dirs[0], sweepFile))
	var sum sweepSummary
	if err != nil || json.Unmarshal(text, &sum) != nil || len(sum.Points) != 8 || len(sum.Expect) != 2 || !sum.Expect[1].OK {
		t.Errorf("%v: %s", err, text)
	}
	plots, _ := filepath.Glob(filepath.Join(dirs[0], plotsFolder, "*.svg"))
	page, err := os.ReadFile(filepath.Join(dirs[0], reportFile))
	if err != nil || len(plots) < 4 || strings.Count(string(page), "<figure>") != len(plots) {
		t.Errorf("%v: %d plots, %d figures", err, len(plots), strings.Count(string(page), "<figure>"))
	}
}

func TestMissesAcrossPointsCount(t *testing.T) {
	folder := t.TempDir()
	junit, summary := filepath.Join(folder, "j.xml"), filepath.Join(folder, "s.md")
	_, code, stdout, _ := simulateSweep(t, sweepLab+"  - fct.p99[transport=pc4] <= 0.1 * fct.p99[transport=roce]\n", "--junit", junit, "--summary", summary)
	if code != exitMissed || !strings.Contains(stdout, "seed=1 workload.0.ranks=2: ") {
		t.Errorf("code %d: %s", code, stdout)
	}
	for _, file := range []string{junit, summary} {
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "0.1 * fct.p99[transport=roce]") {
			t.Errorf("%v: %s", err, b)
		}
	}
}

// A command line that takes points away takes away what is said of them.
func TestNarrowedSweepsAreNotMissed(t *testing.T) {
	_, code, _, stderr := simulateSweep(t, sweepLab, "--set", "workload.0.ranks=2")
	if code != exitOK || !strings.Contains(stderr, "not judged, since --set leaves no points to compare: fct.p99[ranks=4]") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// What was finished is not run again, and what was changed is.
func TestResume(t *testing.T) {
	root, code, _, stderr := simulateSweep(t, sweepLab)
	if code != exitOK {
		t.Fatal(stderr)
	}
	path := filepath.Join(filepath.Dir(root), "sweep.yaml")
	again := func(want string, runs int, args ...string) {
		t.Helper()
		var out, words strings.Builder
		if code := run(t.Context(), append([]string{"run", path, "--engine", "sim", "--out", root, "--resume", "--json"}, args...), &out, &words); code != exitOK {
			t.Fatal(words.String())
		}
		if strings.Contains(words.String(), "finished before") != (want != "") || !strings.Contains(words.String(), want) || strings.Count(out.String(), "\n") != runs {
			t.Errorf("it said %s, with %d lines", words.String(), strings.Count(out.String(), "\n"))
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
	if got := results(t, 0, "--out", root, "show", "sweep"); strings.Count(got, "\n") != 9 {
		t.Errorf("show: %s", got)
	}
	if got := results(t, 0, "show", dirs[0]); !strings.Contains(got, "every expectation met") {
		t.Errorf("show of one: %s", got)
	}
	if got := results(t, 0, "show", dirs[0], "--json"); !strings.Contains(got, `"lab":"sweep"`) || strings.Count(got, "\n") != 1 {
		t.Errorf("show --json: %s", got)
	}
	if got := results(t, 0, "compare", dirs[0], dirs[0]); !strings.Contains(got, "nothing of") {
		t.Errorf("a run differs from itself: %s", got)
	}
	if got := results(t, 0, "--out", root, "compare", dirs[0], dirs[2]); !strings.Contains(got, "largest queue") || !strings.Contains(got, "differs") {
		t.Errorf("ranks=2 and ranks=4: %s", got)
	}
	if got := results(t, 0, "--out", root, "compare", "sweep", "sweep", "--json"); !strings.Contains(got, `"beyond": false`) || strings.Contains(got, `"beyond": true`) {
		t.Errorf("compare --json: %s", got)
	}
	for _, format := range []string{"svg", "png"} {
		got := results(t, 0, "plot", dirs[0], "--format", format)
		for _, name := range []string{"fct", "slowdown", "queueing", "queues", "rates", "cwnd"} {
			if !strings.Contains(got, name+"."+format) {
				t.Errorf("no plot %s.%s: %s", name, format, got)
			}
		}
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

// Damaged, older and newer run directories: a message with the file, and exit code 1.
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
		if got := results(t, 0, "--out", root, "ls"); (file == store.ManifestFile) != strings.Contains(got, "damaged") {
			t.Errorf("%s: ls: %s", file, got)
		}
		write(t, path, string(whole))
	}
	results(t, 0, "show", dir)
}

// The whole way of a paper, with one of its figures. A claim that fails is a missed expectation; where none does all is well.
func TestPaper(t *testing.T) {
	root := t.TempDir()
	var out, words strings.Builder
	if code := run(t.Context(), []string{"paper", "pc4", "--quick", "--only", "P2", "--out", root}, &out, &words); code != exitMissed {
		t.Fatalf("code %d: %s%s", code, out.String(), words.String())
	}
	if strings.Count(out.String(), "pass") != 7 || !strings.Contains(words.String(), "7 claims pass, 1 fail") {
		t.Errorf("it said %s%s", out.String(), words.String())
	}
	page, err := os.ReadFile(filepath.Join(root, "paper-pc4-quick.html"))
	if err != nil || strings.Count(string(page), "<figure>") != 2 || !strings.Contains(string(page), "initial window") {
		t.Errorf("%v: the page has %d figures", err, strings.Count(string(page), "<figure>"))
	}
	for i, want := range []bool{true, true, false} {
		svg, err := os.ReadFile(filepath.Join(root, fmt.Sprintf("paper-pc4-quick-P2-%d.svg", i+1)))
		if (err == nil) != want || want && !strings.HasPrefix(string(svg), "<svg") {
			t.Errorf("chart %d beside the page: %v", i+1, err)
		}
	}
	words.Reset()
	if code := run(t.Context(), []string{"paper", "pc4", "--quick", "--only", "P2", "--out", root, "--json"}, &out, &words); code != exitMissed || !strings.Contains(words.String(), "2 of 2 runs were finished before") {
		t.Errorf("code %d: %s", code, words.String())
	}
}

func TestPaperWhoseClaimsHold(t *testing.T) {
	var out, words strings.Builder
	if code := run(t.Context(), []string{"paper", "pc4", "--quick", "--only", "P4", "--out", t.TempDir()}, &out, &words); code != exitOK {
		t.Errorf("code %d: %s%s", code, out.String(), words.String())
	}
}

// The lab of the tutorial does what the tutorial says.
func TestTutorialsLab(t *testing.T) {
	text, err := os.ReadFile("docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no lab in the tutorial")
	}
	_, code, stdout, stderr := simulateSweep(t, example)
	if code != exitOK || strings.Count(stdout, "mine ") != 6 || !strings.Contains(stderr, "all points: ") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	if _, code, stdout, _ := simulateSweep(t, strings.Replace(example, "0.5 * rtt", "0.05 * rtt", 1)); code != exitMissed || !strings.Contains(stdout, "seed=1: ") {
		t.Errorf("with 0.05: code %d: %s", code, stdout)
	}
}

// A signal ends an export: what is written next is refused, and says why.
func TestExportHeedsSignals(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var out strings.Builder
	w := untilDone{ctx, &out}
	if _, err := w.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("terminated")
	cancel(stopped)
	if _, err := w.Write([]byte("b")); !errors.Is(err, stopped) || out.String() != "a" {
		t.Errorf("%q was written: %v", out.String(), err)
	}
}
