package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weft/results/expect"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
	"weft/results/table"
	"weft/units"
)

const us = units.Microsecond

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// writeRun writes a run directory with rows in every file that charts use, and returns its path.
// change, if not nil, changes the summary first.
func writeRun(t testing.TB, seed uint64, fct units.Time, change func(*record.Summary)) string {
	t.Helper()
	r, err := store.Open(store.Options{
		Root: t.TempDir(), Now: newYear, LabText: []byte("weft: 1\nname: x # <script>alert(1)</script>\n"),
		Manifest: record.Manifest{
			Lab: "x", Seed: seed, Engine: "sim", Version: "v1", Dilation: 1, Point: map[string]any{"transport.kind": "pc4", "workload.0.ranks": 4},
			Set: []string{"topology.mtu=1 KB"},
			Settings: []record.Setting{
				{Path: "about", Value: `a "quoted" <lab>`, From: "line 2"}, {Path: "measure.queues", Value: "1us"}, {Path: "measure.rates", Value: "1us"},
				{Path: "topology.mtu", Value: "1 KB", From: "command line: --set topology.mtu=1KB"},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := stats.NewDist()
	var flows []record.Flow
	for i := range 200 {
		flows = append(flows, record.Flow{Src: "h0", Dst: "h1", Conn: uint32(i % 9), Message: uint32(i), Size: 4096, Finished: true, FCT: fct + units.Time(i*i%977)*us/10, Ideal: 5 * us})
		d.Record(units.Time(i) * us / 10)
	}
	keep := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	keep(r.Flows(flows))
	keep(r.Histogram(store.QueueDelayFile, d))
	for i := range 300 {
		at := units.Time(i) * us
		keep(r.Queue(record.Queue{At: at, Port: "s->h" + string(rune('0'+i%9)), Queued: units.Bytes(i * 10)}))
		keep(r.Window(record.Window{At: at, Conn: uint32(i % 9), Window: units.Bytes(4096 + i)}))
		keep(r.Rate(record.Rate{At: at + us, Conn: uint32(i % 2), Bytes: 1000, Rate: 8 * units.Gbps}))
		keep(r.Clock(record.Clock{At: at, Host: "h" + string(rune('0'+i%3)), Error: units.Time(i-150) * units.Nanosecond, State: "locked"}))
	}
	s := &record.Summary{
		Lab: "x", Point: map[string]any{"transport.kind": "pc4", "workload.0.ranks": 4}, Engine: "sim", Seed: seed, Transport: "pc4", Status: "ok", Verified: true, Dilation: 1, LabTimeUS: 300,
		Flows:       record.Flows{Count: 200, Bytes: 200 * 4096, FCT: record.Quantiles{Mean: fct.Microseconds(), P99: fct.Microseconds() + 95, Max: 200}, Slowdown: record.Quantiles{P99: 30}},
		RTT:         record.Quantiles{Mean: 6, Max: 9},
		Network:     record.Network{Delivered: 200, QueueDelay: record.Quantiles{P99: 19}, MaxQueue: 3000},
		Collectives: []record.Collective{{Name: "incast", Algorithm: "direct", Ranks: 4, BusBWGbps: 90}},
		Expect:      []record.Expect{{That: "drops == 0 <b>", OK: true}, {That: "flows == 1", Got: 200, Note: "got 200, expected == 1"}},
	}
	if change != nil {
		change(s)
	}
	keep(r.Finish(newYear.Add(time.Second), s))
	return r.Dir()
}

// renderPage returns the report of a run directory as HTML.
func renderPage(t testing.TB, dir string) string {
	t.Helper()
	r, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Page([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportHasEverything(t *testing.T) {
	text := renderPage(t, writeRun(t, 1, 10*us, nil))
	for _, want := range []string{
		"missed 1 of 2 expectations", "drops == 0 &lt;b&gt;", "got 200, expected == 1", "Flow completion times", "Queues over time", "Throughput of connections",
		"Congestion windows", "Errors of clocks", "Time in switch queues", "data:image/svg+xml;base64,", "&lt;script&gt;", "How to run it again",
		"--set &#39;topology.mtu=1 KB&#39; --set transport.kind=pc4 --set workload.0.ranks=4", "v1, seed 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the report", want)
		}
	}
	for _, bad := range []string{"<script", "http://www.w3.org/1999/xlink", "src=\"http", "@import", "NaN"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the report", bad)
		}
	}
	if n := strings.Count(text, "<figure>"); n != 8 {
		t.Errorf("%d figures", n)
	}
}

func TestVerdicts(t *testing.T) {
	for want, change := range map[string]func(*record.Summary){
		"ok, data verified, every expectation met": func(s *record.Summary) { s.Expect = s.Expect[:1] },
		"ok, data verified</span>":                 func(s *record.Summary) { s.Expect = nil },
		"unverified: 1 of 8 results of ranks have wrong elements": func(s *record.Summary) {
			s.Status, s.Error, s.Verified = record.Unverified, "1 of 8 results of ranks have wrong elements", false
		},
		"199 of 200": func(s *record.Summary) {
			s.Status, s.Error, s.Flows.Unfinished = record.Unfinished, "1 of 200 messages did not finish", 1
		},
		"fidelity degraded": func(s *record.Summary) {
			s.Expect, s.Fidelity = nil, &record.Fidelity{Verdict: "degraded", Reasons: []string{"late by 3 us"}}
		},
		"fidelity invalid: do not use these numbers": func(s *record.Summary) {
			s.Expect, s.Fidelity = s.Expect[:1], &record.Fidelity{Verdict: "invalid", Reasons: []string{"late by 30 us"}}
		},
		"failed: node h3 died": func(s *record.Summary) { s.Status, s.Error = "failed", "node h3 died" },
	} {
		if text := renderPage(t, writeRun(t, 1, 10*us, change)); !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

// The page tells how each program ended and what it printed; the verdict is that of the programs.
func TestReportOfPrograms(t *testing.T) {
	text := renderPage(t, writeRun(t, 1, 10*us, func(s *record.Summary) {
		s.Programs = []record.Program{{Command: "python3 <train.py>", Hosts: []record.ProgramHost{
			{Host: "h0", WallS: 1.5, TimeUS: 1500, CPUS: 0.75, BusyS: 1, WaitS: 0.25, Lines: 12345},
			{Host: "h1", Exit: 137, Signal: "SIGKILL", WallS: 0.1},
		}}}
		s.Metrics = []record.Metric{{Name: "time_us", Count: 2, Min: 1, Mean: 2, P50: 2, Max: 98765}}
		s.Fidelity = &record.Fidelity{Verdict: "invalid", Reasons: []string{"programs waited"}}
	}))
	for _, want := range []string{"fidelity invalid", "<h2>Programs", "python3 &lt;train.py&gt;", "exit 0", "SIGKILL", "1.5 ms", "750 ms", "25 %",
		"12,345", "Above 5 % the fidelity is degraded, above 20 % invalid", "time_us", "98.7"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the report", want)
		}
	}
	if strings.Contains(renderPage(t, writeRun(t, 1, 10*us, nil)), "<h2>Programs") {
		t.Error("a run without programs has a part about them")
	}
}

// A run in which programs alone sent is not named after a transport, and has no numbers of it that
// nobody measured.
func TestReportOfProgramsAlone(t *testing.T) {
	dir := writeRun(t, 1, 10*us, func(s *record.Summary) {
		s.Transport, s.Flows, s.Programs = record.Programs, record.Flows{}, []record.Program{{Command: "ping"}}
	})
	r, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Manifest.Point = nil
	r.Manifest.Settings = append(r.Manifest.Settings, record.Setting{Path: "transport.kind", Value: "pc4"}, record.Setting{Path: "workload.0.program.0", Value: "ping"})
	if got := r.title(); got != "x: programs" {
		t.Errorf("it is titled %q", got)
	}
	text := renderPage(t, dir)
	for _, bad := range []string{"retransmits", ">queueing<"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the report", bad)
		}
	}
	if !strings.Contains(renderPage(t, writeRun(t, 1, 10*us, nil)), ">queueing<") {
		t.Error("a run with a transport has no queueing delays")
	}
}

// What programs printed is compared by its medians, those of lines with the same sizes.
func TestCompareMetrics(t *testing.T) {
	side := func(median, small float64) Side {
		return Side{{Manifest: &record.Manifest{}, Summary: &record.Summary{Engine: "emu", Status: record.OK, Metrics: []record.Metric{
			{Name: "loss_ms", Count: 3, P50: median},
			{Name: "time_us", Count: 3, P50: 50, Groups: []record.MetricGroup{{At: "size_bytes=1024", P50: small}, {At: "size_bytes=4096", P50: 50}}},
		}}}}
	}
	b := side(3, 40)
	b[0].Summary.Metrics[1].Groups[1].At = "size_bytes=8192" // of one side only
	all, err := Compare(side(2, 80), b)
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	for i, d := range all[2:] { // neither is dropped
		if row := ComparisonTable(all).Rows[i+2]; d.Verdict != Unmeasured || row[2+(1-i)].Text != "–" || row[7].Text != string(Unmeasured) {
			t.Errorf("of one side only: %+v, %q", d, row)
		}
	}
	for i, want := range []Difference{{Metric: "loss_ms, median", Change: 0.5}, {Metric: "time_us, size_bytes=1024, median", Change: -0.5}} {
		if got := all[i]; got.Metric != want.Metric || got.Change != want.Change || got.Unit != "us" || got.Verdict != Unknown {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if all[0].A.Mean != 2000 {
		t.Errorf("2 ms are %v us", all[0].A.Mean)
	}
}

// A run with neither summary nor data has a report with the reason.
func TestReportOfKilledRun(t *testing.T) {
	r, err := store.Open(store.Options{Root: t.TempDir(), Now: newYear, Manifest: record.Manifest{Lab: "x", Engine: "emu", Dilation: 2000}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Abandon(newYear, errors.New("node h3 died")); err != nil {
		t.Fatal(err)
	}
	if text := renderPage(t, r.Dir()); !strings.Contains(text, "node h3 died") || !strings.Contains(text, "--dilation 2000") {
		t.Error(text)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty directory was loaded")
	}
}

func TestSameRunSameFigures(t *testing.T) {
	draw := func() string {
		r, err := Load(writeRun(t, 1, 10*us, nil))
		if err != nil {
			t.Fatal(err)
		}
		figures, err := r.Figures()
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range figures {
			svg, err := f.SVG()
			if err != nil {
				t.Fatal(err)
			}
			d := xml.NewDecoder(bytes.NewReader(svg))
			for err == nil {
				_, err = d.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", f.Name, err)
			}
			all.Write(svg)
		}
		return all.String()
	}
	if first, second := draw(), draw(); first != second {
		t.Error("two drawings of the same data differ")
	}
}

// loadedSide returns n runs with seeds from 1 on.
func loadedSide(t *testing.T, n int, fct units.Time) Side {
	t.Helper()
	var out Side
	for seed := range n {
		r, err := Load(writeRun(t, uint64(seed+1), fct+units.Time(seed)*us/5, nil))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// differingMetrics returns the names of the metrics that differ beyond noise.
func differingMetrics(all []Difference) string {
	var out []string
	for _, d := range all {
		if d.Beyond {
			out = append(out, d.Metric)
		}
	}
	return strings.Join(out, "; ")
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Side
		want string
	}{
		{"seeds, equal", loadedSide(t, 5, 10*us), loadedSide(t, 5, 10*us), ""},
		{"seeds, apart", loadedSide(t, 5, 10*us), loadedSide(t, 5, 40*us), "flow completion, mean; flow completion, p99"},
		{"too few seeds to tell", loadedSide(t, 3, 10*us), loadedSide(t, 3, 40*us), ""},
		{"one and several", loadedSide(t, 1, 40*us), loadedSide(t, 4, 10*us), "flow completion, mean; flow completion, p99"},
		{"one run, little apart", loadedSide(t, 1, 10*us), loadedSide(t, 1, 11*us), ""},
		{"one run, far apart", loadedSide(t, 1, 10*us), loadedSide(t, 1, 400*us), "flow completion, mean; flow completion, p99; slowdown, p99"},
	} {
		d, err := Compare(c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		if got := differingMetrics(d); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
		for _, row := range d { // the printed p decides
			if tested := row.Noise == "seeds" || row.Noise == "flows"; tested && row.Beyond != (row.Adjusted < 0.05) || row.Adjusted < row.P {
				t.Errorf("%s: %+v", c.name, row)
			}
		}
		if (SingleSeedWarning(d, false) != "") != (len(c.a) == 1 && len(c.b) == 1) {
			t.Errorf("%s: the single seed warning is %q", c.name, SingleSeedWarning(d, false))
		}
		for _, row := range d {
			if c.name == "seeds, apart" && row.Beyond != (row.Verdict == Worse) || c.name == "one and several" && row.Beyond != (row.Verdict == Better) {
				t.Errorf("%s: %+v", c.name, row)
			}
		}
		if (FewSeedsWarning(d, false) != "") != (c.name == "too few seeds to tell") {
			t.Errorf("%s: the few seeds warning is %q", c.name, FewSeedsWarning(d, false))
		}
		if listed := ComparisonTable(d); len(listed.Rows) != len(d) || len(listed.Rows[0]) != len(listed.Head) {
			t.Errorf("%s: table %v", c.name, listed)
		}
	}
	if _, err := Compare(loadedSide(t, 1, us), Side{{Summary: nil}}); err == nil {
		t.Error("no error without a common point")
	}
}

// Four seeds show nothing in 11 numbers if the sides of only 6 do not overlap. The warning says so.
func TestFewSeedsForTheNumbersThatDiffer(t *testing.T) {
	var all []Difference
	for i := range 11 {
		d := Difference{A: stats.Interval{Mean: 1, N: 4}, B: stats.Interval{Mean: 2, N: 4}, Noise: "seeds", P: 0.4}
		if i < 6 {
			d.P = stats.MannWhitney([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8})
		}
		all = append(all, d)
	}
	got := FewSeedsWarning(all, false)
	if !strings.Contains(got, "fewer than 7 of 11 numbers") || !strings.HasSuffix(got, "only 6 do not overlap (--all); use at least 5") {
		t.Errorf("%q", got)
	}
	all[6].P = all[0].P
	if got := FewSeedsWarning(all, false); got != "" {
		t.Errorf("7 of 11: %q", got)
	}
}

func TestJudge(t *testing.T) {
	is := func(a, b, sign float64, change func(*Difference)) Difference {
		d := Difference{A: stats.Interval{Mean: a}, B: stats.Interval{Mean: b}, Noise: "none", Beyond: a != b,
			of: metric{Number: record.Number{Worse: int(sign)}}, exact: true}
		if a != 0 {
			d.Change = b/a - 1
		}
		if change != nil {
			change(&d)
		}
		return d
	}
	within := func(d *Difference) { d.Noise, d.Beyond = "flows", false }
	for _, c := range []struct {
		d         Difference
		tolerance float64
		exact     bool
		want      Verdict
	}{
		{is(10, 10, 1, nil), 0, true, Same},
		{is(10, 11, 1, nil), 0.05, true, Worse},
		{is(10, 11, 1, nil), 0.15, true, Same},
		{is(10, 9, 1, nil), 0.05, true, Better},
		{is(10, 9, -1, nil), 0.05, true, Worse},
		{is(10, 11, 0, nil), 0.05, true, Differs},
		{is(0, 1, 1, nil), 10, true, Worse}, // there is no share of 0
		{is(1, 0, 1, nil), 0.05, true, Better},
		{is(10, 11, 1, within), 0.05, true, Worse},
		{is(10, 11, 1, within), 0, false, Same},
		{is(10, 11, 1, func(d *Difference) { d.Noise, d.Beyond, d.exact = "unknown", false, false }), 0, true, Unknown},
		{is(10, 11, 1, func(d *Difference) { d.Noise, d.Beyond, d.exact = "seeds", false, false }), 0, true, Same},
	} {
		all := []Difference{c.d}
		Judge(all, c.tolerance, c.exact)
		if all[0].Verdict != c.want {
			t.Errorf("%+v, tolerance %g, exact %t: %s, want %s", c.d, c.tolerance, c.exact, all[0].Verdict, c.want)
		}
	}
}

func sweepPoints() []expect.Point {
	var out []expect.Point
	for _, kind := range []string{"pc4", "roce"} {
		for i, size := range []string{"64KB", "1MB"} {
			for _, seed := range []string{"1", "2"} {
				s := &record.Summary{Status: "ok", RTT: record.Quantiles{Mean: float64(6 + i*len(kind) + len(seed)), Max: 9}, Flows: record.Flows{Count: 1, FCT: record.Quantiles{P99: 10}}}
				if seed == "2" {
					s.RTT.Mean++
				}
				out = append(out, expect.Point{At: map[string]string{"transport.kind": kind, "workload.0.size": size, "seed": seed}, Summary: s})
			}
		}
	}
	return out
}

func TestSweepPlots(t *testing.T) {
	x, by, ok := chooseAxes(sweepPoints())
	if x != "workload.0.size" || len(by) != 1 || by[0] != "transport.kind" || !ok {
		t.Errorf("%s by %v", x, by)
	}
	d, err := SweepPlot{Title: "RTT", X: x, Y: "rtt.mean", By: by, Log: "xy", Reference: []plot.Series{{Name: "paper", X: []float64{64e3}, Y: []float64{4}}}}.Draw(sweepPoints())
	if err != nil {
		t.Fatal(err)
	}
	c := d.(plot.Chart)
	if len(c.Series) != 3 || c.Series[0].Name != "pc4" || c.Series[0].X[1] != 1e6 || c.Series[0].Y[0] != 7.5 || c.X.Unit != "B" || c.X.Scale != plot.Log10 {
		t.Errorf("%+v", c)
	}
	if half := c.Series[0].High[0] - 7.5; math.Abs(half-12.706*0.5) > 0.01 { // Student's t, one degree of freedom
		t.Errorf("half of the interval is %v", half)
	}
	bars, err := SweepPlot{Title: "RTT", X: "transport.kind", Y: "rtt.mean", By: []string{"workload.0.size"}}.Draw(sweepPoints())
	if err != nil || len(bars.(plot.Bars).Groups) != 2 || len(bars.(plot.Bars).Series) != 2 || bars.(plot.Bars).Colors != nil {
		t.Errorf("%+v, %v", bars, err)
	}
	bars, err = SweepPlot{Title: "RTT", X: "transport.kind", Y: "rtt.mean"}.Draw(sweepPoints())
	if err != nil || !slices.Equal(bars.(plot.Bars).Colors, []int{1, 2}) { // those of pc4 and roce in all charts
		t.Errorf("%+v, %v", bars, err)
	}
	svg, err := bars.SVG()
	if err != nil || !strings.Contains(string(svg), `fill="#0072b2"`) || !strings.Contains(string(svg), `fill="#d55e00"`) {
		t.Errorf("%v in\n%s", err, svg)
	}
	if _, err := (SweepPlot{X: x, Y: "goodput"}).Draw(sweepPoints()); !errors.Is(err, plot.ErrEmpty) {
		t.Errorf("what was not measured: %v", err)
	}
	if _, err := (SweepPlot{X: x, Y: "goodpot"}).Draw(sweepPoints()); err == nil || errors.Is(err, plot.ErrEmpty) {
		t.Errorf("what is nothing: %v", err)
	}
	for _, o := range overviewPlots(sweepPoints()) {
		if _, err := o.Draw(sweepPoints()); err != nil && !errors.Is(err, plot.ErrEmpty) {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	points, _ := pointTable([]*record.Summary{{Run: "runs/x/20260101T000000-4", Point: map[string]any{"seed": 1}, Status: "ok"}, {Status: "failed"}},
		func(string) bool { return true })
	last := len(points.Head) - 1
	if len(points.Rows) != 2 || points.Head[1] != "seed" || points.Rows[1][last-1].Text != "failed" {
		t.Errorf("%v", points)
	}
	if run, watch := points.Rows[0][0], points.Rows[0][last]; run.Link != "../20260101T000000-4/report.html" ||
		watch.Link != "../20260101T000000-4/view.html" || run.Text != "4" || points.Rows[1][0].Link != "" {
		t.Errorf("links %v and %v", run, watch)
	}
}

// BenchmarkReportOfTenMillionFlows measures time and memory; the goals are 10 s and 1 GB.
func BenchmarkReportOfTenMillionFlows(b *testing.B) {
	r, err := store.Open(store.Options{Root: b.TempDir(), Now: newYear, Manifest: record.Manifest{Lab: "large", Engine: "sim"}})
	if err != nil {
		b.Fatal(err)
	}
	rows := make([]record.Flow, 10_000)
	for k := range 1000 {
		for i := range rows {
			rows[i] = record.Flow{Src: "h1", Dst: "h2", Conn: uint32(i), Size: 4096, Finished: true, FCT: units.Time(5_000_000 + (k*10_000+i)*7919%1_000_003), Ideal: 4 * us}
		}
		if err := r.Flows(rows); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Finish(newYear, &record.Summary{Lab: "large", Status: "ok", Flows: record.Flows{Count: 10_000_000}}); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	for b.Loop() {
		start := time.Now()
		if text := renderPage(b, r.Dir()); !strings.Contains(text, "Flow completion times") {
			b.Fatal("no chart")
		}
		b.ReportMetric(time.Since(start).Seconds(), "report-s")
	}
	b.ReportMetric(peakMemory()/1e6, "peak-MB")
}

// peakMemory returns the peak resident memory of this process, in bytes.
func peakMemory() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return math.NaN()
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb := 0.0
	for _, c := range strings.Fields(rest)[0] {
		kb = kb*10 + float64(c-'0')
	}
	return kb * 1024
}

// A sweep whose paths change together is drawn over the kind alone. Whiskers are measured values.
func TestAxesOfDependentPaths(t *testing.T) {
	var points []expect.Point
	for kind, pfc := range map[string]string{"pc4": "off", "roce": "on"} {
		for i, p99 := range []float64{1, 2, 90} {
			points = append(points, expect.Point{
				At:      map[string]string{"queues.pfc": pfc, "transport.kind": kind, "seed": strconv.Itoa(i)},
				Summary: &record.Summary{Status: "ok", Flows: record.Flows{Count: 1, FCT: record.Quantiles{P99: p99}}},
			})
		}
	}
	if x, by, ok := chooseAxes(points); !ok || x != "transport.kind" || len(by) != 0 {
		t.Errorf("%s by %q", x, by)
	}
	for _, o := range overviewPlots(points)[:1] {
		d, err := o.Draw(points)
		if err != nil {
			t.Fatal(err)
		}
		b := d.(plot.Bars)
		if len(b.Series) != 1 || b.Series[0].Low[0] != 1 || b.Series[0].High[0] != 90 || !strings.Contains(b.Caption, "the minimum and the maximum") {
			t.Errorf("%+v", b)
		}
	}
}

// The class of a cell is that of the result it stands for, whatever the words of the table are.
func TestWordsOfTablesHaveNoClass(t *testing.T) {
	t1 := table.Table{Head: []string{"setting", "result"}}
	t1.Add(table.Left("missed"), table.Result("ok", record.Good))
	t1.Add(table.Left("ok"), table.Result("fail", record.Bad))
	t1.Texts("fail", "ok")
	var out strings.Builder
	p := Page{Parts: []Part{{Heading: "x", Tables: []table.Table{t1}}}}
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	for cell, n := range map[string]int{
		`<td class="met">ok</td>`: 1, `<td class="missed">fail</td>`: 1, `<td class="">ok</td>`: 2, `<td class="">missed</td>`: 1, `<td class="">fail</td>`: 1,
	} {
		if got := strings.Count(out.String(), cell); got != n {
			t.Errorf("%s: %d, want %d", cell, got, n)
		}
	}
}
