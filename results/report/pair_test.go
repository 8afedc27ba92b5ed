package report

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weft/results/plot"
	"weft/results/record"
	"weft/units"
)

// simulatedRun returns a simulation with one flow and its completion time in microseconds; 0 stands
// for a failed run.
func simulatedRun(transport string, seed uint64, fct float64) *Run {
	at := map[string]any{"transport.kind": transport, "seed": seed}
	s := &record.Summary{Lab: "x", Engine: "sim", Transport: transport, Seed: seed, Point: at, Status: "failed"}
	if fct > 0 {
		s.Status, s.LabTimeUS = record.OK, fct
		s.Flows = record.Flows{Count: 1, FCT: record.Quantiles{Mean: fct, P99: fct}}
		s.Network = record.Network{Retransmits: int64(fct)}
	}
	return &Run{Manifest: &record.Manifest{Lab: "x", Seed: seed, Point: at, Status: s.Status}, Summary: s}
}

// simulatedSide returns simulations of a transport, with seeds from 1 on.
func simulatedSide(transport string, fcts ...float64) Side {
	var out Side
	for i, fct := range fcts {
		out = append(out, simulatedRun(transport, uint64(i+1), fct))
	}
	return out
}

// Runs of a point are matched by seed, whatever the status of other runs.
func TestRunsAreComparedSeedBySeed(t *testing.T) {
	later := simulatedSide("pc4", 0, 0, 30, 40, 50)[2:] // seeds 3 to 5
	for _, c := range []struct {
		name         string
		a, b         Side
		seedsA       []uint64
		seedsB       []uint64
		missing      string
		incomparable bool
	}{
		{name: "all ended", a: simulatedSide("pc4", 1, 2), b: simulatedSide("pc4", 3, 4), seedsA: []uint64{1, 2}, seedsB: []uint64{1, 2}},
		{name: "two failed", a: simulatedSide("pc4", 1, 2, 3, 4), b: simulatedSide("pc4", 0, 5, 0, 6), seedsA: []uint64{2, 4}, seedsB: []uint64{2, 4},
			missing: "NEW lacks transport.kind=pc4 seed=1: failed; NEW lacks transport.kind=pc4 seed=3: failed"},
		{name: "failed on both sides", a: simulatedSide("pc4", 0, 2, 3), b: simulatedSide("pc4", 4, 5, 0), seedsA: []uint64{2}, seedsB: []uint64{2}, missing: "NEW lacks transport.kind=pc4 seed=3: failed; BASE lacks transport.kind=pc4 seed=1: failed"},
		{name: "one was not run", a: simulatedSide("pc4", 1, 2, 3), b: simulatedSide("pc4", 4, 5), seedsA: []uint64{1, 2}, seedsB: []uint64{1, 2}, missing: "NEW lacks transport.kind=pc4 seed=3: not run"},
		{name: "more seeds", a: simulatedSide("pc4", 1, 2), b: simulatedSide("pc4", 4, 5, 6), seedsA: []uint64{1, 2}, seedsB: []uint64{1, 2},
			missing: "BASE lacks transport.kind=pc4 seed=3: not run"},
		{name: "one against several", a: simulatedSide("pc4", 1), b: simulatedSide("pc4", 4, 5, 6), seedsA: []uint64{1}, seedsB: []uint64{1, 2, 3}},
		{name: "other seeds", a: simulatedSide("pc4", 1, 2), b: later, seedsA: []uint64{1, 2}, seedsB: []uint64{3, 4, 5},
			missing: "NEW lacks transport.kind=pc4 seed=1: not run; NEW lacks transport.kind=pc4 seed=2: not run; " +
				"BASE lacks transport.kind=pc4 seed=3: not run; BASE lacks transport.kind=pc4 seed=4: not run; BASE lacks transport.kind=pc4 seed=5: not run"},
		{name: "in any order", a: Side{simulatedRun("pc4", 2, 1), simulatedRun("pc4", 1, 1)}, b: simulatedSide("pc4", 4, 5), seedsA: []uint64{1, 2}, seedsB: []uint64{1, 2}},
		{name: "all failed", a: simulatedSide("pc4", 1, 2), b: simulatedSide("pc4", 0, 0), missing: "NEW lacks transport.kind=pc4 seed=1: failed; NEW lacks transport.kind=pc4 seed=2: failed", incomparable: true},
		{name: "two points of other names", a: simulatedSide("pc4", 1, 2), b: simulatedSide("roce", 3, 0), seedsA: []uint64{1}, seedsB: []uint64{1},
			missing: "NEW lacks transport.kind=pc4 : transport.kind=roce seed=2: failed"},
		{name: "its own point failed", a: simulatedSide("pc4", 1), b: append(simulatedSide("pc4", 0), simulatedSide("roce", 3)...), missing: "NEW lacks transport.kind=pc4 seed=1: failed; BASE lacks transport.kind=roce seed=1: not run", incomparable: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lacks []string
			for _, l := range Lacking(c.a, c.b) {
				lacks = append(lacks, l.String())
			}
			if got := strings.Join(lacks, "; "); got != c.missing {
				t.Errorf("missing: %q; want %q", got, c.missing)
			}
			all := pairs(c.a, c.b)
			if len(all) != 1 {
				t.Fatalf("%d points", len(all))
			}
			if c.incomparable {
				if _, err := Compare(c.a, c.b); !errors.Is(err, ErrNoCommonPoint) {
					t.Errorf("compared: %v", err)
				}
				return
			}
			seeds := func(s Side) (out []uint64) {
				for _, r := range s {
					out = append(out, r.seed())
				}
				return out
			}
			if a, b := seeds(all[0].a), seeds(all[0].b); !slices.Equal(a, c.seedsA) || !slices.Equal(b, c.seedsB) {
				t.Errorf("seeds %v and %v; want %v and %v", a, b, c.seedsA, c.seedsB)
			}
		})
	}
}

