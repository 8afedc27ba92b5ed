package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"weft/internal/golden"
	"weft/orchestrator/deploy"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
)

// TestMain runs the tests in the root of the module, where the examples of the help text are true. What these tests run
// is simulated, or not at all: package e2e runs the program.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// fake is an engine that runs nothing. It notes what it was asked for.
type fake struct {
	mu   sync.Mutex
	runs []string // "lab engine"
	then func(s *record.Summary) error
}

func (f *fake) Run(ctx context.Context, l *lab.Lab, o orchestrate.Options) (*record.Summary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, strings.TrimSpace(l.Name+" "+o.Engine))
	engine := o.Engine
	if engine == "auto" {
		engine = "emu"
	}
	o.Say("engine " + engine + ": because the test says so")
	o.Progress(orchestrate.Progress{Phase: "running", Done: 1, Total: 2})
	s := &record.Summary{
		Run: "results/" + l.Name + "/20260101T000000-1", Lab: l.Name, Point: l.Point, Engine: engine, Dilation: 1,
		Seed: l.Seed, Transport: l.Transport.Kind, Status: "ok", Verified: true,
		Flows:       record.Flows{Count: 8, Bytes: 8e6, FCT: record.Quantiles{Mean: 640, P50: 650, P99: 660, Max: 661}},
		Collectives: []record.Collective{}, Expect: []record.Expect{}, LabTimeUS: 661, WallS: 1,
	}
	if f.then == nil {
		return s, nil
	}
	err := f.then(s)
	if errors.Is(err, errNothing) {
		return nil, err
	}
	return s, err
}

// errNothing makes the fake engine fail before it leaves anything.
var errNothing = errors.New("no directory to write to")

// weft runs a command line against the fake engine.
func weft(t *testing.T, f *fake, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, words strings.Builder
	a := &app{stdout: &out, stderr: &words, engine: f}
	code = a.execute(t.Context(), args)
	return code, out.String(), words.String()
}

func TestHelp(t *testing.T) {
	var out strings.Builder
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"validate", "--help"}} {
		code, stdout, stderr := weft(t, &fake{}, args...)
		if code != 0 || stderr != "" {
			t.Errorf("%v: code %d, stderr %q", args, code, stderr)
		}
		out.WriteString("$ weft " + strings.Join(args, " ") + "\n" + stdout + "\n")
	}
	golden.File(t, "cmd/weft/testdata/help.golden", out.String())
}

// Every example of every help text is a command line that works. Those about deployed labs, of which there are none
// here, say so; package e2e has them work.
func TestExamplesInHelpWork(t *testing.T) {
	t.Setenv(deploy.RootVar, filepath.Join(t.TempDir(), "state"))
	live := map[string]bool{
		"destroy": true, "clean": true, "exec": true, "inspect": true, "link": true, "node": true, "events": true, "capture": true,
	}
	weft(t, &fake{}, "clean") // what labs killed before have left
	report := filepath.Join(t.TempDir(), "report.xml")
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			line = strings.ReplaceAll(strings.TrimSpace(line), "report.xml", report)
			line = strings.ReplaceAll(line, "summary.md", report+".md")
			args := strings.Fields(line)
			if len(args) == 0 {
				continue
			}
			seen++
			if len(args) > 2 && args[1] == "deploy" && !slices.Contains(args, "--dry-run") {
				continue
			}
			if args[1] == "results" && args[2] != "ls" {
				if _, _, stderr := weft(t, &fake{}, args[1:]...); !strings.Contains(stderr, "no run is called") {
					t.Errorf("%s: stderr %q", line, stderr)
				}
				continue
			}
			if args[1] == "paper" {
				continue // its runs are real: TestPaper
			}
			if live[args[1]] {
				if _, stdout, stderr := weft(t, &fake{}, args[1:]...); !strings.Contains(stderr, "deployed") && !strings.Contains(stderr, "nothing to clean") && stdout != "[]\n" {
					t.Errorf("%s: stderr %q", line, stderr)
				}
				continue
			}
			if code, stdout, stderr := weft(t, &fake{}, args[1:]...); code != 0 || stdout == "" {
				t.Errorf("%s: code %d, %d bytes on stdout, stderr %q", line, code, len(stdout), stderr)
			}
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "completion" {
				if sub.Example == "" && sub.Name() != "help" && !sub.HasSubCommands() {
					t.Errorf("weft %s has no example", sub.Name())
				}
				walk(sub)
			}
		}
	}
	walk((&app{}).root())
	if seen < 10 {
		t.Errorf("only %d examples", seen)
	}
}

