package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/orchestrator/experiment"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
)

// demoEngine keeps how each run of weft demo was asked for: engine, datapath, runtime and size.
type demoEngine struct {
	fake
	asked []string
}

func (e *demoEngine) Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	s, err := e.fake.Run(ctx, x, o)
	words := []string{o.Engine, x.Lab.Engine.Datapath, x.Lab.Engine.Runtime, x.Lab.Workload[0].Size.String()}
	e.asked = append(e.asked, strings.Join(words, " "))
	if s != nil {
		s.Datapath = x.Lab.Engine.Datapath
	}
	return s, err
}

// The demo runs one lab in every way that the machine can, and says of the others what is missing.
// What fails in one way leaves the others out of nothing, and decides the exit code.
func TestDemoWays(t *testing.T) {
	namespaces := orchestrate.Linux{Runtime: "namespace"}
	lacks := orchestrate.Linux{Err: errors.New("no netem: apt-get install linux-modules-extra")}
	failing := func(datapath string) func(s *record.Summary) error {
		return func(s *record.Summary) error {
			if s.Dilation > 1 == (datapath != "sim") {
				s.Status = record.Failed
				return errors.New("no luck")
			}
			return nil
		}
	}
	missing := func(s *record.Summary) error {
		s.Expect = []record.Expect{{That: "drops == 0", Got: 3}}
		return nil
	}
	const sim, fabric, linux = "sim fabric auto 4MB", "emu fabric namespace 4MB", "emu kernel namespace 4MB"
	for _, c := range []struct {
		name, args string
		can        abilities
		then       func(s *record.Summary) error
		code       int
		runs       []string
		says, not  []string // on standard output
	}{
		{"all", "", abilities{linux: namespaces}, nil, exitOK, []string{sim, fabric, linux},
			[]string{"simulator", "modelled fabric", "Linux, namespaces", "runs/quickstart/20260101T000000-1\n"},
			[]string{"did not run"}},
		{"containers", "", abilities{linux: orchestrate.Linux{Runtime: "docker"}}, nil, exitOK,
			[]string{sim, fabric, "emu kernel docker 4MB"}, []string{"Linux, containers"}, []string{"did not run"}},
		{"no Linux", "", abilities{linux: lacks}, nil, exitOK, []string{sim, fabric},
			[]string{"did not run: no netem:", "apt-get"}, nil},
		{"no emulation", "", abilities{errors.New("no namespaces"), lacks}, nil, exitOK, []string{sim},
			[]string{"did not run: no namespaces", "did not run: no netem:"}, nil},
		{"sim fails", "--dilation 100", abilities{linux: namespaces}, failing("sim"), exitFailed,
			[]string{sim, fabric, linux}, []string{"failed"}, nil},
		{"emulations fail", "--dilation 100", abilities{linux: namespaces}, failing("emu"), exitFailed,
			[]string{sim, fabric, linux}, []string{"failed"}, nil},
		{"expectations missed", "", abilities{linux: lacks}, missing, exitMissed, []string{sim, fabric},
			[]string{"missed drops == 0", "missed 1 of 1"}, nil},
		{"other size", "--set workload.0.size=1MB", abilities{linux: lacks}, nil, exitOK,
			[]string{"sim fabric auto 1MB", "emu fabric namespace 1MB"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &demoEngine{fake: fake{then: c.then}}
			var out, words strings.Builder
			a := &app{stdout: &out, stderr: &words, engine: e, demoed: &c.can}
			args := append([]string{"demo", "--out", t.TempDir()}, strings.Fields(c.args)...)
			if code := a.execute(t.Context(), args); code != c.code || !slices.Equal(e.asked, c.runs) {
				t.Errorf("code %d, ways %q, want %d, %q\n%s%s", code, e.asked, c.code, c.runs, &out, &words)
			}
			for _, text := range c.says {
				if !strings.Contains(strings.Join(strings.Fields(out.String()), " ")+"\n", strings.TrimSpace(text)) {
					t.Errorf("%s does not say %q", &out, text)
				}
			}
			for _, text := range c.not {
				if strings.Contains(out.String(), text) {
					t.Errorf("%s says %q", &out, text)
				}
			}
		})
	}
	var out, words strings.Builder
	a := &app{stdout: &out, stderr: &words, engine: &fake{}, demoed: &abilities{linux: lacks}}
	if code := a.execute(t.Context(), []string{"demo", "--json", "-q", "--out", t.TempDir()}); code != exitOK ||
		strings.Count(out.String(), "\n") != 2 || words.String() != "Linux: did not run: no netem: apt-get install linux-modules-extra\n" {
		t.Errorf("--json without Linux: code %d, %s%s", code, &out, &words)
	}
	if code, _, stderr := weft(t, &fake{}, "demo", "--set", "sweep.seed=[1, 2]"); code != exitUsage || !strings.Contains(stderr, "use weft run quickstart") {
		t.Errorf("a sweep: code %d, %s", code, stderr)
	}
	code, stdout, stderr := weft(t, &fake{}, "demo", "--json", "--out", t.TempDir())
	if code != exitOK || strings.Count(stdout, "\n") != 3 || strings.Count(stdout, `"lab":"quickstart"`) != 3 {
		t.Errorf("--json: code %d, %s%s", code, stdout, stderr)
	}
}