// A gate compares simulations of the same seeds exactly, with any number of seeds. More seeds never
// hide what fewer show.
func TestGateIsExact(t *testing.T) {
	for _, seeds := range []int{2, 3, 4, 5, 12} {
		var a, b Side
		for i := range seeds {
			for _, transport := range []string{"pc4", "roce", "strack"} {
				fct := 30 + float64(i)
				a = append(a, simulatedRun(transport, uint64(i+1), fct))
				if transport == "strack" {
					fct *= 4
				}
				b = append(b, simulatedRun(transport, uint64(i+1), fct))
			}
		}
		d, err := Compare(a, b)
		if err != nil {
			t.Fatal(err)
		}
		// The minimum p of the Mann-Whitney U test, adjusted for three points, is below 0.05 from
		// five seeds on.
		shows := slices.ContainsFunc(d, func(d Difference) bool { return d.Verdict == Worse })
		if shows != (seeds >= 5) || (FewSeedsWarning(d, false) == "") != shows {
			t.Errorf("%d seeds: worse beyond noise: %t, and the warning is %q", seeds, shows, FewSeedsWarning(d, false))
		}
		if strings.HasPrefix(NoneDiffers(d, ""), "too few seeds to tell: none of") == shows {
			t.Errorf("%d seeds: %q", seeds, NoneDiffers(d, ""))
		}
		if seeds == 4 && FewSeedsWarning(d, false) != "4 seeds on each side cannot show a difference at one of 3 points among 12 numbers, however large; use at least 5" {
			t.Errorf("the warning is %q", FewSeedsWarning(d, false))
		}
		Judge(d, 0.01, true)
		for _, row := range d {
			if want := strings.Contains(row.Point, "strack"); want != (row.Verdict == Worse) || FewSeedsWarning(d, true) != "" {
				t.Errorf("%d seeds: the gate says %+v, %q", seeds, row, FewSeedsWarning(d, true))
			}
		}
		for _, row := range ComparisonTable(d).Rows {
			if exact := row[5].Text == "exact"; exact != (seeds < 5 && strings.Contains(row[0].Text, "strack")) {
				t.Errorf("%d seeds: row %v", seeds, row)
			}
		}
	}
}

