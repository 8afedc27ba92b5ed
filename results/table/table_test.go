package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/results/record"
)

func simulated() *record.Summary {
	return &record.Summary{
		Run: "results/incast/20260101T000000-1", Lab: "incast", Point: map[string]any{"workload.0.ranks": 8, "seed": 2},
		Engine: "sim", Dilation: 1, Seed: 2, Transport: "pc4", Status: "ok", Verified: true,
		Flows: record.Flows{
			Count: 8, Bytes: 8_000_000, FCT: record.Quantiles{Mean: 640.25, P50: 650, P99: 661.123456, Max: 999.96},
			Slowdown: record.Quantiles{Mean: 7.9, P50: 8, P99: 8.125, Max: 8.13},
		},
		RTT: record.Quantiles{Mean: 5.8, P50: 5.9, P99: 7, Max: 1234}, BaseRTTUS: 4,
		Collectives: []record.Collective{
			{Name: "incast", Algorithm: "direct", Ranks: 8, Bytes: 1_000_000, Repeat: 1, TimeUS: 661, AlgBWGbps: 96.8,
				BusBWGbps: 96.8, Checked: 64},
			{Name: "all-reduce", Algorithm: "ring", Ranks: 16, Bytes: 262_144, Repeat: 2, TimeUS: 70.5,
				AlgBWGbps: 29.74, BusBWGbps: 55.77, Checked: 1 << 20, Wrong: 3},
		},
		Network: record.Network{Packets: 4000, DataPackets: 2000, Delivered: 4000, CEMarks: 3,
			QueueDelay: record.Quantiles{Mean: 1.9, P50: 0.0005, P99: 3, Max: 4}, MaxQueue: 65536},
		Expect: []record.Expect{{That: "fct_slowdown.p99 <= 1.05 * flows", Got: 8.125, OK: true},
			{That: "verified == true", Got: 1, OK: true}},
		LabTimeUS: 999.96, WallS: 0.35,
	}
}

func emulated() *record.Summary {
	s := simulated()
	s.Engine, s.Runtime, s.Datapath, s.Dilation = "emu", "namespace", "fabric", 2000
	s.Flows.FCT = record.Quantiles{Mean: 660, P50: 655, P99: 800, Max: 900}
	s.Network.QueueDelay.P50 = 0
	s.Fidelity = &record.Fidelity{Verdict: "degraded", LatenessP99NS: 412, BaseRTTNS: 4000, UnorderedDrops: 2,
		CPUMax: 0.913, Reasons: []string{"2 packets lost in socket buffers"}, Advice: "run it slower: --dilation 5000"}
	s.Expect[0] = record.Expect{That: "fct_slowdown.p99 <= 1.05 * flows", Got: 9.1, Note: "got 9.1, expected <= 8.4"}
	s.Warnings = []string{"one rank started late"}
	return s
}

func failed() *record.Summary {
	return &record.Summary{Lab: "quickstart", Engine: "emu", Dilation: 1, Transport: "pc4", Status: "failed",
		Error: "node h3 died: killed"}
}

// stuck began, and got nothing done.
func stuck() *record.Summary {
	s := failed()
	s.Error, s.Run = "sim: no event is left", "results/quickstart/20260101T000000-2"
	s.Flows, s.BaseRTTUS, s.WallS = record.Flows{Count: 225, Unfinished: 225}, 4, 0.1
	s.Network = record.Network{Packets: 20, DataPackets: 20, Drops: 20}
	s.Collectives = []record.Collective{{Name: "all-reduce", Algorithm: "ring", Ranks: 16, Bytes: 262_144, Repeat: 1}}
	return s
}