// Under User Mode Linux the workload is smaller, in all ways, and that is said. The summary comes
// from the weft in there, as does the exit code.
func TestDemoUnderUML(t *testing.T) {
	for code, want := range map[int]int{exitOK: exitOK, exitMissed: exitMissed, exitFailed: exitFailed} {
		e := &demoEngine{}
		var out, words strings.Builder
		var booted []string
		dir := t.TempDir()
		a := &app{stdout: &out, stderr: &words, engine: e, boot: func(_ context.Context, args []string, to io.Writer) (int, error) {
			booted = args
			s := &record.Summary{Run: filepath.Join(dir, "inside"), Lab: demoLab, Engine: "emu", Status: record.OK,
				Fidelity: &record.Fidelity{Verdict: record.OK}, Dilation: 66_000}
			return code, json.NewEncoder(to).Encode(s)
		}, demoed: &abilities{linux: orchestrate.Linux{Runtime: "namespace", UML: true, Why: "no RED"}}}
		got := a.execute(t.Context(), []string{"demo", "--out", dir, "--set", "workload.1.size=64KB"})
		line := strings.Join(booted, " ")
		if got != want || !slices.Equal(e.asked, []string{"sim fabric auto 128KB", "emu fabric namespace 128KB"}) ||
			!strings.HasPrefix(line, "run quickstart --json --kernel uml --out "+dir+" --engine emu --datapath kernel") ||
			!strings.Contains(line, "--set workload.0.size=128KB ") || !strings.Contains(line, "--set workload.1.size=64KB") {
			t.Errorf("code %d, want %d, ways %q, booted %q\n%s", got, want, e.asked, line, &words)
		}
		for _, text := range []string{"User Mode Linux", "66,000", "smaller workload", "--set workload.0.size=128KB", "no RED", "inside"} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s does not say %q", &out, text)
			}
		}
	}
}

// An interruption ends the demo: what follows is not run, and what ended is shown.
func TestDemoInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	e := &demoEngine{fake: fake{then: func(s *record.Summary) error {
		if s.Engine == "emu" {
			interrupt(errors.New("interrupted"))
			s.Status = record.Interrupted
			return ctx.Err()
		}
		return nil
	}}}
	var out, words strings.Builder
	a := &app{stdout: &out, stderr: &words, engine: e, demoed: &abilities{linux: orchestrate.Linux{Runtime: "namespace"}}}
	code := a.execute(ctx, []string{"demo", "--out", t.TempDir()})
	if code != exitInterrupted || len(e.asked) != 2 || !strings.Contains(out.String(), "did not run: interrupted") ||
		!strings.Contains(words.String(), "everything was torn down") {
		t.Errorf("code %d, ways %q\n%s%s", code, e.asked, &out, &words)
	}
}

// The demo shows the port of tc.txt, and says where the whole switch is.
func TestSwitchState(t *testing.T) {
	dir := t.TempDir()
	if text, err := switchState(dir); text != "" || err != nil {
		t.Errorf("without the file: %q, %v", text, err)
	}
	path := filepath.Join(dir, orchestrate.TCFile)
	write(t, path, "edge0 at 1us\n\nedge0$ tc\nqdisc htb\n\nedge0$ tc all\nqdisc noqueue\n")
	want := "\nedge0 at 1us\n\nedge0$ tc\nqdisc htb\nall ports: " + path + "\n"
	if text, err := switchState(dir); text != want || err != nil {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if text, err := switchState(dir); err == nil {
		t.Errorf("of a directory: %q", text)
	}
}