// A small difference in few numbers is no reason to ask for more seeds.
func TestEnoughSeeds(t *testing.T) {
	d, err := Compare(simulatedSide("pc4", 30, 31, 32, 33), simulatedSide("pc4", 31, 30, 33, 32.5))
	if err != nil {
		t.Fatal(err)
	}
	if word := FewSeedsWarning(d, false); word != "" {
		t.Errorf("for one point, where 4 seeds are enough, the warning is %q", word)
	}
}

// The command of a sweep has the dilation from the command line, and that of a run its own.
func TestCommandsKeepDilation(t *testing.T) {
	m := &record.Manifest{Run: "r", Engine: "emu", Dilation: 800, Version: "v1", Settings: []record.Setting{
		{Path: "engine.dilation", Value: "800", From: "command line: --dilation 800"}, {Path: "engine.runtime", Value: "docker", From: "command line: --runtime docker"},
	}}
	r := &Run{Manifest: m}
	if got, want := r.sweepCommand(), "weft run r/lab.yaml --engine emu --dilation 800 --runtime docker\n# weft v1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Manifest.Command = []string{"--launch", "openmpi", "--", "/root/my code/a.py"}
	if got, want := r.runCommand(), "weft run r/lab.yaml --engine emu --runtime docker --dilation 800 "+
		"--launch openmpi -- '/root/my code/a.py'\n# weft v1, seed 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.Manifest.Command = nil
	if got, want := r.runCommand(), "weft run r/lab.yaml --engine emu --runtime docker --dilation 800\n# weft v1, seed 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m.On, m.Set = "10.0.0.1:7788,10.0.0.2:7788", []string{"seed=2", "engine.machines=2"}
	if got, want := r.runCommand(), "weft run r/lab.yaml --engine emu --on 10.0.0.1:7788,10.0.0.2:7788 --secret FILE "+
		"--set seed=2 --runtime docker --dilation 800\n# weft v1, seed 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m.On, m.Set = "", nil
	m.Settings[0].From = "command line: --retry-dilation"
	if got, want := r.sweepCommand(), "weft run r/lab.yaml --engine emu --runtime docker\n# weft v1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Simulations and emulations of one directory (--engine both) are separate points; as two sides
// they can be compared.
func TestEnginesAreSeparatePoints(t *testing.T) {
	run := func(engine string, fct float64) *Run {
		r := simulatedRun("pc4", 1, fct)
		r.Summary.Engine, r.Manifest = engine, &record.Manifest{Lab: "x", Engine: engine}
		if engine == "emu" {
			r.Summary.Fidelity = &record.Fidelity{Verdict: "ok"}
		}
		return r
	}
	points := func(a, b Side) (all []string) {
		for _, p := range pairs(a, b) {
			all = append(all, p.name)
			for _, side := range []Side{p.a, p.b} {
				if len(side) > 1 {
					t.Errorf("%s: %d runs on one side", p.name, len(side))
				}
			}
		}
		return all
	}
	both := Side{run("sim", 10), run("emu", 20)}
	want := []string{"engine=emu transport.kind=pc4", "engine=sim transport.kind=pc4"}
	if got := points(both, both); !slices.Equal(got, want) {
		t.Errorf("points %q, want %q", got, want)
	}
	if got := Lacking(both, both[:1]); len(got) != 1 || got[0].String() != "NEW lacks engine=emu transport.kind=pc4 seed=1: not run" {
		t.Errorf("missing %q", got)
	}
	if got := points(both[:1], both[1:]); !slices.Equal(got, []string{"transport.kind=pc4"}) {
		t.Errorf("points %q", got)
	}
}

// Seeds that change nothing are no sample: four copies of a run are one.
func TestSeedsThatChangeNothing(t *testing.T) {
	copies := func(fct units.Time) (s Side) {
		one, err := Load(writeRun(t, 1, fct, nil))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(4) {
			r := *one
			summary := *one.Summary
			summary.Seed = seed + 1
			r.Summary = &summary
			s = append(s, &r)
		}
		return s
	}
	d, err := Compare(copies(10*us), copies(11*us))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range d {
		if row.Noise == "seeds" || row.A.N == 4 {
			t.Errorf("tested over copies: %+v", row)
		}
	}
	if word := SingleSeedWarning(d, false); !strings.Contains(word, "gave the same result") {
		t.Errorf("the warning is %q", word)
	}
}

// A gate compares the only seed of a side with the same seed of the other, although the whole sides
// differ too little for statistics.
func TestGateComparesTheSharedSeed(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Side
		want Verdict
	}{
		{"slower", simulatedSide("pc4", 100, 500), simulatedSide("pc4", 130), Worse},
		{"slower than one seed of two in BASE", simulatedSide("pc4", 100), simulatedSide("pc4", 130, 500), Worse},
		{"as fast as before", simulatedSide("pc4", 100, 500), simulatedSide("pc4", 100), Same},
		{"other seeds", simulatedSide("pc4", 100, 500), simulatedSide("pc4", 0, 0, 130)[2:], Same},
	} {
		d, err := Compare(c.a, c.b)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		Judge(d, 0.01, true)
		for _, one := range d {
			if one.Metric == "flow completion, mean" && one.Verdict != c.want {
				t.Errorf("%s: %s is %s, want %s", c.name, one.Metric, one.Verdict, c.want)
			}
		}
	}
}