func TestCompletionForThreeShells(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, _ := weft(t, &fake{}, "completion", shell); code != 0 || !strings.Contains(stdout, "weft") {
			t.Errorf("%s: code %d, %d bytes", shell, code, len(stdout))
		}
	}
}

func TestUsageErrorsExitWith2AndRunNothing(t *testing.T) {
	t.Setenv(deploy.RootVar, filepath.Join(t.TempDir(), "state"))
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad.yaml")
	write(t, bad, "weft: 1\nname: x\nspeed: 9\ntopology: {kind: star, hosts: 4}\n")
	for _, c := range []struct{ args, says string }{
		{"explian x", "explain"},
		{"frobnicate", `unknown command "frobnicate"`},
		{"run", "requires at least 1 arg"},
		{"run --frob labs/quickstart.yaml", "unknown flag: --frob"},
		{"run labs/nothing.yaml", "no such file"},
		{"run " + folder, "is a directory"},
		{"run labs/quickstart.yaml --engine warp", "--engine warp"},
		{"run labs/quickstart.yaml --runtime podman", "docker"},
		{"run labs/quickstart.yaml --datapath kernel", "expected ingress"},
		{"run labs/quickstart.yaml --kernel plan9", "expected host or uml"},
		{"run labs/quickstart.yaml --kernel uml --engine sim", "leave --kernel away"},
		{"run labs/quickstart.yaml --kernel uml --runtime docker", "--runtime namespace runs there"},
		{"run labs/quickstart.yaml --kernel uml --out /run/results", "/run of its own"},
		{"run labs/quickstart.yaml --kernel uml --junit /dev/shm/a.xml", "/dev of its own"},
		{"bench --kernel uml --engine sim", "leave --kernel away"},
		{"clock labs/quickstart.yaml --set clocks.sync=ptp --kernel uml --engine sim", "leave --kernel away"},
		{"deploy labs/quickstart.yaml --kernel uml", "weft run --kernel uml"},
		{"run labs/quickstart.yaml --dilation 0.5", "--dilation 0.5"},
		{"run labs/quickstart.yaml --set topology.k=5", "5 is odd"},
		{"run labs/quickstart.yaml --set topology", "path=value"},
		{"run labs/quickstart.yaml " + bad, "bad.yaml:3:1: speed: "},
		{"deploy labs/quickstart.yaml --all", "unknown flag: --all"},
		{"destroy ../etc", "is not the name of a lab"},
		{"exec h0 -- true", "no lab is deployed"},
		{"link x h0-s0 sideways", "expected down, up, or set"},
		{"link x h0-s0 set delay=5", "delay: "},
		{"link x h0-s0 set loss=120%", "is not a share"},
		{"link x h0-s0 set duplicate=often", "duplicate: "},
		{"link x h0-s0 set reorder_by=-1us", "is negative"},
		{"link x h0-s0 set colour=red", "reorder_by or jitter"},
		{"node x h0 tickle", "expected kill"},
		{"node x", "expected a lab, a node"},
		{"paper pc5 --quick", "no paper is called"},
		{"paper pc4 --only P99", `no figure "P99"`},
		{"results show nothing", "`weft results ls`"},
		{"results export quickstart pods csv", "no run is called"},
		{"graph labs/quickstart.yaml --format png", "want one of"},
		{"explain", "accepts 1 arg"},
		{"version 3", `unknown command "3"`},
	} {
		f := &fake{}
		code, stdout, stderr := weft(t, f, strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(stderr, c.says) || len(f.runs) > 0 || stdout != "" {
			t.Errorf("weft %s: code %d, stderr %q, stdout %q, ran %v; want 2 and %q", c.args, code, stderr, stdout, f.runs, c.says)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestExpectationsAreCheckedBeforeAnythingRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	write(t, path, `weft: 1
name: x
topology: {kind: star, hosts: 4}
workload: [{collective: all-to-all, size: 1KB}]
expect:
  - fct.p98 < 10us
  - "flows == 10us"
  - drops == 0
  - collective.4.time < 1s
  - rtt.mean <= transport.pc4.speed
`)
	code, _, stderr := weft(t, &fake{}, "validate", path)
	if code != exitUsage {
		t.Errorf("code %d, want 2", code)
	}
	golden.File(t, "cmd/weft/testdata/expectations.golden", strings.ReplaceAll(stderr, path, "x.yaml"))
}

// What a run would refuse once it is built, validation refuses, and a sweep with one such point does not begin.
func TestBadPointsAreRefusedBeforeAnythingRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	write(t, path, "weft: 1\nname: pairs\ntopology: {kind: star, hosts: 3}\ntransport: {kind: roce}\n"+
		"workload: [{collective: incast, ranks: 2, size: 1MB}]\nsweep: {transport.roce.qps: [1, 2]}\n")
	for _, args := range [][]string{{"run", path}, {"validate", path}, {"validate", path, "--set", "transport.roce.qps=4"}} {
		f := &fake{}
		code, _, stderr := weft(t, f, args...)
		if code != 2 || len(f.runs) != 0 || !strings.Contains(stderr, "transport.roce.split: round-robin has messages take turns") {
			t.Errorf("%q: exit code %d, runs %q\n%s", args, code, f.runs, stderr)
		}
	}
	if code, out, stderr := weft(t, &fake{}, "validate", path, "--set", "transport.roce.qps=1"); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, out, stderr)
	}
}