func TestSummaries(t *testing.T) {
	var out strings.Builder
	for _, s := range []*record.Summary{simulated(), emulated(), failed(), stuck()} {
		if err := Summary(&out, s, Style{}); err != nil {
			t.Fatal(err)
		}
		out.WriteString("----\n")
	}
	unverified := failed()
	unverified.Status, unverified.Error = record.Unverified, "1 of 24 results of ranks have wrong elements"
	if err := Summary(&out, unverified, Style{}); err != nil {
		t.Fatal(err)
	}
	if err := Points(&out, []*record.Summary{simulated(), emulated(), failed(), stuck(), unverified}, Style{}); err != nil {
		t.Fatal(err)
	}
	if err := Misses(&out, []*record.Summary{simulated(), emulated(), failed(), unverified}, Style{}); err != nil {
		t.Fatal(err)
	}
	emulatedWell := emulated()
	emulatedWell.Expect = nil
	out.WriteString("----\n")
	if err := Points(&out, []*record.Summary{emulatedWell}, Style{}); err != nil {
		t.Fatal(err)
	}
	if err := Misses(&out, []*record.Summary{emulatedWell}, Style{}); err != nil {
		t.Fatal(err)
	}
	out.WriteString("----\n")
	if err := Compare(&out, emulated(), simulated(), Style{}); err != nil {
		t.Fatal(err)
	}
	out.WriteString("----\n")
	if err := Compare(&out, simulated(), stuck(), Style{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "tables", out.String())
	if strings.Contains(out.String(), "\x1b") {
		t.Error("there is colour without its being wanted")
	}
}

// What the kernel's TCP repeated is not counted, so a summary of programs alone does not say 0.
func TestProgramsAlone(t *testing.T) {
	var out strings.Builder
	s := &record.Summary{Lab: "mine", Engine: "emu", Transport: record.Programs, Status: "ok",
		Network: record.Network{Packets: 7, Delivered: 7, Drops: 2},
		Metrics: []record.Metric{{Name: "size_bytes", Count: 2, Min: 1024, Mean: 1024, P50: 1024, Max: 1024},
			{Name: "time_us", Count: 2, P50: 1, Groups: []record.MetricGroup{{At: "size_bytes=1024", Count: 2, Min: 3, Mean: 4, P50: 3, Max: 1017}}}},
		Programs: []record.Program{{Command: "iperf3 ...", Hosts: []record.ProgramHost{{Host: "h0"}}}}}
	if err := Summary(&out, s, Style{}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "retransmits") || !strings.Contains(got, "7 packets, 0 CE marks, 2 drops, largest queue 0 B\n") {
		t.Error(got)
	} else if !strings.Contains(got, "time_us, size_bytes=1024      2      3 us      4 us      3 us  1.017 ms\n") {
		t.Error(got)
	}
	out.Reset()
	if err := Twice(&out, s, s, Style{}); err != nil || strings.Contains(out.String(), "queue_delay") {
		t.Error(err, out.String())
	}
}

// What only some runs have is said of those.
func TestLossyAndMeasuredRun(t *testing.T) {
	s := simulated()
	s.Network.Pauses, s.Network.PausedUS, s.Network.Lost, s.Network.Cut = 190, 1234.5, 7, 2
	s.Network.QueueEventDelay = &record.Quantiles{Mean: 1, P50: 2, P99: 3, Max: 4}
	s.Rates = &record.Rates{FromUS: 1000, UntilUS: 5000, Conns: 8, TotalGbps: 96, MinGbps: 11.5, MeanGbps: 12,
		MaxGbps: 12.5, Jain: 0.98765}
	var out strings.Builder
	if err := Summary(&out, s, Style{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "measured", out.String())
}

func TestColour(t *testing.T) {
	var out strings.Builder
	for _, s := range []*record.Summary{simulated(), emulated(), failed()} {
		if err := Summary(&out, s, Style{Colour: true}); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "colour", strings.ReplaceAll(out.String(), "\x1b", "ESC"))
}

func TestProgressWritesOnlyChanges(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out)
	p.Set("quickstart", 0, 200)
	p.Set("quickstart", 0, 200)
	p.Set("quickstart", 100, 200)
	p.Set("quickstart", 500, 200)
	p.Set("quickstart", 1, 0)
	p.Clear()
	p.Clear()
	want := "\r\x1b[Kquickstart [..............................]   0 %" +
		"\r\x1b[Kquickstart [###############...............]  50 %" +
		"\r\x1b[Kquickstart [##############################] 100 %\r\x1b[K"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestNoProgress(t *testing.T) {
	for _, p := range []*Progress{nil, {}} {
		p.Set("x", 1, 2)
		p.Clear()
	}
}

type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, errors.New("pipe closed")
	}
	return len(p), nil
}

func TestWriteErrorsAreReported(t *testing.T) {
	for n := range 8 {
		if err := Summary(&broken{left: n}, simulated(), Style{}); err == nil {
			t.Errorf("an error after %d writes was lost", n)
		}
	}
}

// An expectation about a word prints the word.
func TestGotOfAWord(t *testing.T) {
	if got := Got(record.Expect{That: "fidelity == ok", Word: "ok", OK: true}); got != "ok" {
		t.Errorf("got %q, want ok", got)
	}
}

// Several items have their flow completion times below those of all, told apart where they have one
// name.
func TestCompletionsByItem(t *testing.T) {
	s := simulated()
	for i := range s.Collectives {
		s.Collectives[i].Name, s.Collectives[i].FCT = "all-reduce", &record.Quantiles{Mean: 1, P50: 2, P99: 3,
			Max: float64(4 + i)}
	}
	var out strings.Builder
	if err := Summary(&out, s, Style{}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"  of all-reduce (collective.0) 1 us 2 us 3 us 4 us",
		"  of all-reduce (collective.1) 1 us 2 us 3 us 5 us"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.TrimSpace(want)) {
			t.Errorf("no line %d, %q, in\n%s", i, want, out.String())
		}
	}
}

// The numbers that move with the dilation are named if the verdicts of both runs are ok.
func TestTwiceNamesWhatTheVerdictDoesNotCover(t *testing.T) {
	first, second := simulated(), simulated()
	first.Fidelity, second.Fidelity = &record.Fidelity{Verdict: "ok"}, &record.Fidelity{Verdict: "ok"}
	first.RTT, second.RTT = record.Quantiles{Mean: 5, P99: 10, Max: 20}, record.Quantiles{Mean: 5, P99: 20, Max: 20}
	const unsure = "fidelity ok does not vouch for "
	var out strings.Builder
	if err := Twice(&out, first, second, Style{}); err != nil || !strings.Contains(out.String(), unsure+"rtt.p99 to within 5 %") ||
		strings.Contains(out.String(), "slower") {
		t.Errorf("%v, %s", err, out.String())
	}
	second.Fidelity.Verdict = "degraded"
	out.Reset()
	if err := Twice(&out, first, second, Style{}); err != nil || strings.Contains(out.String(), unsure) {
		t.Errorf("%v, %s", err, out.String())
	}
}

