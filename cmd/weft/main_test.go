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
	"github.com/spf13/pflag"

	"weft/internal/golden"
	"weft/internal/testenv"
	"weft/orchestrator/deploy"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
	"weft/results/record"
	"weft/results/store"
)

// TestMain runs the tests in the root of the module, where the examples of help texts work. These
// tests simulate or run nothing; package e2e runs the program.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	// Without a container engine, weft clean cannot find containers of others.
	if err := os.Setenv("DOCKER_HOST", "unix:///nonexistent"); err != nil {
		panic(err)
	}
	os.Exit(testenv.Main(m.Run))
}

// tellDirectory tells go test the working directory, once: what TestMain does goes unseen, and the
// result of an earlier test would be taken from the cache although a lab or a page has changed.
var tellDirectory = sync.OnceFunc(func() { _ = os.Chdir(".") })

// fake is an engine that runs nothing and records the requested runs.
type fake struct {
	mu   sync.Mutex
	runs []string // "lab engine"
	then func(s *record.Summary) error
	noForecast
}

// noForecast is the part of an engine that forecasts nothing.
type noForecast struct{}

func (noForecast) Predict(context.Context, *experiment.Experiment, orchestrate.Options) (orchestrate.Forecast, error) {
	return orchestrate.Forecast{Engine: "emu"}, nil
}