func TestExitCodes(t *testing.T) {
	cases := []struct {
		name  string
		flags string
		then  func(*record.Summary) error
		code  int
		says  string
	}{
		{"all well", "", nil, exitOK, "engine emu: because"},
		{"failed", "", func(s *record.Summary) error {
			s.Status, s.Error = "failed", "node h3 died"
			return errors.New("node h3 died")
		}, exitFailed, "weft: quickstart: node h3 died"},
		{"nothing left", "", func(*record.Summary) error { return errNothing }, exitFailed, "no directory to write to"},
		{"wrong data", "", func(s *record.Summary) error { s.Verified = false; return nil }, exitFailed, "not verified"},
		{"missed", "", func(s *record.Summary) error {
			s.Expect = []record.Expect{{That: "drops == 0", Got: 3, Note: "3 is not == 0"}}
			return nil
		}, exitMissed, "engine emu"},
		{"degraded", "", degraded, exitOK, "engine emu"},
		{"degraded, strict", "--strict", degraded, exitMissed, "engine emu"},
		{"lab refused later", "", func(s *record.Summary) error {
			return lab.Problem{File: "labs/quickstart.yaml", Line: 3, Column: 1, Path: "topology", Message: "no route"}
		}, exitUsage, "labs/quickstart.yaml:3:1: topology: no route"},
	}
	for _, c := range cases {
		for _, asJSON := range []string{"", "--json"} {
			args := append([]string{"run", "labs/quickstart.yaml"}, strings.Fields(c.flags+" "+asJSON)...)
			code, stdout, stderr := weft(t, &fake{then: c.then}, args...)
			if code != c.code || !strings.Contains(stderr, c.says) {
				t.Errorf("%s: code %d, stderr %q; want %d and %q", c.name, code, stderr, c.code, c.says)
			}
			if asJSON == "" {
				continue
			}
			var s record.Summary
			if err := json.Unmarshal([]byte(stdout), &s); err != nil || s.Lab != "quickstart" || s.Status == "" {
				t.Errorf("%s: %q is not the JSON of one run: %v", c.name, stdout, err)
			}
		}
	}
}

