package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/results/expect"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/table"
)

// A number that runs of a side lack is not judged by the others as if they were all, whatever
// number it is and why it has no value: it is told how many lack it on which side, and a gate does
// not pass what more runs of NEW than of BASE lack.
func TestComparisonsCountRunsWithoutANumber(t *testing.T) {
	printed := func(v float64) []record.Metric { return []record.Metric{{Name: "lat_us", Count: 3, P50: v}} }
	kinds := []struct {
		name string
		set  func(s *record.Summary, v float64)
		lose func(s *record.Summary)
	}{
		{"clocks converged after", func(s *record.Summary, v float64) { s.Clocks = record.Clocks{Samples: 9, ConvergedUS: &v} },
			func(s *record.Summary) { s.Clocks.ConvergedUS = nil }},
		{"lat_us, median", func(s *record.Summary, v float64) { s.Metrics = printed(v) },
			func(s *record.Summary) { s.Metrics, s.Programs = nil, []record.Program{{}} }},
		{"lat_us, median", func(s *record.Summary, v float64) { s.Metrics = printed(v) },
			func(s *record.Summary) { s.Metrics[0].NonFinite = 1 }},
		{"lat_us, size_bytes=1, median", func(s *record.Summary, v float64) {
			s.Metrics = printed(v)
			s.Metrics[0].Groups = []record.MetricGroup{{At: "size_bytes=1", P50: v}, {At: "size_bytes=2", P50: 1}}
		}, func(s *record.Summary) { s.Metrics[0].Groups = s.Metrics[0].Groups[1:] }},
		{"all-reduce, busbw", func(s *record.Summary, v float64) { s.Collectives[0].BusBWGbps = 200 - v },
			func(s *record.Summary) { s.Collectives[0].BusBWGbps = 0 }},
	}
	for _, kind := range kinds {
		for _, c := range []struct {
			lackA, lackB []uint64
			shift        float64 // of B
			verdict      Verdict
			lost, passes bool
		}{
			{nil, nil, 0, Same, false, true},
			{nil, []uint64{1}, 0, Unknown, true, false}, // the first run of a side tells what there is
			{nil, []uint64{3}, 0, Unknown, true, false},
			{nil, []uint64{3}, -80, Unknown, true, false}, // the others are better
			{nil, []uint64{3}, 80, Worse, false, false},
			{[]uint64{3}, []uint64{3}, 0, Same, false, true},
			{[]uint64{3}, []uint64{3}, -80, Better, false, true},
			{[]uint64{3}, []uint64{3, 4}, 0, Unknown, true, false},
			{[]uint64{3}, []uint64{4}, 0, Unknown, false, true},  // the others of B are smaller
			{[]uint64{4}, []uint64{3}, 0, Unknown, false, false}, // and larger
			{[]uint64{3}, nil, -80, Unknown, false, true},
			{[]uint64{3}, nil, 80, Worse, false, false},
			{nil, []uint64{1, 2, 3, 4, 5, 6}, 0, Unmeasured, false, false},
		} {
			side := func(lack []uint64, shift float64) (s Side) {
				for seed := range uint64(6) {
					s = append(s, emulated(seed+1, func(s *record.Summary) {
						kind.set(s, 100+float64(seed)+shift)
						if slices.Contains(lack, seed+1) {
							kind.lose(s)
						}
					}))
				}
				return s
			}
			a, b := side(c.lackA, 0), side(c.lackB, c.shift)
			d, err := Compare(a, b)
			if err != nil {
				t.Fatal(err)
			}
			Judge(d, 0.001, true)
			name := fmt.Sprintf("%s, without it %v and %v, shifted by %v", kind.name, c.lackA, c.lackB, c.shift)
			i := slices.IndexFunc(d, func(d Difference) bool { return d.Metric == kind.name })
			if i < 0 {
				t.Errorf("%s: it is not compared", name)
				continue
			}
			got := d[i]
			if got.LackA != len(c.lackA) || got.LackB != len(c.lackB) || got.Verdict != c.verdict || got.Lost != c.lost {
				t.Errorf("%s: %+v, want %s, lost %t", name, got, c.verdict, c.lost)
			}
			row := strings.Join(table.Strings(ComparisonTable(d[i : i+1]).Rows[0]), " ")
			for lack, says := range map[int]string{len(c.lackA): "6 runs of A", len(c.lackB): "6 runs of B"} {
				if lack > 0 && c.verdict != Unmeasured && !strings.Contains(row, fmt.Sprintf("%d of %s without it", lack, says)) {
					t.Errorf("%s: %q", name, row)
				}
			}
			partly := c.verdict == Unknown
			if note := LackNote(d); strings.Contains(note, kind.name) != partly {
				t.Errorf("%s: %q", name, note)
			}
			comparison := NewComparison(a, b, d)
			if (Gate{Tolerance: "0.1%"}).Judge(comparison); (len(comparison.Fails) == 0) != c.passes {
				t.Errorf("%s: the gate fails with %q", name, comparison.Fails)
			}
			if c.lost {
				Gate{Tolerance: "0.1%", Accept: map[string]bool{UnjudgedKind: true}}.Judge(comparison)
				if len(comparison.Fails) > 0 && kind.name != "lat_us, median" { // fewer values are worse
					t.Errorf("%s, accepted: the gate fails with %q", name, comparison.Fails)
				}
			}
		}
	}
}