// The page of a comparison draws what the labs are about first: both sides over each other, and
// what each measured over time on the same axes.
func TestComparisonDrawsWhatTheLabsAreAbout(t *testing.T) {
	a, b := loadedSide(t, 1, 10*us), loadedSide(t, 1, 40*us)
	for _, r := range append(a, b...) {
		r.Manifest.Settings = append(r.Manifest.Settings, record.Setting{Path: "report", Value: "[busbw, rates]"})
		r.Summary.Collectives[0].TimeUS = 5
	}
	all, err := besideCharts([2]*Run{a[0], b[0]}, [2]string{"x", "y"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, c.about)
	}
	if text := strings.Join(got, " "); text != "slowdown queueing queues rates cwnd clocks" {
		t.Errorf("beside each other are %s", text)
	}
	x, y := all[3].drawings[0].(Figure), all[3].drawings[1].(Figure)
	if x.X != y.X || x.Y != y.Y || x.Y.Max != 8 || x.Title != "Throughput of connections over time, A: x" {
		t.Errorf("%s has the axes %+v and %+v, and the other %+v and %+v", x.Title, x.X, x.Y, y.X, y.Y)
	}
	drawn, err := compareCharts(a, b, [2]string{"x", "y"})
	if err != nil {
		t.Fatal(err)
	}
	bars, ok := drawn[0].drawings[0].(plot.Bars)
	if !ok || bars.Title != "Bus bandwidth" || strings.Join(bars.Groups, " ") != "A: x B: y" {
		t.Errorf("the first chart is %T, of %v", drawn[0], bars.Groups)
	}
	differences, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	page, err := ComparePage("v1", [2]string{"runs/a", "runs/b"}, a, b, differences, nil)
	if err != nil || len(page.Parts[1].Pictures) != len(drawn) || len(drawn) < 8 {
		t.Errorf("the page has %d charts of %d: %v", len(page.Parts[1].Pictures), len(drawn), err)
	}
}

// Notes are about the runs that are compared, and not about others of a side.
func TestComparedRuns(t *testing.T) {
	of := func(size float64) *Run {
		r := emulated(1, nil)
		r.Summary.Point = map[string]any{"size": size}
		return r
	}
	a, b := Side{of(1), of(2), of(3)}, Side{of(2), of(4)}
	inA, inB := Compared(a, b)
	if len(inA) != 1 || inA[0] != a[1] || len(inB) != 1 || inB[0] != b[0] {
		t.Errorf("%d and %d runs, want that of size 2 of each", len(inA), len(inB))
	}
}
