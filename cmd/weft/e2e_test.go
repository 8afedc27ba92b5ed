package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/orchestrator/runtime/namespace"
	"weft/results/record"
	"weft/results/store"
)

// weftForReal runs a command line against the engines, and returns the directories that its runs left.
func weftForReal(t *testing.T, ctx context.Context, args ...string) (code int, dirs []string, words string) {
	t.Helper()
	root := t.TempDir()
	var out, errs strings.Builder
	code = run(ctx, append(args, "--out", root), &out, &errs)
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return code, dirs, out.String() + errs.String()
}

// summaryOf reads what the only run left.
func summaryOf(t *testing.T, dirs []string, words string) *record.Summary {
	t.Helper()
	if len(dirs) != 1 {
		t.Fatalf("%d run directories; weft said:\n%s", len(dirs), words)
	}
	s, err := store.ReadSummary(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.ReadManifest(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	if m.Status != s.Status || m.Ended == "" {
		t.Errorf("the manifest says %q, ended %q; the summary says %q", m.Status, m.Ended, s.Status)
	}
	return s
}

func wantQuickstart(t *testing.T, s *record.Summary, words string) {
	t.Helper()
	if s.Status != "ok" || !s.Verified || s.Flows.Unfinished != 0 || s.Network.Drops != 0 {
		t.Errorf("%s; weft said:\n%s", s.Status, words)
	}
	// 8 ranks send to 7 others each; the ring makes 2(n-1) steps, cut into chunks.
	if len(s.Collectives) != 2 || s.Collectives[0].Ranks != 8 || s.Collectives[1].Ranks != 16 || s.Flows.Count < 8*7+16*30 {
		t.Errorf("%d flows of %+v", s.Flows.Count, s.Collectives)
	}
	for _, c := range s.Collectives {
		if c.Checked == 0 || c.Wrong != 0 || c.BusBWGbps <= 0 || c.BusBWGbps > 100 {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
}

func TestQuickstartSimulated(t *testing.T) {
	code, dirs, words := weftForReal(t, t.Context(), "run", "labs/quickstart.yaml", "--engine", "sim")
	if code != exitOK {
		t.Errorf("code %d", code)
	}
	wantQuickstart(t, summaryOf(t, dirs, words), words)
}

// The same lab, seed and version give the same bytes.
func TestSimulationIsReproducible(t *testing.T) {
	data := func() map[string]string {
		_, dirs, words := weftForReal(t, t.Context(), "run", "labs/quickstart.yaml", "--engine", "sim", "--set", "measure.cwnd=true")
		summaryOf(t, dirs, words)
		files := map[string]string{}
		entries, err := os.ReadDir(dirs[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == store.ManifestFile || e.Name() == store.SummaryFile {
				continue // they know the wall time
			}
			text, err := os.ReadFile(filepath.Join(dirs[0], e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[e.Name()] = string(text)
		}
		return files
	}
	first, second := data(), data()
	if len(first) < 4 || len(first) != len(second) {
		t.Errorf("%d and %d data files", len(first), len(second))
	}
	for name, text := range first {
		if text != second[name] {
			t.Errorf("%s differs between two runs of the same lab", name)
		}
		if strings.Count(text, "\n") < 2 {
			t.Errorf("%s holds next to nothing: %q", name, text)
		}
	}
}

func TestIncastMeetsTheFiguresOfThePaper(t *testing.T) {
	code, dirs, words := weftForReal(t, t.Context(), "run", "labs/pc4/incast.yaml", "--engine", "sim")
	if code != exitOK || len(dirs) != 4 {
		t.Errorf("code %d, %d runs; weft said:\n%s", code, len(dirs), words)
	}
}

func TestSmokeLabsSimulated(t *testing.T) {
	smoke, err := filepath.Glob("labs/smoke/*.yaml")
	if err != nil || len(smoke) < 5 {
		t.Fatalf("%v, %v", smoke, err)
	}
	code, dirs, words := weftForReal(t, t.Context(), append([]string{"run", "--engine", "sim"}, smoke...)...)
	if code != exitOK || len(dirs) < len(smoke) {
		t.Errorf("code %d, %d runs; weft said:\n%s", code, len(dirs), words)
	}
}

// needEmulation skips a test where the machine cannot emulate.
func needEmulation(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("emulation takes seconds")
	}
	if err := namespace.Available(); err != nil {
		t.Skipf("this machine cannot emulate: %v", err)
	}
	if namespace.NeedsUserNS() {
		t.Skip("weft would go on in another process: package e2e tests that")
	}
}

// The verdict is not demanded: a test must pass on a machine that does something else as well. It is logged.
func TestPrivQuickstartEmulated(t *testing.T) {
	needEmulation(t)
	code, dirs, words := weftForReal(t, t.Context(), "run", "labs/quickstart.yaml", "--engine", "emu")
	if code != exitOK {
		t.Errorf("code %d", code)
	}
	s := summaryOf(t, dirs, words)
	wantQuickstart(t, s, words)
	if s.Fidelity == nil || s.Fidelity.BaseRTTNS <= 0 || s.Dilation < 1 || s.Runtime != "namespace" || s.Datapath != "fabric" {
		t.Errorf("%+v, fidelity %+v", s, s.Fidelity)
	} else {
		t.Logf("fidelity %+v, dilation %g, wall %.1f s", *s.Fidelity, s.Dilation, s.WallS)
	}
}

func TestPrivInterruptedEmulationKeepsItsDirectory(t *testing.T) {
	needEmulation(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	a := &app{stdout: &strings.Builder{}, stderr: cancelOnWords{cancel}, engine: orchestrated{}}
	root := t.TempDir()
	code := a.execute(ctx, []string{"run", "labs/quickstart.yaml", "--engine", "emu", "--dilation", "1000000", "--out", root})
	if code != exitInterrupted {
		t.Errorf("code %d, want %d", code, exitInterrupted)
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v, %v", dirs, err)
	}
	m, err := store.ReadManifest(dirs[0])
	if err != nil || m.Status != "interrupted" || !strings.Contains(m.Error, "enough") {
		t.Errorf("%+v, %v", m, err)
	}
}

// cancelOnWords interrupts as soon as weft has said which engine it chose.
type cancelOnWords struct{ cancel context.CancelCauseFunc }

func (c cancelOnWords) Write(p []byte) (int, error) {
	c.cancel(errors.New("that is enough"))
	return len(p), nil
}
