package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/benchmark"
	"weft/orchestrator/experiment"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
	"weft/results/table"
)

// The output is the table of nccl-tests for each transport, one plot, and the directories of the
// runs.
func TestBench(t *testing.T) {
	out := t.TempDir()
	code, stdout, stderr := weft(t, orchestrated{}, "bench", "--collective", "all-reduce", "--transport", "pc4,roce", "--engine", "sim",
		"--ranks", "4", "-b", "8", "-e", "8K", "-f", "32", "-n", "3", "-d", "float", "--out", out)
	if code != exitOK {
		t.Fatalf("code %d\n%s\n%s", code, stdout, stderr)
	}
	for _, want := range []string{
		"all-reduce by ring, 4 ranks, transport pc4, star", "transport roce", "# 3 sizes, 8B to 8KiB; of each 1 to warm up and 3 measured iterations\n",
		"       size         count      type   redop    root     time   algbw   busbw  #wrong",
		"        8192          2048     float     sum      -1 ", "# Out of bounds values : 0 OK", "# Avg bus bandwidth", "# busbw in Gb/s        : ", "; links are of 100Gbps\n",
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

// The head of a table has notes on the network that a transport is meant for, and its end has
// conditions that do not hold.
func TestBenchNotes(t *testing.T) {
	const pfc = "queues.pfc: on, since roce is meant for networks without loss"
	for _, c := range []struct{ args, want string }{
		{"--transport pc4", ""},
		{"--transport strack", ""},
		{"--transport roce", pfc},
		{"--transport roce --set queues.pfc=off", ""},
		{"--transport roce --lab labs/quickstart.yaml", ""}, // the lab decides whether it loses packets
	} {
		args := append([]string{"--engine", "sim", "--ranks", "8", "-b", "64K", "-n", "1", "--json", "--out", t.TempDir()}, strings.Fields(c.args)...)
		_, stdout, stderr := weft(t, &fake{}, append([]string{"bench"}, args...)...)
		var j benchmark.JSON
		if err := json.Unmarshal([]byte(stdout), &j); err != nil {
			t.Fatalf("%s: %v: %s%s", c.args, err, stdout, stderr)
		}
		if all := strings.Join(j.Notes, "\n"); (all == "") != (c.want == "") || !strings.HasPrefix(all, c.want) || len(j.Notes) > 1 {
			t.Errorf("%s: %q, want %q", c.args, all, c.want)
		}
	}
	if _, stdout, _ := weft(t, orchestrated{}, "bench", "--engine", "sim", "--ranks", "2", "-b", "8", "-n", "1", "--transport", "strack",
		"--set", "transport.strack.ack_every=16KiB", "--set", "transport.strack.max_cwnd=1", "--out", t.TempDir()); !strings.Contains(stdout, "\n# warning: transport.strack.max_cwnd: ") {
		t.Errorf("the warning is not in\n%s", stdout)
	}
	if _, stdout, _ := weft(t, orchestrated{}, "bench", "--engine", "sim", "--ranks", "2", "-b", "8", "-n", "1", "--transport", "roce", "--out", t.TempDir()); !strings.Contains(stdout, "\n# note: "+pfc) {
		t.Errorf("the note is not in\n%s", stdout)
	}
}

// What a sweep's table says of its runs together is below the tables of a benchmark, once, and in
// the last object of its JSON.
func TestBenchHasTheCaveatsOfASweep(t *testing.T) {
	const idle, helped = "control: congestion control changed no window and no rate in any run of pc4, strack", "note: in runs of pc4 a controller"
	args := []string{"bench", "--engine", "sim", "--ranks", "2", "-b", "8", "-e", "64", "-f", "8", "-n", "1", "--transport", "pc4,strack"}
	_, stdout, stderr := weft(t, orchestrated{}, append(args, "--out", t.TempDir())...)
	for _, want := range []string{idle, helped} {
		if at := strings.Index(stdout, "\n# "+want); strings.Count(stdout, want) != 1 || at < strings.LastIndex(stdout, "busbw in Gb/s") {
			t.Errorf("%q is not once below the tables of\n%s%s", want, stdout, stderr)
		}
	}
	_, stdout, stderr = weft(t, orchestrated{}, append(args, "--json", "--out", t.TempDir())...)
	d := json.NewDecoder(strings.NewReader(stdout))
	var first, last benchmark.JSON
	if err := errors.Join(d.Decode(&first), d.Decode(&last)); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if len(first.Caveats) > 0 || len(last.Caveats) != 2 || !strings.HasPrefix(last.Caveats[0], idle) || !strings.HasPrefix(last.Caveats[1], helped) {
		t.Errorf("caveats %q, then %q", first.Caveats, last.Caveats)
	}
	if _, stdout, _ = weft(t, orchestrated{}, "bench", "--engine", "sim", "--ranks", "2", "-b", "8", "-n", "1", "--out", t.TempDir()); strings.Contains(stdout, "a controller") {
		t.Errorf("one transport is compared with none:\n%s", stdout)
	}
}

// A parameter of one of several transports is that one's, and one of another is refused.
func TestBenchSetsEachTransport(t *testing.T) {
	for args, refused := range map[string]bool{
		"--transport uec,strack --set transport.uec.paths=reps --set transport.strack.ack_every=4KiB": false,
		"--transport pc4,strack --set transport.strack.ack_every=4KiB --lab labs/quickstart.yaml":     false,
		"--transport pc4,strack --set transport.uec.paths=reps":                                       true,
	} {
		all := append([]string{"bench", "--engine", "sim", "--ranks", "2", "-b", "8", "-n", "1", "--out", t.TempDir()}, strings.Fields(args)...)
		code, stdout, stderr := weft(t, orchestrated{}, all...)
		if (code == exitUsage) != refused || refused != strings.Contains(stderr, "no run of this lab uses the transport uec") ||
			refused == strings.Contains(stdout, "transport strack") {
			t.Errorf("%s: code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

func TestBenchAsJSON(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "p.png")
	code, stdout, stderr := weft(t, orchestrated{}, "bench", "--lab", "labs/quickstart.yaml", "--collective", "all-gather,permute", "--engine", "sim",
		"--ranks", "4", "-b", "64K", "-n", "2", "--out", t.TempDir(), "--plot", picture, "--json")
	if code != exitOK {
		t.Fatalf("code %d\n%s\n%s", code, stdout, stderr)
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	for _, collective := range []string{"all-gather", "permute"} {
		var j benchmark.JSON
		if err := d.Decode(&j); err != nil {
			t.Fatal(err)
		}
		if j.Collective != collective || j.Status != "ok" || len(j.Rows) != 1 || !(j.Rows[0].BusBW > 0) || j.Rows[0].BusBW != *j.BusBW || math.Abs(*j.BusGbps-8**j.BusBW) > 1e-9 || !j.Rows[0].Checked {
			t.Errorf("%+v", j)
		}
	}
	if _, err := os.Stat(picture); err != nil {
		t.Error(err)
	}
}

// measureOne reports that four ranks finished one size.
func measureOne(o orchestrate.Options) {
	var parts []record.Part
	for rank := range 4 {
		parts = append(parts, record.Part{Rank: rank, End: 1_000_000, Checked: 1})
	}
	o.Parts(parts)
}

// halting is an engine that is interrupted after one size.
type halting struct {
	stop context.CancelFunc
	noForecast
}

func (h halting) Run(_ context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	measureOne(o)
	h.stop()
	return &record.Summary{Lab: x.Lab.Name, Engine: "sim", Status: "interrupted"}, context.Canceled
}

// Sizes measured before Ctrl-C are shown; nothing runs after it.
func TestBenchInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var stdout, stderr strings.Builder
	a := &app{stdout: &stdout, stderr: &stderr, engine: halting{stop: stop}}
	code := a.execute(ctx, []string{"bench", "--transport", "pc4,roce", "--engine", "sim", "--ranks", "4", "-b", "8", "-e", "16", "-f", "2",
		"-n", "1", "-w", "0", "--plot", filepath.Join(t.TempDir(), "p.svg")})
	if code != exitInterrupted || !strings.Contains(stdout.String(), "           8 ") || !strings.Contains(stdout.String(), "# 1 size not measured") ||
		strings.Contains(stdout.String(), "transport roce") {
		t.Errorf("code %d\n%s\n%s", code, stdout.String(), stderr.String())
	}
}

func TestBenchUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"-b: \"8Q\" is no size":               {"-b", "8Q"},
		"-e: ":                                {"-e", "x"},
		"bfloat16 has the same size":          {"-d", "half"},
		"run it once for each of float32":     {"-d", "all"},
		"run it once for each of sum":         {"-o", "all"},
		"same data as a sum":                  {"--op", "avg"},
		"--op \"mulsum\"":                     {"-o", "mulsum"},
		"-f -2: expected a factor":            {"-f", "-2"},
		"-n 0: expected at least 1":           {"-n", "0"},
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

// A table and its JSON report which rank has wrong data since which step, and planned corruptions
// that were never applied.
func TestBenchReportsWrongData(t *testing.T) {
	args := []string{"bench", "--engine", "sim", "--ranks", "3", "-b", "64K", "-n", "2", "--collective", "reduce", "-r", "1", "-d", "bfloat16",
		"--set", "faults=[{at: 5us, corrupt: h1}, {at: 1s, corrupt: h2}]", "--out", t.TempDir()}
	code, stdout, stderr := weft(t, orchestrated{}, args...)
	for _, want := range []string{
		"bfloat16     sum       1 ", "# Out of bounds values : 1 FAILED", "# warning: h2: 1 planned corruption not applied",
		"# warning: wrong: item 0, step 0", "# warning: faults.1 (at 1s) never happened", "rank 1 on h1: 1 of 32768 elements", "received it from rank",
	} {
		if code != exitFailed || !strings.Contains(stdout, want) {
			t.Errorf("code %d; %q is missing in\n%s\n%s", code, want, stdout, stderr)
		}
	}
	code, stdout, _ = weft(t, orchestrated{}, append(args, "--json")...)
	var j benchmark.JSON
	if err := json.Unmarshal([]byte(stdout), &j); err != nil || code != exitFailed || j.Status != record.Unverified || j.Verified || *j.Wrong != 1 ||
		len(j.Warnings) != 3 || !strings.Contains(j.Error, "results of ranks have wrong elements") {
		t.Errorf("code %d, %v, %+v", code, err, j)
	}
}

// A plot that cannot be written is an error before anything runs.
func TestBenchChecksThePlotFirst(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "")
	pipe := filepath.Join(dir, "pipe.svg")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d.svg"), 0o755), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "none", "p.svg"), filepath.Join(file, "p.svg"), filepath.Join(dir, "d.svg"), pipe} {
		ran := &fake{}
		code, _, stderr := weft(t, ran, "bench", "--out", dir, "--engine", "sim", "--plot", name)
		if code != exitUsage || !strings.Contains(stderr, "--plot "+name) || len(ran.runs) > 0 {
			t.Errorf("%s: code %d, stderr %q, %d runs", name, code, stderr, len(ran.runs))
		}
	}
}

// failing is an engine whose runs have wrong data.
type failing struct {
	err error
	noForecast
}

func (f failing) Run(_ context.Context, x *experiment.Experiment, _ orchestrate.Options) (*record.Summary, error) {
	return &record.Summary{Lab: x.Lab.Name, Status: record.Unverified, Error: "1 of 16 results of ranks have wrong elements"}, f.err
}

func TestBenchFails(t *testing.T) {
	for _, err := range []error{nil, errors.New("a node died")} {
		want := "unverified: 1 of 16 results"
		if err != nil {
			want = err.Error()
		}
		code, stdout, stderr := weft(t, failing{err: err}, "bench", "--engine", "sim", "--transport", "pc4")
		if code != exitFailed || !strings.Contains(stderr, want) || !strings.Contains(stdout, "1 size not measured") ||
			!strings.Contains(stdout, "# Out of bounds values : N/A\n# Avg bus bandwidth    : N/A") {
			t.Errorf("%v: code %d, stderr %q\n%s", err, code, stderr, stdout)
		}
	}
}

// slow is an engine with the same forecast for each run.
type slow struct {
	orchestrate.Forecast
	ran *[]string // engine and reason of each run
	mu  *sync.Mutex
}

func (s slow) Predict(context.Context, *experiment.Experiment, orchestrate.Options) (orchestrate.Forecast, error) {
	return s.Forecast, nil
}

func (s slow) Run(_ context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.ran = append(*s.ran, o.Engine+" "+o.Why)
	return &record.Summary{Lab: x.Lab.Name, Status: "ok", Verified: true}, nil
}

// If emulating all runs would take more than half a minute and simulating seconds, all are
// simulated and say so, unless emulation is requested.
func TestBenchSimulatesIfEmulationIsLong(t *testing.T) {
	short := orchestrate.Forecast{Engine: "emu", Dilation: 2000, Wall: 25 * time.Second}
	long, asked, simulated := short, short, short
	long.Wall = 30 * time.Second
	asked.Asked, asked.Wall = true, time.Hour
	simulated.Engine = "sim"
	const why = "sim emulating 3 runs at dilation 2000 takes about 90 s, and simulating about 1 s; weft COMMAND emulates"
	for _, c := range []struct {
		name string
		of   orchestrate.Forecast
		args []string
		want string // engine and reason of each run
	}{
		{"half a minute in all", orchestrate.Forecast{Engine: "emu", Wall: 10 * time.Second}, nil, "auto "},
		{"more", long, nil, why},
		{"--engine emu", long, []string{"--engine", "emu"}, "emu "},
		{"--engine sim", long, []string{"--engine", "sim"}, "sim "},
		{"by other settings", asked, nil, "auto "},
		{"simulated anyhow", simulated, nil, "auto "},
		{"not known", orchestrate.Forecast{Engine: "emu"}, nil, "auto "},
	} {
		var ran []string
		args := append([]string{"bench", "--ranks", "4", "-b", "8", "--transport", "pc4,strack,roce", "--out", t.TempDir()}, c.args...)
		weft(t, slow{c.of, &ran, new(sync.Mutex)}, args...)
		for i := range ran {
			ran[i] = strings.Replace(ran[i], strings.Join(args, " ")+" --engine emu", "COMMAND", 1)
		}
		if len(ran) != 3 || ran[0] != c.want || ran[1] != c.want || ran[2] != c.want {
			t.Errorf("%s: %q, want %q", c.name, ran, c.want)
		}
	}
}

// emulating is an engine whose runs measure one size, with a fidelity.
type emulating struct {
	fidelity *record.Fidelity
	noForecast
}

func (e emulating) Run(_ context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	measureOne(o)
	return &record.Summary{Run: "a-run", Lab: x.Lab.Name, Transport: x.Lab.Transport.Kind, Engine: "emu", Status: record.OK, Verified: true,
		Fidelity: e.fidelity}, nil
}

// The table, its JSON and the plot of an emulation say how far to trust its numbers, in the words
// of weft run: what an invalid fidelity means, the reasons, and the advice.
func TestBenchTellsFidelity(t *testing.T) {
	const reason, advice = "the fabric stood for 2 s", "do not use these times; run it slower"
	judged := func(verdict string) *record.Fidelity {
		return &record.Fidelity{Verdict: verdict, BaseRTTNS: 1000, LatenessP99NS: 300, Reasons: []string{reason}, Advice: advice}
	}
	var glyphs []int // of each plot
	for _, c := range []struct {
		fidelity *record.Fidelity
		doubt    string // of table, caveats and plot
		head     string
		doubts   bool // whether reasons and advice are there
	}{
		{&record.Fidelity{Verdict: record.OK, BaseRTTNS: 1000, LatenessP99NS: 3}, "", ", fidelity ok, seed", false},
		{judged(record.Degraded), "fidelity degraded (pc4, roce)", ", fidelity degraded, seed", true},
		{judged(record.Invalid), "fidelity invalid; do not use its numbers (pc4, roce)", ", fidelity invalid; do not use its numbers, seed", true},
		{nil, "fidelity unjudged (pc4, roce)", ", fidelity unjudged, seed", false},
	} {
		picture := filepath.Join(t.TempDir(), "p.svg")
		args := []string{"bench", "--engine", "emu", "--ranks", "4", "-b", "8", "-n", "1", "-w", "0", "--transport", "pc4,roce", "--plot", picture}
		_, stdout, stderr := weft(t, emulating{fidelity: c.fidelity}, args...)
		if strings.Count(stdout, c.head) != 2 || strings.Contains(stdout, "\n# "+c.doubt+"\n") != (c.doubt != "") {
			t.Errorf("%q, %q: the tables are\n%s%s", c.head, c.doubt, stdout, stderr)
		}
		for _, want := range []string{"\n# fidelity: ", "\n# reason: " + reason + "\n", "\n# advice: " + advice + "\n"} {
			if got := strings.Count(stdout, want); got != 2 && c.doubts || got > 0 && !c.doubts {
				t.Errorf("%s: %q is there %d times in\n%s", c.head, want, got, stdout)
			}
		}
		drawn, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		glyphs = append(glyphs, strings.Count(string(drawn), "<use "))
		if more, want := glyphs[len(glyphs)-1]-glyphs[0], len(strings.ReplaceAll("; "+c.doubt, " ", "")); c.doubt != "" && more != want {
			t.Errorf("%s: the plot has %d glyphs more than that of an ok run, want %d", c.head, more, want)
		}
		_, stdout, _ = weft(t, emulating{fidelity: c.fidelity}, append(args, "--json")...)
		var last benchmark.JSON
		for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
			last = benchmark.JSON{}
			if err := d.Decode(&last); err != nil {
				t.Fatal(err)
			}
			if (len(last.Doubts) == 3) != c.doubts {
				t.Errorf("%s: JSON has doubts %q", c.head, last.Doubts)
			}
		}
		if c.doubt != "" && (len(last.Caveats) == 0 || last.Caveats[0] != c.doubt) || last.Fidelity == "" {
			t.Errorf("%s: JSON has fidelity %q, caveats %q", c.head, last.Fidelity, last.Caveats)
		}
	}
	if got := colourVerdict(" 0 OK\n", table.Style{Colour: true}, &record.Summary{Status: record.OK, Fidelity: judged(record.Invalid)}); got != " 0 OK\n" {
		t.Errorf("an invalid run has %q", got)
	}
}

// Expectations, which a benchmark does not judge, are listed.
func TestBenchListsExpectations(t *testing.T) {
	const line = "fct.p99 < 1ns when seed == 1"
	own := filepath.Join(t.TempDir(), "lab.yaml")
	write(t, own, "weft: 1\nname: own\ntopology: {kind: star, hosts: 4}\nexpect: ["+line+"]\n")
	for _, more := range [][]string{{"--set", "expect=[" + line + "]"}, {"--lab", own}, {"--lab", own, "--set", "expect.0=" + line}} {
		args := append([]string{"bench", "--engine", "sim", "--ranks", "2", "-b", "8", "-n", "1", "--out", t.TempDir()}, more...)
		code, stdout, stderr := weft(t, orchestrated{}, args...)
		if code != exitOK || strings.Count(stdout, "\n# skipped: "+line+"; weft bench judges no expectations\n") != 1 {
			t.Errorf("%v: code %d\n%s%s", more, code, stdout, stderr)
		}
		_, stdout, _ = weft(t, orchestrated{}, append(args, "--json")...)
		var j benchmark.JSON
		if err := json.Unmarshal([]byte(stdout), &j); err != nil || len(j.Skipped) != 1 {
			t.Errorf("%v: %v, skipped %q", more, err, j.Skipped)
		}
	}
}

// The verdict of a table has colours on terminals only.
func TestBenchVerdictHasColours(t *testing.T) {
	text := "# Out of bounds values : 0 OK\n# Out of bounds values : 3 FAILED\n"
	if got := colourVerdict(text, table.Style{}, nil); got != text {
		t.Errorf("without colours: %q", got)
	}
	want := "# Out of bounds values : 0 \x1b[32mOK\x1b[0m\n# Out of bounds values : 3 \x1b[31mFAILED\x1b[0m\n"
	if got := colourVerdict(text, table.Style{Colour: true}, &record.Summary{}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