func degraded(s *record.Summary) error {
	s.Fidelity = &record.Fidelity{Verdict: "degraded"}
	return nil
}

func TestInterruptedRunExitsWith130(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	f := &fake{then: func(s *record.Summary) error {
		cancel(errors.New("interrupt signal received"))
		s.Status = "interrupted"
		return context.Canceled
	}}
	var out, words strings.Builder
	a := &app{stdout: &out, stderr: &words, engine: f}
	code := a.execute(ctx, []string{"run", "labs/pc4/incast.yaml", "--engine", "emu"})
	if code != exitInterrupted || !strings.Contains(words.String(), "interrupt signal received") {
		t.Errorf("code %d, stderr %q", code, words.String())
	}
	if len(f.runs) > 2 {
		t.Errorf("%d runs were made after the interruption", len(f.runs)-1)
	}
	if !strings.Contains(out.String(), "interrupted") {
		t.Errorf("the partial result is not shown: %q", out.String())
	}
}

func TestSweepsAndSeveralLabsAreOneTable(t *testing.T) {
	f := &fake{}
	code, stdout, stderr := weft(t, f, "run", "labs/pc4/incast.yaml", "labs/smoke/star.yaml", "--engine", "sim")
	if code != 0 || len(f.runs) != 5 {
		t.Errorf("code %d, runs %v", code, f.runs)
	}
	if strings.Count(stderr, "\n") != 1 {
		t.Errorf("the choice of engine is said more than once: %q", stderr)
	}
	golden.File(t, "cmd/weft/testdata/sweep.golden", stdout)
}

func TestJSONOfASweepIsInOrder(t *testing.T) {
	_, stdout, _ := weft(t, &fake{}, "run", "labs/pc4/incast.yaml", "--engine", "sim", "--json")
	want := []float64{2, 4, 8, 16}
	for line := range strings.Lines(stdout) {
		var s record.Summary
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if len(want) == 0 || s.Point["workload.0.ranks"] != want[0] {
			t.Fatalf("got %v, want the ranks of the sweep in order: %v are left", s.Point, want)
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
}

func TestBothEnginesAreCompared(t *testing.T) {
	f := &fake{then: func(s *record.Summary) error {
		if s.Engine == "emu" {
			s.Flows.FCT.P50 = 700
		}
		return nil
	}}
	code, stdout, _ := weft(t, f, "run", "labs/quickstart.yaml", "--engine", "both")
	if code != 0 || strings.Join(f.runs, ", ") != "quickstart sim, quickstart emu" {
		t.Errorf("code %d, runs %v", code, f.runs)
	}
	golden.File(t, "cmd/weft/testdata/both.golden", stdout)
	if _, stdout, _ := weft(t, f, "run", "labs/smoke/permute.yaml", "--engine", "both"); strings.Count(stdout, "+7.7 %") != 2 {
		t.Errorf("each point of a sweep is compared: %q", stdout)
	}
}

func TestJUnit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.xml")
	f := &fake{then: degraded}
	if code, _, stderr := weft(t, f, "run", "labs/quickstart.yaml", "--strict", "--junit", path); code != exitMissed {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `failures="1"`) {
		t.Errorf("report %q, %v", text, err)
	}
}

func TestVersionAndOthersPrintJSON(t *testing.T) {
	for _, args := range [][]string{
		{"version", "--json"}, {"explain", "labs/pc4/incast.yaml", "--json"}, {"plan", "labs/smoke/star.yaml", "--json"},
		{"graph", "labs/smoke/star.yaml", "--json"}, {"validate", "labs/quickstart.yaml", "--json"}, {"schema"},
	} {
		code, stdout, stderr := weft(t, &fake{}, args...)
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("%v: code %d, stderr %q, stdout %.100q", args, code, stderr, stdout)
		}
	}
}

func TestInsideCommandsAreNotForHands(t *testing.T) {
	for _, name := range []string{"node", "fabric"} {
		code, _, stderr := weft(t, &fake{}, name, "extra")
		if code != exitUsage {
			t.Errorf("weft %s: code %d, stderr %q", name, code, stderr)
		}
	}
}