// What programs printed is compared whatever its sign: only what is 0 everywhere tells nothing.
// Fewer values than before are worse, whatever their median.
func TestPrintedNumbersOfAnySignAreCompared(t *testing.T) {
	for _, c := range []struct {
		a, b           float64
		countA, countB int
		want           string
	}{
		{0, 0, 3, 3, ""},
		{5, 5, 3, 3, "off_us, median +0 same"},
		{0, -5, 3, 3, "off_us, median +0 better"},
		{-5, 0, 3, 3, "off_us, median +1 worse"},
		{-5, -10, 3, 3, "off_us, median -1 better"},
		{-10, -5, 3, 3, "off_us, median +0.5 worse"},
		{5, 10, 3, 3, "off_us, median +1 worse"},
		{5, 5, 3, 1, "off_us, median +0 same; off_us, values -0.667 worse"},
		{0, 0, 1, 3, "off_us, values +2 better"},
	} {
		side := func(v float64, count int) (s Side) {
			for seed := range uint64(5) {
				s = append(s, emulated(seed+1, func(s *record.Summary) {
					s.Metrics = []record.Metric{{Name: "off_us", Count: count, P50: v}}
				}))
			}
			return s
		}
		d, err := Compare(side(c.a, c.countA), side(c.b, c.countB))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range d {
			if strings.HasPrefix(d[i].Metric, "off_us") {
				got = append(got, fmt.Sprintf("%s %+.3g %s", d[i].Metric, d[i].Change, d[i].Verdict))
			}
		}
		// A seed with 0 on both sides hides no other.
		x, y := side(c.a, c.countA), side(c.b, c.countB)
		x[0].Summary.Metrics[0].P50, y[0].Summary.Metrics[0].P50 = 0, 0
		mixed, err := Compare(x, y)
		if err != nil {
			t.Fatal(err)
		}
		named := slices.ContainsFunc(mixed, func(d Difference) bool { return d.Metric == "off_us, median" })
		if named != (c.a != 0 || c.b != 0) {
			t.Errorf("%v and %v, and 0 for one seed: compared %t", c.a, c.b, named)
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%v (%d) and %v (%d): %q, want %q", c.a, c.countA, c.b, c.countB, text, c.want)
		}
	}
}

// Simulations of several seeds are one run only if they are the same in all that is compared,
// clocks included.
func TestSeedsThatDifferInClocksAloneAreSeveralRuns(t *testing.T) {
	side := func(never uint64) (s Side) {
		for seed := range uint64(5) {
			s = append(s, emulated(seed+1, func(s *record.Summary) {
				v := 100.0
				s.Clocks.Samples = 9
				if s.Engine, s.Fidelity = "sim", nil; s.Seed != never {
					s.Clocks.ConvergedUS = &v
				}
			}))
		}
		return s
	}
	d, err := Compare(side(0), side(3))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(d, func(d Difference) bool { return d.Metric == "clocks converged after" })
	if i < 0 || d[i].LackB != 1 {
		t.Errorf("%+v", d)
	}
}

// A chart of a sweep says how many runs its means leave out, lines and bars. Points that no run
// measured are no gap in a mean.
func TestChartsCountRunsWithoutAValue(t *testing.T) {
	points := func(paths, lack []string) (all []expect.Point) {
		for _, at := range paths {
			for _, seed := range []string{"1", "2", "3"} {
				v := 100.0
				s := emulated(1, func(s *record.Summary) { s.Clocks = record.Clocks{Samples: 9, ConvergedUS: &v} }).Summary
				if slices.Contains(lack, at+"/"+seed) {
					s.Clocks.ConvergedUS = nil
				}
				all = append(all, expect.Point{At: map[string]string{"x": at, "seed": seed}, Summary: s})
			}
		}
		return all
	}
	for _, paths := range [][]string{{"1us", "2us"}, {"ptp", "huygens"}} {
		for _, c := range []struct {
			lack []string
			says string
		}{
			{nil, ""},
			{[]string{paths[0] + "/2"}, "Without 1 of 3 runs, which measured no value."},
			{[]string{paths[0] + "/2", paths[1] + "/1", paths[1] + "/2"}, "Without 3 of 6 runs, which measured no value."},
			{[]string{paths[0] + "/1", paths[0] + "/2", paths[0] + "/3"}, ""},
		} {
			d, err := SweepPlot{X: "x", Y: "clock_converged"}.Draw(points(paths, c.lack))
			if err != nil {
				t.Fatal(err)
			}
			caption := ""
			switch d := d.(type) {
			case plot.Chart:
				caption = d.Caption
			case plot.Bars:
				caption = strings.TrimSuffix(strings.TrimSuffix(d.Caption, "Each dot is a run."), " ")
			}
			if caption != c.says {
				t.Errorf("%v without %v: %q, want %q", paths, c.lack, caption, c.says)
			}
		}
	}
}