// One run a side does not tell what moved a number: nothing is blamed, and the reader learns how to
// find out. Runs of programs have one more reason to differ.
func TestTwiceBlamesNothingForTwoRuns(t *testing.T) {
	for _, programs := range [][]record.Program{nil, {{Command: "iperf3"}}} {
		first, second := simulated(), simulated()
		first.Programs, second.Programs = programs, programs
		var out strings.Builder
		if err := Twice(&out, first, second, Style{}); err != nil || !strings.Contains(out.String(), "does not tell how much runs vary") ||
			!strings.Contains(out.String(), "repeat --twice") || strings.Contains(out.String(), "ECMP") != (programs != nil) ||
			strings.Contains(out.String(), "machine's, and not the lab's") {
			t.Errorf("%v, %s", err, out.String())
		}
	}
}

// Beyond maxCollectives, collectives that differ in size and group share a row.
func TestCollectivesShareARow(t *testing.T) {
	s := &record.Summary{Collectives: []record.Collective{{Name: "graph", Label: "job", Algorithm: "given", Ranks: 8, Repeat: 1, TimeUS: 9}}}
	for i := range 30 {
		s.Collectives = append(s.Collectives, record.Collective{Name: "all-reduce", Label: fmt.Sprint("tp", i), Algorithm: "ring", Ranks: 8,
			Bytes: int64(1000 + i%2*1000), Repeat: 2, TimeUS: float64(1 + i), AlgBWGbps: 5, BusBWGbps: 8, Checked: 10})
	}
	if rows := joined(s.Collectives, maxCollectives); len(rows) != 2 || len(rows[1]) != 30 {
		t.Errorf("%v", rows)
	}
	if rows := joined(s.Collectives[:maxCollectives], maxCollectives); len(rows) != maxCollectives {
		t.Errorf("%v", rows)
	}
	row := Collectives(s, maxCollectives).Rows[1]
	var got []string
	for _, c := range row {
		got = append(got, c.Text)
	}
	want := "all-reduce, 30 sizes or groups|ring|8|1 KB–2 KB|60|1 us–30 us|–|5 Gb/s|8 Gb/s|300|0"
	if strings.Join(got, "|") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// A text has a colour by what it stands for: a lab, a host or a value may be called as a result is.
func TestWordsHaveNoColour(t *testing.T) {
	words := []string{"ok", "pass", "fail", "failed", "missed 1 of 2", "skipped", "running", "damaged", "unverified", "interrupted"}
	table := Table{Head: []string{"setting", "result"}}
	lab := Column{Name: "lab"}
	for _, word := range words {
		table.Texts(word, word)
		lab.Cells = append(lab.Cells, Left(word))
	}
	table.Rows[0][1].Mark, table.Rows[2][1].Mark = MarkGood, MarkBad
	st := Style{Colour: true}
	var out strings.Builder
	if err := table.Write(&out, st, ""); err != nil {
		t.Fatal(err)
	}
	want := st.paint(green, "ok") + st.paint(red, "fail")
	var got string
	for line := range strings.SplitSeq(strings.TrimRight(out.String(), "\n"), "\n") {
		if first, result, _ := strings.Cut(line, "  "); strings.Contains(result, "\x1b") && !strings.Contains(first, "\x1b") {
			got += strings.TrimSpace(result)
		}
	}
	if got != want {
		t.Errorf("%q is coloured, want %q in\n%s", got, want, out.String())
	}
	out.Reset()
	if err := Columns(&out, []Column{lab}, "", st); err != nil || strings.Count(out.String(), "\x1b") != 2 {
		t.Errorf("%v: more than the header is coloured in\n%q", err, out.String())
	}
}

// A sweep that has not ended is told as what it is: cut short, going on, or submitted and not
// collected, by the directory that weft sweep takes.
func TestUnendedSweeps(t *testing.T) {
	done := &record.Summary{Run: "r", Status: record.OK}
	left, now := &record.Summary{Status: record.Interrupted}, &record.Summary{Run: "r", Status: record.Running}
	for _, c := range []struct {
		runs            []*record.Summary
		submitted, says string
	}{
		{[]*record.Summary{done, left}, "", "did not end (it was killed): 1 of 2 points"},
		{[]*record.Summary{done, now}, "", "has not ended yet: 1 of 2 points"},
		{[]*record.Summary{done, left}, "runs/a/s", "not collected (weft sweep status runs/a/s): 1 of 2 points"},
	} {
		if got := Unended(c.runs, c.submitted); !strings.Contains(got, c.says) {
			t.Errorf("%q does not say %q", got, c.says)
		}
	}
}
