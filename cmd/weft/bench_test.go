package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
)

// with executes a command line with an engine.
func with(t *testing.T, e engine, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, words strings.Builder
	a := &app{stdout: &out, stderr: &words, engine: e}
	code = a.execute(t.Context(), args)
	return code, out.String(), words.String()
}

// The table of nccl-tests for each transport, one picture, and the run directories.
func TestBench(t *testing.T) {
	out := t.TempDir()
	code, stdout, stderr := with(t, orchestrated{}, "bench", "--collective", "all-reduce", "--transport", "pc4,roce", "--engine", "sim",
		"--ranks", "4", "-b", "8", "-e", "8K", "-f", "32", "-n", "3", "-d", "float", "--out", out)
	if code != exitOK {
		t.Fatalf("code %d\n%s\n%s", code, stdout, stderr)
	}
	for _, want := range []string{
		"all-reduce by ring, 4 ranks, transport pc4, star", "transport roce", "3 measured",
		"       size         count      type   redop    root     time   algbw   busbw  #wrong",
		"        8192          2048     float     sum      -1 ", "# Out of bounds values : 0 OK", "# Avg bus bandwidth",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	runs, _ := filepath.Glob(filepath.Join(out, "bench", "*", "summary.json"))
	pictures, _ := filepath.Glob(filepath.Join(out, "bench", "*-busbw.svg"))
	if len(runs) != 2 || len(pictures) != 1 || !strings.Contains(stderr, pictures[0]) {
		t.Errorf("runs %v, pictures %v\n%s", runs, pictures, stderr)
	}
}

func TestBenchAsJSON(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "p.png")
	code, stdout, stderr := with(t, orchestrated{}, "bench", "--lab", "labs/quickstart.yaml", "--collective", "all-gather,permute", "--engine", "sim",
		"--ranks", "4", "-b", "64K", "-n", "2", "--out", t.TempDir(), "--plot", picture, "--json")
	if code != exitOK {
		t.Fatalf("code %d\n%s\n%s", code, stdout, stderr)
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	for _, collective := range []string{"all-gather", "permute"} {
		var j benchJSON
		if err := d.Decode(&j); err != nil {
			t.Fatal(err)
		}
		if j.Collective != collective || j.Status != "ok" || len(j.Rows) != 1 || !(j.Rows[0].BusBW > 0) || j.Rows[0].BusBW != j.BusBW || !j.Rows[0].Checked {
			t.Errorf("%+v", j)
		}
	}
	if _, err := os.Stat(picture); err != nil {
		t.Error(err)
	}
}

// halting is an engine that is interrupted when one size is done.
type halting struct{ stop context.CancelFunc }

func (h halting) Run(_ context.Context, l *lab.Lab, o orchestrate.Options) (*record.Summary, error) {
	var parts []record.Part
	for rank := range 4 {
		parts = append(parts, record.Part{Rank: rank, End: 1_000_000, Checked: 1})
	}
	o.Parts(parts)
	h.stop()
	return &record.Summary{Lab: l.Name, Engine: "sim", Status: "interrupted"}, context.Canceled
}

// What was measured before Ctrl-C is shown; nothing is run after it.
func TestBenchInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var stdout, stderr strings.Builder
	a := &app{stdout: &stdout, stderr: &stderr, engine: halting{stop}}
	code := a.execute(ctx, []string{"bench", "--transport", "pc4,roce", "--engine", "sim", "--ranks", "4", "-b", "8", "-e", "16", "-f", "2",
		"-n", "1", "-w", "0", "--plot", filepath.Join(t.TempDir(), "p.svg")})
	if code != exitInterrupted || !strings.Contains(stdout.String(), "           8 ") || !strings.Contains(stdout.String(), "# 1 sizes were not measured") ||
		strings.Contains(stdout.String(), "transport roce") {
		t.Errorf("code %d\n%s\n%s", code, stdout.String(), stderr.String())
	}
}

func TestBenchMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"-b: \"8Q\" is no size":               {"-b", "8Q"},
		"-e: ":                                {"-e", "x"},
		"bfloat16 is as long":                 {"-d", "half"},
		"call it once for each of float32":    {"-d", "all"},
		"call it once for each of sum":        {"-o", "all"},
		"an average is a sum":                 {"--op", "avg"},
		"--op \"mulsum\"":                     {"-o", "mulsum"},
		"-f -2; expected 2 or more":           {"-f", "-2"},
		"-n 0; expected at least 1":           {"-n", "0"},
		"the first size is 0; at least 1":     {"-b", "0"},
		"root 8; expected a rank from 0 to 7": {"-r", "8", "--collective", "reduce"},
		"no such file or directory":           {"--plot", "/no/where/p.svg"},
		"--engine both":                       {"--engine", "both"},
		"ends in .svg or .png":                {"--plot", "x.gif"},
		"topology \"ring\" is not one of":     {"--topology", "ring"},
		"collective \"gossip\" is not known":  {"--collective", "gossip"},
		"no such file":                        {"--lab", "none.yaml"},
		"1 ranks; at least 2":                 {"--ranks", "1"},
		"transport.kind":                      {"--transport", "tcp"},
		"the first size, 1KiB, is above the ": {"-b", "1K", "-e", "8"},
	} {
		code, _, stderr := weft(t, &fake{}, append([]string{"bench", "--out", t.TempDir()}, args...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d, stderr %q, want %q", args, code, stderr, want)
		}
	}
	swept := filepath.Join(t.TempDir(), "lab.yaml")
	write(t, swept, "weft: 1\nname: swept\ntopology: {kind: star, hosts: 4}\nsweep: {seed: [1, 2]}\n")
	code, _, stderr := weft(t, &fake{}, "bench", "--lab", swept, "--transport", "pc4")
	if code != exitUsage || !strings.Contains(stderr, "sweeps over 2 runs; choose one with --set") {
		t.Errorf("a sweep: code %d, stderr %q", code, stderr)
	}
}

// A table says which rank's data is wrong since which step, and what was to be wrong and is not; so does its JSON.
func TestBenchSaysWhatIsWrong(t *testing.T) {
	args := []string{"bench", "--engine", "sim", "--ranks", "3", "-b", "64K", "-n", "2", "--collective", "reduce", "-r", "1", "-d", "bfloat16",
		"--set", "faults=[{at: 5us, corrupt: h1}, {at: 1s, corrupt: h2}]", "--out", t.TempDir()}
	code, stdout, stderr := with(t, orchestrated{}, args...)
	for _, want := range []string{
		"bfloat16     sum       1 ", "# Out of bounds values : 1 FAILED", "# warning: h2: 1 bytes that were to be wrong are not",
		"# warning: wrong: item 0, step 0", "rank 1 on h1: 1 of 32768 elements", "received it from rank",
	} {
		if code != exitFailed || !strings.Contains(stdout, want) {
			t.Errorf("code %d; %q is missing in\n%s\n%s", code, want, stdout, stderr)
		}
	}
	code, stdout, _ = with(t, orchestrated{}, append(args, "--json")...)
	var j benchJSON
	if err := json.Unmarshal([]byte(stdout), &j); err != nil || code != exitFailed || j.Status != "failed" || j.Verified || j.Wrong != 1 ||
		len(j.Warnings) != 2 || !strings.Contains(j.Error, "not verified") {
		t.Errorf("code %d, %v, %+v", code, err, j)
	}
}

// A picture that could not be written is refused before anything is run.
func TestBenchPictureIsCheckedFirst(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "")
	if err := os.Mkdir(filepath.Join(dir, "d.svg"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "none", "p.svg"), filepath.Join(file, "p.svg"), filepath.Join(dir, "d.svg")} {
		ran := &fake{}
		code, _, stderr := weft(t, ran, "bench", "--out", dir, "--engine", "sim", "--plot", name)
		if code != exitUsage || !strings.Contains(stderr, "--plot "+name) || len(ran.runs) > 0 {
			t.Errorf("%s: code %d, stderr %q, %d runs", name, code, stderr, len(ran.runs))
		}
	}
	if err := checkPicture(filepath.Join(dir, "p.svg")); err != nil {
		t.Error(err)
	}
}

// failing is an engine whose data is wrong.
type failing struct{ err error }

func (f failing) Run(_ context.Context, l *lab.Lab, _ orchestrate.Options) (*record.Summary, error) {
	return &record.Summary{Lab: l.Name, Status: "ok"}, f.err
}

func TestBenchThatFails(t *testing.T) {
	for _, err := range []error{nil, errors.New("a node died")} {
		want := "not verified"
		if err != nil {
			want = err.Error()
		}
		code, stdout, stderr := with(t, failing{err}, "bench", "--engine", "sim", "--transport", "pc4")
		if code != exitFailed || !strings.Contains(stderr, want) || !strings.Contains(stdout, "1 sizes were not measured") ||
			!strings.Contains(stdout, "# Out of bounds values : N/A\n# Avg bus bandwidth    : N/A") {
			t.Errorf("%v: code %d, stderr %q\n%s", err, code, stderr, stdout)
		}
	}
}