func (f *fake) Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, strings.TrimSpace(x.Lab.Name+" "+o.Engine))
	engine := o.Engine
	if engine == "auto" {
		engine = "emu"
	}
	o.Say("engine " + engine + ": because the test says so")
	o.Progress(orchestrate.Progress{Phase: "running", Done: 1, Total: 2})
	dilation := max(1, x.Lab.Engine.Dilation)
	s := &record.Summary{
		Retry: o.Retry, Run: "runs/" + x.Lab.Name + "/20260101T000000-1", Lab: x.Lab.Name, Point: x.Lab.Point, Engine: engine, Dilation: dilation,
		Seed: x.Lab.Seed, Transport: x.Lab.Transport.Kind, Status: "ok", Verified: true,
		Flows:       record.Flows{Count: 8, Bytes: 8e6, FCT: record.Quantiles{Mean: 640, P50: 650, P99: 660, Max: 661}},
		Collectives: []record.Collective{}, Expect: []record.Expect{}, LabTimeUS: 661, WallS: 1,
	}
	if engine == "emu" {
		s.Fidelity = &record.Fidelity{Verdict: record.OK}
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

// errNothing makes the fake engine fail before it writes anything.
var errNothing = errors.New("no directory to write to")

// weft runs a command line with an engine.
func weft(t *testing.T, e series.Engine, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	tellDirectory()
	var out, words strings.Builder
	a := &app{stdout: &out, stderr: &words, engine: e, demoed: &abilities{linux: orchestrate.Linux{Runtime: "namespace"}}}
	code = a.execute(t.Context(), args)
	return code, out.String(), words.String()
}

func TestHelp(t *testing.T) {
	t.Setenv(store.RootVar, "")
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

// Every example in a help text works. Those about deployed labs fail, since there are none here;
// package e2e runs them.
func TestExamplesInHelpWork(t *testing.T) {
	t.Setenv(deploy.RootVar, filepath.Join(t.TempDir(), "state"))
	t.Setenv(store.RootVar, filepath.Join(t.TempDir(), "runs"))
	live := map[string]bool{
		"destroy": true, "exec": true, "inspect": true, "link": true, "node": true, "events": true, "capture": true,
	}
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		example := c.Example
		if c.CommandPath() == "weft image save" {
			example = "" // the test program is not static everywhere: see TestSave of nodeimg/image
		}
		if c.CommandPath() == "weft machine" {
			example = "" // it listens until it is interrupted: see TestPrivMachines of package e2e
		}
		if c.CommandPath() == "weft new cc" {
			example = "" // it writes files and builds them: see TestYourOwnCongestionControl
		}
		for line := range strings.Lines(example) {
			line = strings.TrimSpace(line)
			args := wordsIn(t.TempDir(), strings.NewReplacer("report.xml", "DIR/report.xml", "summary.md", "DIR/summary.md",
				"job/", "DIR/job/").Replace(strings.TrimPrefix(line, "sudo ")))
			if len(args) == 0 {
				continue
			}
			seen++
			if len(args) > 2 && args[1] == "deploy" { // it measures: see TestPrivDeployIsIdempotent of package e2e
				continue
			}
			deployed := live[args[1]] || slices.Contains(args, "--deployed")
			if args[1] == "view" && !deployed || args[1] == "results" && (args[2] != "ls" || slices.Contains(args, "pc4-incast")) {
				if _, _, stderr := weft(t, &fake{}, args[1:]...); !strings.Contains(stderr, "no run ") {
					t.Errorf("%s: stderr %q", line, stderr)
				}
				continue
			}
			switch args[1] {
			case "sweep": // shards are processes of the built program: see TestKilledShards of package e2e
				if args[2] == "submit" {
					continue
				}
				if args[2] == "manifest" {
					if code, stdout, stderr := weft(t, &fake{}, args[1:]...); code != 0 || !strings.Contains(stdout, "completionMode: Indexed") {
						t.Errorf("%s: code %d, stderr %q", line, code, stderr)
					}
					continue
				}
				if _, _, stderr := weft(t, &fake{}, args[1:]...); !strings.Contains(stderr, "no submitted sweep") {
					t.Errorf("%s: stderr %q", line, stderr)
				}
				continue
			case "paper":
				continue // real runs: see TestPaper
			case "demo":
				if len(args) > 2 && args[2] == "show" {
					continue // real runs: see TestShow
				}
			case "clean": // the output depends on what others left on the machine
				if code, _, stderr := weft(t, &fake{}, args[1:]...); code != 0 {
					t.Errorf("%s: code %d, stderr %q", line, code, stderr)
				}
				continue
			}
			if deployed {
				if _, stdout, stderr := weft(t, &fake{}, args[1:]...); !strings.Contains(stderr, "deployed") && stdout != "[]\n" {
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

func TestUsageErrorsExitWith2AndRunNothing(t *testing.T) {
	t.Setenv(deploy.RootVar, filepath.Join(t.TempDir(), "state"))
	t.Setenv(store.RootVar, filepath.Join(t.TempDir(), "runs"))
	folder := t.TempDir()
	write(t, filepath.Join(folder, "bad.yaml"), "weft: 1\nname: x\nspeed: 9\ntopology: {kind: star, hosts: 4}\n")
	for _, c := range []struct{ args, says string }{
		{"explian x", "explain"},
		{"frobnicate", `unknown command "frobnicate"`},
		{"results frobnicate", "expected ls, show, compare, plot or export"},
		{"run", "wrong number of arguments; expected weft run LAB... [-- CMD...]\n"},
		{"run --frob labs/quickstart.yaml", "unknown flag: --frob\n"},
		{"run labs/quickstart.yaml --engin sim", "unknown flag: --engin; did you mean --engine?\n"},
		{"run labs/quickstart.yaml --seed 3", "unknown flag: --seed; a key of the lab is changed with --set seed=...\n"},
		{"run labs/quickstart.yaml --transport roce", "with --set transport.kind=...\n"},
		{"run labs/quickstart.yaml --size 1MB", "with --set queues.trim.size=... or --set workload.0.size=...\n"},
		{"results ls --seed 3", "unknown flag: --seed\n"},
		{"run labs/apps/star.yaml --hosts h0 ping -c 3 h1", "a program and its arguments follow --, such as weft run LAB -- ping h1\n"},
		{"run labs/nothing.yaml", "no such file"},
		{"run DIR", "is a directory"},
		{"run labs/quickstart.yaml --engine warp", "--engine warp"},
		{"run labs/quickstart.yaml --runtime podman", "docker"},
		{"run labs/quickstart.yaml --datapath kernel --set queues.pfc=on", "expected off"},
		{"run labs/ccm/example-emu.yaml --datapath kernel --set queues.routing=spray", "or datapath fabric"},
		{"run labs/quickstart.yaml --kernel plan9", "expected host or uml"},
		{"run labs/quickstart.yaml --kernel uml --engine sim", "remove --kernel"},
		{"run labs/quickstart.yaml --kernel uml --runtime docker", "use --runtime namespace"},
		{"run labs/quickstart.yaml --kernel uml --out /run/x", "/run of its own"},
		{"run labs/quickstart.yaml --kernel uml --junit /dev/shm/a.xml", "/dev of its own"},
		{"bench --kernel uml --engine sim", "remove --kernel"},
		{"clock labs/quickstart.yaml --set clocks.sync=ptp --kernel uml --engine sim", "remove --kernel"},
		{"deploy labs/quickstart.yaml --kernel uml", "weft run --kernel uml"},
		{"run labs/quickstart.yaml --on swarm", "as in swarm:4"},
		{"run labs/quickstart.yaml --on slurm:1", "as in slurm:4"},
		{"run labs/quickstart.yaml --on swarm:2 --secret x", "--secret is for agents at addresses"},
		{"run labs/quickstart.yaml --on slurm:2 --image x", "expected --on swarm:N"},
		{"run labs/quickstart.yaml --image x", "expected --on swarm:N"},
		{"run labs/quickstart.yaml --secret x", "expected --on A:7788,B:7788"},
		{"run labs/quickstart.yaml --on a,b", "expected swarm:N, slurm:N or addresses with ports"},
		{"run labs/quickstart.yaml --on a:1", "at least two addresses"},
		{"run labs/quickstart.yaml --on a:1,a:1", "each agent once"},
		{"run labs/quickstart.yaml --on a:1,b:1", "expected --secret FILE"},
		{"deploy labs/quickstart.yaml --on a:1,b:1 --secret DIR/none", "openssl rand -hex 32 > "},
		{"plan labs/quickstart.yaml --on a", "expected swarm:N, slurm:N or addresses with ports"},
		{"bench --on a:1,b:1", "weft bench is for this machine; expected weft run LAB --on"},
		{"machine --listen 127.0.0.1:0", "expected --secret FILE"},
		{"run labs/quickstart.yaml --dilation 0.5", "--dilation 0.5"},
		{"run labs/quickstart.yaml --strict=invalid", "expected --strict, or --strict=degraded"},
		{"run labs/quickstart.yaml --retry-dilation --capture h0=x.pcapng", "remove one of them"},
		{"run labs/quickstart.yaml --set topology.k=5", "5 is odd"},
		{"run labs/quickstart.yaml --set topology", "path=value"},
		{"run labs/quickstart.yaml DIR/bad.yaml", "bad.yaml:3:1: speed: "},
		{"deploy labs/quickstart.yaml --all", "unknown flag: --all"},
		{"destroy ../etc", "is not the name of a lab"},
		{"exec h0 -- true", "no lab is deployed"},
		{"capture h0", "expected -w FILE"},
		{"capture h0 -w x.pcapng --count -1", "must not be negative"},
		{"link x h0-s0 sideways", "expected down, up, or set"},
		{"link x h0-s0 set delay=5", "delay: "},
		{"link x h0-s0 set loss=120%", "is not a share"},
		{"link x h0-s0 set duplicate=often", "duplicate: "},
		{"link x h0-s0 set reorder_by=-1us", "is negative"},
		{"link x h0-s0 set colour=red", "reorder_by or jitter"},
		{"node x h0 tickle", "expected kill"},
		{"node x", "expected a node"},
		{"node x y z kill", "such as: weft node h3 kill"},
		{"node --lab two one h0 kill", "--lab two and the argument one: name one lab"},
		{"node h0 kill", "no lab is deployed"},
		{"link h0-s0 down", "no lab is deployed"},
		{"link h0-s0 set loss=1%", "no lab is deployed"},
		{"results compare quickstart", "weft results compare mine --by transport.kind=roce,pc4; got 1 argument"},
		{"paper pc5 --quick", `unknown paper "pc5"; expected ccm, clocksync, pc4, strack or uec`},
		{"paper pc4 --only P99", `no figure "P99"`},
		{"results show nothing", "`weft results ls`"},
		{"results export quickstart pods csv", "no run is called"},
		{"graph labs/quickstart.yaml --format png", "want one of"},
		{"explain", "wrong number of arguments; expected weft explain LAB\n"},
		{"version 3", "expected weft version"},
	} {
		f := &fake{}
		code, stdout, stderr := weft(t, f, wordsIn(folder, c.args)...)
		if code != exitUsage || !strings.Contains(stderr, c.says) || len(f.runs) > 0 || stdout != "" {
			t.Errorf("weft %s: code %d, stderr %q, stdout %q, ran %v; want 2 and %q", c.args, code, stderr, stdout, f.runs, c.says)
		}
	}
}

// wordsIn returns the words of a command line in which DIR stands for a folder, whose name may have
// blanks.
func wordsIn(dir, line string) []string {
	words := strings.Fields(line)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "DIR", dir)
	}
	return words
}

// write writes a file.
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

// Validation finds the errors that building a run would find, and a sweep with such a point does
// not start.
func TestBadPointsFailBeforeAnythingRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	write(t, path, "weft: 1\nname: pairs\ntopology: {kind: star, hosts: 3}\ntransport: {kind: roce}\n"+
		"workload: [{collective: incast, ranks: 2, size: 1MB}]\nsweep: {transport.roce.qps: [1, 2]}\n")
	for _, args := range [][]string{{"run", path}, {"validate", path}, {"validate", path, "--set", "transport.roce.qps=4"}} {
		f := &fake{}
		code, _, stderr := weft(t, f, args...)
		if code != 2 || len(f.runs) != 0 || !strings.Contains(stderr, "transport.roce.split: round-robin lets messages take turns") {
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
		}, exitFailed, "weft: quickstart"},
		{"nothing left", "", func(*record.Summary) error { return errNothing }, exitFailed, "no directory to write to"},
		{"wrong data", "", func(s *record.Summary) error {
			s.Status, s.Error, s.Verified = record.Unverified, "1 of 8 results of ranks have wrong elements", false
			return nil
		}, exitFailed, "weft: quickstart: unverified: 1 of 8 results of ranks have wrong elements"},
		{"unfinished", "", func(s *record.Summary) error {
			s.Status, s.Error = record.Unfinished, "3 of 8 messages did not finish"
			return nil
		}, exitFailed, "weft: quickstart: unfinished: 3 of 8 messages did not finish"},
		{"missed", "", func(s *record.Summary) error {
			s.Expect = []record.Expect{{That: "drops == 0", Got: 3, Note: "got 3, expected == 0"}}
			return nil
		}, exitMissed, "engine emu"},
		{"degraded", "", degraded, exitOK, "engine emu"},
		{"degraded, strict", "--strict", degraded, exitFidelity, "weft: quickstart: the fidelity is degraded, and --strict asks for more"},
		{"degraded is enough", "--strict=degraded", degraded, exitOK, "engine emu"},
		{"invalid", "--strict=degraded", invalid, exitFidelity, "the fidelity is invalid"},
		{"degraded, strict, and missed", "--strict", missedAnd(degraded), exitFidelity, "the fidelity is degraded"},
		{"degraded and missed", "--strict=degraded", missedAnd(degraded), exitMissed, "engine emu"},
		{"invalid and missed", "", missedAnd(invalid), exitMissed, "engine emu"},
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

// The reason of a failure is printed once: in the summary, or beside the JSON.
func TestFailureIsPrintedOnce(t *testing.T) {
	failed := func(s *record.Summary) error {
		s.Status, s.Error = "failed", "link a-b is down\n  to survive it: reroute"
		return errors.New(s.Error)
	}
	_, stdout, stderr := weft(t, &fake{then: failed}, "run", "labs/quickstart.yaml")
	if strings.Count(stdout, "link a-b is down") != 1 || !strings.Contains(stdout, "\n              to survive it: reroute\n") ||
		!strings.HasSuffix(stderr, "weft: quickstart failed; see its summary\n") || strings.Contains(stderr, "link a-b") {
		t.Errorf("stdout %s\nstderr %s", stdout, stderr)
	}
	_, _, stderr = weft(t, &fake{then: failed}, "run", "labs/quickstart.yaml", "--json")
	if strings.Count(stderr, "link a-b is down") != 1 {
		t.Errorf("stderr %s", stderr)
	}
	_, stdout, stderr = weft(t, &fake{then: failed}, "run", "labs/quickstart.yaml", "labs/smoke/star.yaml")
	if strings.Count(stdout+stderr, "link a-b is down") != 1 || !strings.Contains(stdout, "quickstart and 1 more  link a-b is down\n") {
		t.Errorf("stdout %s\nstderr %s", stdout, stderr)
	}
	_, stdout, stderr = weft(t, &fake{then: func(*record.Summary) error { return errNothing }}, "run", "labs/quickstart.yaml")
	if stdout != "" || strings.Count(stderr, errNothing.Error()) != 1 {
		t.Errorf("stdout %s\nstderr %s", stdout, stderr)
	}
}

// missedAnd misses an expectation, and then changes the summary as then does.
func missedAnd(then func(*record.Summary) error) func(*record.Summary) error {
	return func(s *record.Summary) error {
		s.Expect = []record.Expect{{That: "drops == 0", Got: 3, Note: "got 3, expected == 0"}}
		return then(s)
	}
}

// invalid gives a run the fidelity invalid.
func invalid(s *record.Summary) error {
	s.Fidelity = &record.Fidelity{Verdict: "invalid", LatenessP99NS: 9000, BaseRTTNS: 30000}
	return nil
}

// A missed expectation of a simulation counts, whatever the fidelity of the emulation beside it.
func TestMissedSimulationsComeBeforeFidelity(t *testing.T) {
	for missing, want := range map[string]int{"sim": exitMissed, "emu": exitFidelity} {
		f := &fake{then: func(s *record.Summary) error {
			if s.Engine == "emu" {
				_ = degraded(s)
			}
			if s.Engine == missing {
				s.Expect = []record.Expect{{That: "drops == 0", Got: 3, Note: "got 3, expected == 0"}}
			}
			return nil
		}}
		if code, _, stderr := weft(t, f, "run", "labs/quickstart.yaml", "--engine", "both", "--strict"); code != want {
			t.Errorf("%s misses something: code %d, want %d; stderr %q", missing, code, want, stderr)
		}
	}
}

// A run that is not ok is repeated once, slower, and a message says which of the two counts.
func TestRetryAtAHigherDilation(t *testing.T) {
	first := func(s *record.Summary) bool { return s.Retry == nil }
	for name, c := range map[string]struct {
		args string
		then func(*record.Summary) error
		code int
		runs int
		says []string
	}{
		"better": {"--strict", func(s *record.Summary) error {
			if first(s) {
				return invalid(s)
			}
			s.Fidelity, s.Retry.Counts = &record.Fidelity{Verdict: "ok"}, true
			if s.Retry.Verdict != "invalid" || s.Retry.Dilation != 1 || s.Retry.Factor != 10 || s.Retry.Of == "" || s.Dilation != 10 {
				t.Errorf("%+v at %g", s.Retry, s.Dilation)
			}
			return nil
		}, exitOK, 2, []string{"fidelity invalid at dilation 1; repeating at 10, 10 times as slow: p99 lateness was 6 times the limit for ok", "counts, with fidelity ok"}},
		"worse": {"--strict=degraded", func(s *record.Summary) error {
			if first(s) {
				return degraded(s)
			}
			return invalid(s)
		}, exitOK, 2, []string{"repeating at 2, 2 times as slow", "counts, with fidelity degraded: the second run, "}},
		"failed": {"--strict=degraded", func(s *record.Summary) error {
			if first(s) {
				return degraded(s)
			}
			s.Status = record.Failed
			return errors.New("node h3 died")
		}, exitOK, 2, []string{"the second run failed: quickstart: node h3 died"}},
		"not needed": {"--strict", func(s *record.Summary) error { s.Fidelity = &record.Fidelity{Verdict: "ok"}; return nil }, exitOK, 1, nil},
		"no use": {"--strict=degraded", func(s *record.Summary) error {
			s.Fidelity = &record.Fidelity{Verdict: "degraded", UnorderedDrops: 5, ForeignDrops: 5}
			return nil
		}, exitOK, 1, []string{"fidelity degraded at dilation 1, and a higher dilation does not help"}},
		"simulated": {"--engine sim", func(*record.Summary) error { return nil }, exitOK, 1, nil},
	} {
		f := &fake{then: c.then}
		code, stdout, stderr := weft(t, f, append([]string{"run", "labs/quickstart.yaml", "--retry-dilation", "--json"}, strings.Fields(c.args)...)...)
		if code != c.code || len(f.runs) != c.runs || strings.Count(stdout, "\n") != 1 {
			t.Errorf("%s: code %d, runs %q, stderr %q", name, code, f.runs, stderr)
		}
		if name == "worse" && (strings.Contains(stdout, "--retry-dilation") || !strings.Contains(stdout, "slower still: --dilation 4")) {
			t.Errorf("%s: it advises what was tried: %s", name, stdout)
		}
		for _, words := range c.says {
			if !strings.Contains(stderr, words) {
				t.Errorf("%s: stderr %q does not say %q", name, stderr, words)
			}
		}
	}
}

// The demo repeats its emulations on a busy machine without a flag, unless the dilation is set.
func TestDemoRetries(t *testing.T) {
	for args, runs := range map[string]int{
		"": 5, "--dilation=100": 3, "--dilation=100 --retry-dilation": 5, "--retry-dilation=false": 3,
		"--engine=emu": 2, "--engine=emu --dilation=100": 1, "--engine=sim --retry-dilation=false": 1,
	} {
		f := &fake{then: func(s *record.Summary) error {
			if s.Retry == nil {
				return invalid(s)
			}
			s.Fidelity, s.Retry.Counts = &record.Fidelity{Verdict: "ok"}, true
			return nil
		}}
		if code, _, stderr := weft(t, f, append([]string{"demo"}, strings.Fields(args)...)...); code != exitOK || len(f.runs) != runs {
			t.Errorf("demo %s: code %d, runs %q, stderr %q", args, code, f.runs, stderr)
		}
	}
}

// degraded gives a run the fidelity degraded.
func degraded(s *record.Summary) error {
	s.Fidelity = &record.Fidelity{Verdict: "degraded", UnorderedDrops: 1}
	return nil
}

// Messages about common typing errors say what to type.
func TestTypingErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(deploy.RootVar, filepath.Join(t.TempDir(), "state"))
	for args, want := range map[string]string{
		"run quickstart --strict degraded": "weft: --strict degraded: write --strict=degraded, with an equals sign\n",
		"run quickstart --out=":            "weft: invalid argument \"\" for \"--out\" flag: expected a directory\nRun 'weft run --help' for usage.\n",
		"results ls --last --failed":       "weft: --last \"--failed\" is not a whole number; write --last 10, for example\nRun 'weft results ls --help' for usage.\n",
		"bench --ranks many":               "weft: --ranks \"many\" is not a whole number; write --ranks 10, for example\nRun 'weft bench --help' for usage.\n",
		"inspect one --lab two":            "weft: --lab two and the argument one: name one lab\n",
		"destroy --all --lab two":          "weft: --all and the lab two: choose one\n",
		"link --lab two h0-h1":             "weft: expected a link, and down, up, or set and a list, such as: weft link h0-edge0 set delay=5us,loss=0.1%\n",
		"link --lab two h0-h1 set dly=1us": "weft: unknown link property \"dly\"; expected rate, delay, loss, bit_errors, duplicate, reorder, reorder_by or jitter\n",
		"node two h0 stop":                 "weft: unknown action \"stop\"; expected kill, pause, resume or restart\n",
	} {
		if code, stdout, stderr := weft(t, &fake{}, strings.Fields(args)...); code != exitUsage || stdout != "" || stderr != want {
			t.Errorf("%s: code %d, stdout %q, stderr\n%q, want\n%q", args, code, stdout, stderr, want)
		}
	}
	for _, verb := range []string{"inspect", "events"} { // the lab is accepted, and does not exist
		if code, _, stderr := weft(t, &fake{}, verb, "--lab", "two"); code != exitFailed || stderr != "weft: lab two: it is not deployed\n" {
			t.Errorf("%s: code %d, %q", verb, code, stderr)
		}
	}
	if code, stdout, stderr := weft(t, &fake{}, "demo", "-q"); code != 0 || stderr != "" || stdout == "" {
		t.Errorf("demo -q: code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if _, stdout, _ := weft(t, &fake{}, "--version"); stdout != versionLine()+"\n" {
		t.Errorf("--version: %q", stdout)
	}
	if code, stdout, stderr := weft(t, &fake{}, "results", "ls", "--out", t.TempDir()); code != 0 || strings.Count(stdout, "\n") != 1 || !strings.HasPrefix(stderr, "no run to list in ") {
		t.Errorf("ls: code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// A flag whose text is empty, as from a variable that is not set, is refused in every command: no
// check that it asks for is left out in silence.
func TestEmptyFlagsAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	all := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, list := f.Value.(pflag.SliceValue); !c.Runnable() || f.Value.Type() != "string" && !list {
				return
			}
			all++
			if err := c.Flags().Set(f.Name, ""); err == nil && filled(c) == nil {
				t.Errorf("%s --%s= is accepted", c.CommandPath(), f.Name)
			}
			f.Changed = false
		})
	}
	walk((&app{}).root())
	if all < 100 {
		t.Errorf("%d flags", all)
	}
	if code, _, stderr := weft(t, &fake{}, "run", "quickstart", "--strict="); code != exitUsage ||
		!strings.HasPrefix(stderr, "weft: --strict is empty") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

// Runs that cannot be listed are an error, never an empty list; only the default directory may be
// missing.
func TestListAndShowSayWhatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(store.RootVar, "")
	for _, dir := range []string{"mine", "full/quick/1-1", "full/broken", "full/quick/1-2"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "full/quick/1-1/manifest.json", `{"format": 1, "lab": "quick", "status": "running"}`)
	write(t, "afile", "")
	// A name that leads to itself cannot be read even by root.
	if err := os.Symlink("manifest.json", "full/quick/1-2/manifest.json"); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code   int
		stderr string
	}{
		"ls":                         {exitOK, "no run to list in runs\n"},
		"ls --json":                  {exitOK, ""},
		"ls ./mine":                  {exitUsage, "weft: no run of a lab mine in runs; to list the runs in that directory: weft results ls --out ./mine\n"},
		"ls absent --json":           {exitUsage, "weft: no run of a lab absent in runs\n"},
		"ls quik --out full":         {exitUsage, "weft: no run of a lab quik in full; did you mean quick?\n"},
		"ls --out nope --json":       {exitUsage, "weft: cannot read runs: open nope: no such file or directory\n"},
		"ls quick --out afile":       {exitUsage, "weft: cannot read runs: open afile: not a directory\n"},
		"show q --out afile":         {exitUsage, "weft: cannot read runs: open afile: not a directory\n"},
		"ls --out full":              {exitFailed, "weft: stat full/quick/1-2/manifest.json: too many levels of symbolic links\n"},
		"ls quick --out full --json": {exitFailed, "weft: stat full/quick/1-2/manifest.json: too many levels of symbolic links\n"},
		"show full/quick/1-2":        {exitFailed, "weft: stat full/quick/1-2/manifest.json: too many levels of symbolic links\n"},
		"ls --last 0":                {exitUsage, "weft: -n 0: expected a number of runs, at least 1, such as -n 10; without -n (--last) all are listed\n"},
		"ls --out full --last 1":     {exitFailed, "weft: stat full/quick/1-2/manifest.json: too many levels of symbolic links\n"},
		"show broken --out full":     {exitUsage, "weft: no run is called broken; `weft results ls` lists those in full\n"},
		"ls broken --out full":       {exitUsage, "weft: no run of a lab broken in full\n"},
		"compare q q --out full/nix": {exitUsage, "weft: cannot read runs: open full/nix: no such file or directory\n"},
	} {
		code, stdout, stderr := weft(t, &fake{}, append([]string{"results"}, strings.Fields(args)...)...)
		if code != want.code || stderr != want.stderr {
			t.Errorf("%s: code %d, stderr %q, want %d, %q", args, code, stderr, want.code, want.stderr)
		}
		if listed := strings.Contains(stdout, "1-1"); listed != (code == exitFailed && args[0] == 'l') {
			t.Errorf("%s: stdout %q", args, stdout)
		}
	}
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
	if code != exitInterrupted || !strings.Contains(words.String(), "interrupt signal received") ||
		strings.Count(words.String(), "interrupted: ending the run") != 1 {
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
	if code, _, stderr := weft(t, f, "run", "labs/quickstart.yaml", "--strict", "--junit", path); code != exitFidelity {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `failures="1"`) {
		t.Errorf("report %q, %v", text, err)
	}
	// The report accepts what the exit code accepts.
	f.then = invalid
	if code, _, stderr := weft(t, f, "run", "labs/quickstart.yaml", "--junit", path); code != exitOK {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	if text, err = os.ReadFile(path); err != nil || !strings.Contains(string(text), `failures="0" skipped="1"`) {
		t.Errorf("report %q, %v", text, err)
	}
}

func TestJSONOutput(t *testing.T) {
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

func TestInsideCommandsNeedAParent(t *testing.T) {
	for _, name := range []string{"node", "fabric"} {
		code, _, stderr := weft(t, &fake{}, name, "extra")
		if code != exitUsage {
			t.Errorf("weft %s: code %d, stderr %q", name, code, stderr)
		}
	}
}

// A transport outside its conditions gives a warning with its position, and the file is ok.
func TestValidateWarnsOfUnmetConditions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roce.yaml")
	text := "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\nqueues: {pfc: off, buffer: 2MB}\ntransport: {kind: roce}\nworkload: [{collective: permute, size: 1MB}]\n"
	write(t, path, text)
	code, out, stderr := weft(t, &fake{}, "validate", path)
	if want := "warning: " + path + ":4:15: queues.pfc: roce is outside its conditions: "; code != 0 || !strings.HasPrefix(stderr, want) || !strings.Contains(out, "ok, 1 run") {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
	code, out, stderr = weft(t, &fake{}, "validate", path, "--json")
	var got []validated
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || stderr != "" || len(got) != 1 || len(got[0].Warnings) != 1 || !got[0].OK {
		t.Errorf("exit %d, %v, %s, %q", code, err, out, stderr)
	}
	if code, _, stderr = weft(t, &fake{}, "validate", path, "--set", "queues={pfc: on}"); code != 0 || stderr != "" {
		t.Errorf("with PFC: exit %d, %q", code, stderr)
	}
}

// explain shows the effective values below the settings, as text and JSON.
func TestExplainShowsEffectiveValues(t *testing.T) {
	code, out, stderr := weft(t, &fake{}, "explain", "labs/quickstart.yaml")
	said, comes, ok := strings.Cut(out, "\nEffective values:\n\n")
	if code != 0 || !ok || !strings.Contains(said, "transport.pc4.rto_min") || !strings.Contains(comes, "links.host.rate") ||
		!strings.Contains(comes, "transport.pc4.rto_min") || strings.Contains(comes, "auto    ") {
		t.Errorf("exit %d, %q\n%s", code, stderr, out)
	}
	var got explained
	code, out, _ = weft(t, &fake{}, "explain", "labs/quickstart.yaml", "--json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit %d: %v", code, err)
	}
	for _, s := range got.Effective {
		if s.Path == "transport.pc4.rto_min" && s.Value == "1ms" && s.From != "" {
			return
		}
	}
	t.Errorf("no timeout among %+v", got.Effective)
}
