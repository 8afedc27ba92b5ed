package summary

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/internal/fuzztest"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/expect"
	"weft/results/record"
	"weft/units"
)

func newReader(pattern string) *Reader {
	return NewReader(&experiment.Program{Program: &lab.Program{Index: 2, Metrics: regexp.MustCompile(pattern)},
		Names: []string{"h0", "h1"}})
}

// Groups that match become rows, numbers or text, with line and host.
func TestReader(t *testing.T) {
	r := newReader(`(?P<size>\d+) B(?: +(?P<time_us>[\d.e+]+) us)?(?P<note>\w*)`)
	for i, line := range []string{"hello", "4096 B 12.5 us", "8192 Bx", "1 B 1e999 us"} {
		r.Line(1, []byte(line), units.Time(i))
	}
	r.Line(0, []byte("7 B 3 us"), 9)
	var got []string
	for _, row := range r.Rows {
		got = append(got, fmt.Sprint(row.Item, row.Host, row.Line, int64(row.At), row.Name, "=", row.Text, row.Number))
	}
	want := "2h11 1size=4096true|2h11 1time_us=12.5true|2h11 1note=false|2h12 2size=8192true|2h12 2note=xfalse|" +
		"2h13 3size=1true|2h13 3time_us=1e999false|2h13 3note=false|2h00 9size=7true|2h00 9time_us=3true|2h00 9note=false"
	if got := strings.Join(got, "|"); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	m := metricsOf(r.Rows)
	if len(m) != 2 || m[0].Name != "size" || m[0].Count != 4 || m[0].Min != 1 || m[0].Max != 8192 || m[0].Mean != 3074 ||
		fmt.Sprint(m[0].Values) != "[4096 8192 1 7]" || fmt.Sprint(m[1].Values) != "[12.5 3]" {
		t.Errorf("%+v", m)
	}
	if r.Lines(1) != 4 || r.Lines(0) != 1 {
		t.Errorf("%d and %d lines", r.Lines(0), r.Lines(1))
	}
}

// Times of lines that name a size are described by size, unless there are too many.
func TestMetricsBySize(t *testing.T) {
	r := newReader(`(?:(?P<size_bytes>\d+) B +)?(?P<time_us>[\d.]+) us`)
	for _, line := range []string{"1024 B 3 us", "4096 B 10 us", "1024 B 5 us", "4096 B 20 us", "99 us"} {
		r.Line(0, []byte(line), 0)
	}
	m := metricsOf(r.Rows)
	want := []record.MetricGroup{{At: "size_bytes=1024", Count: 2, Min: 3, Mean: 4, P50: 3, Max: 5},
		{At: "size_bytes=4096", Count: 2, Min: 10, Mean: 15, P50: 10, Max: 20}}
	if len(m) != 2 || m[0].Groups != nil || m[1].Count != 5 || !slices.Equal(m[1].Groups, want) {
		t.Errorf("%+v", m)
	}
	for i := range record.MaxMetricGroups {
		r.Line(0, fmt.Appendf(nil, "%d B 1 us", i), 0)
	}
	if m := metricsOf(r.Rows); m[1].Count != 5+record.MaxMetricGroups || m[1].Groups != nil {
		t.Errorf("%+v", m[1])
	}
}

func TestCommandName(t *testing.T) {
	for want, args := range map[string][]string{
		"true":                        {"/bin/true"},
		"python3 train.py":            {"/usr/bin/python3", "/lab/train.py"},
		"python3 train.py ...":        {"python3", "/lab/train.py", "--fast"},
		"sh ...":                      {"sh", "-c", "echo x; echo y"},
		strings.Repeat("ä", 40) + "…": {strings.Repeat("ä", 100)},
		"a\uFFFDb":                    {"a\nb"},
		"iperf3 ...":                  {"iperf3", "-c", "h1"},
	} {
		if got := CommandName(args); got != want {
			t.Errorf("%q is %q, want %q", args, got, want)
		}
	}
}

// A metric that is a number in some lines only is named, as is one that no line has.
func TestDoubt(t *testing.T) {
	r := newReader(`(?P<v>.*) (?P<text>\w*)`)
	for _, line := range []string{"1 a", "NaN b", strings.Repeat("9", 300) + " c", "1e400 d"} {
		r.Line(0, []byte(line), 0)
	}
	for name, want := range map[string]string{
		"v": `v is no number in 3 of 4 lines, such as "NaN", which were left out of its statistics`, "text": "",
		"none": "no line of output has none",
	} {
		if got := doubt(2, name, r.Rows, false); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	const none = "v is in the output, but a finite number in none of 2 lines, such as "
	for _, c := range []struct {
		lines    [2]string
		expected bool
		want     string
	}{
		{[2]string{"nan", "inf"}, false, none + `"nan": it has no value`},
		{[2]string{"oops", "1e400"}, false, none + `"oops": it has no value`},
		{[2]string{"oops", "ouch"}, true, none + `"oops": it has no value`},
		{[2]string{"oops", "ouch"}, false, ""},
	} {
		r := newReader(`v=(?P<v>.*)`)
		for _, v := range c.lines {
			r.Line(0, []byte("v="+v), 0)
		}
		if got := doubt(2, "v", r.Rows, c.expected); got != c.want {
			t.Errorf("%q: %q, want %q", c.lines, got, c.want)
		}
	}
	if m := metricsOf(r.Rows); len(m) != 1 || m[0].Max != 1 {
		t.Errorf("%+v", m)
	}
}

// What a program prints cannot make a row that is too long, no text, or no number that is one.
func FuzzReader(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, line := range []string{"4096 B 12.5 us", "\xff\xfe B", strings.Repeat("9", 1000) + " B", "NaN B", "-Inf B"} {
		corpus.Add(line)
	}
	corpus.Fuzz(func(t *testing.T, line string) {
		r := newReader(`(?P<any>.*) B`)
		r.Line(0, []byte(line), 1)
		for _, row := range r.Rows {
			if len(row.Text) > 3*maxMetricText || strings.ToValidUTF8(row.Text, "") != row.Text ||
				row.Number && math.IsInf(row.Value-row.Value, 0) || row.Number && row.Value != row.Value {
				t.Errorf("%q makes %+v", line, row)
			}
		}
	})
}

// What dilation does is said in lab time.
func TestDilated(t *testing.T) {
	if got := dilated(1000); !strings.Contains(got, "1000 times too fast") || !strings.Contains(got, "of 200us and") || !strings.Contains(got, "by 40us") {
		t.Error(got)
	}
	var s record.Summary
	addPrograms(&experiment.Experiment{}, &Outcome{}, &s)
	if s.Notes != nil {
		t.Errorf("a run without programs has notes: %q", s.Notes)
	}
}

// A match that takes a part of what a line says is warned of, with the line.
func TestPartsOfLinesAreDoubted(t *testing.T) {
	for _, c := range []struct{ pattern, line, doubt string }{
		{`x=(?P<x>\d+)`, "x=3", ""},
		{`x=(?P<x>\d+)`, "x=3 ms, y=4", ""},
		{`x=(?P<x>\d+)`, "x=3.", ""},
		{`x=(?P<x>\d+)`, "x=3 x=99", "match more than once"},
		{`x=(?P<x>\d+)`, "x=3\rx=99", "match more than once"},
		{`x=(?P<x>\d+)`, "x=1,000", "of which a group"},
		{`x=(?P<x>\d+)`, "x=9e9", "of which a group"},
		{`x=(?P<x>\d+)`, "x=9.5", "of which a group"},
		{`x=(?P<x>[\d.]+)`, "x=9.5", ""},
		{`x=(?P<word>\w+)`, "x=up 5", ""},
		{`x(?P<x>\d*)`, "x5x", "match more than once"},
		{`(?P<x_us>\d+) us`, "lat 1.234 us", "of which a group"},
		{`(?P<x_us>\d+) us`, "lat 9,007 us", "of which a group"},
		{`(?P<x_us>\d+) us`, "lat 9_007 us", "of which a group"},
		{`(?P<x_us>\d+) us`, "lat .5 us", "of which a group"},
		{`(?P<x_us>\d+) us`, "lat 1e6 us", "of which a group"},
		{`(?P<x_us>\d+) us`, "lat 2e-6 us", "of which a group"},
		{`.*(?P<x_us>\d+) us`, "lat 1234 us", "of which a group"},
		{`.*?(?P<x_us>\d+) us`, "lat 1.234 us", "of which a group"},
		{`(?P<e>\d+) ms`, "err -12 ms", "of which a group"},
		{`(?P<e>\d+) ms`, "-12 ms", "of which a group"},
		{`err=(?P<e>-?\d+) ms`, "err=-12 ms", ""},
		{`(?P<x>\d+)`, "step-12", ""},
		{`(?P<x>\d+)$`, "2026-11", ""},
		{`(?P<x>\d+)$`, "10-20", ""},
		{`(?P<x>\d+)$`, "h3", ""},
		{`z=(?P<z>\d+)`, "z=0x1F", "of which a group"},
		{`n=(?P<n>\d+)`, "n=10x2", ""},
		{`k=(?P<k>\d+)`, "k=12K", "of which a group"},
		{`k=(?P<k_bytes>\d+)`, "k=12KiB, 3", "of which a group"},
		{`k=(?P<k>\d+)K`, "k=12K", ""},
		{`b=(?P<b_gbps>\d+)`, "b=12Gb/s", ""},
		{`b=(?P<b_gbps>\d+)`, "b=12G/s", ""},
		{`b=(?P<b_mbps>\d+)Mbps`, "b=12Mbps", ""},
		{`t=(?P<t_ms>\d+)`, "t=12ms", ""},
		{`(?P<x>\d+) us`, "a. 12 us", ""},
		{`x=(?P<word>\S+)`, "1.x=12", ""},
	} {
		r := newReader(c.pattern)
		r.Line(0, []byte(c.line), 1)
		got := strings.Join(r.Doubts(), "; ")
		if !strings.Contains(got, c.doubt) || c.doubt == "" && got != "" {
			t.Errorf("%s of %q: %q, want %q", c.pattern, c.line, got, c.doubt)
		}
	}
}

// A metric with more matches than are kept says so by name, and expectations of what the rest could
// change have no value; another metric of the same lines is not hurt, nor one that comes late.
func TestMatchesThatAreNotKept(t *testing.T) {
	r := newReader(`x=(?P<x>\d+)|late=(?P<late>\d+)`)
	r.most = 5
	for i := range 7 {
		r.Line(0, fmt.Appendf(nil, "x=%d", i), 0)
	}
	r.Line(0, []byte("x=999"), 0)
	r.Line(1, []byte("late=1"), 0)
	o := &Outcome{Metrics: r.Rows}
	for name, n := range r.Unkept {
		o.Unkeep(name, n)
	}
	var s record.Summary
	x := &experiment.Experiment{Lab: &lab.Lab{}}
	x.Programs = []experiment.Program{{Program: &lab.Program{Index: 2, Metrics: r.pattern}}}
	addPrograms(x, o, &s)
	if len(s.Metrics) != 2 || s.Metrics[0].Unkept != 3 || s.Metrics[0].Count != 5 || s.Metrics[1].Unkept != 0 {
		t.Fatalf("%+v", s.Metrics)
	}
	if text := strings.Join(s.Warnings, "\n"); !strings.Contains(text, "3 matches of the metric x were not kept") {
		t.Errorf("%q", text)
	}
	for line, met := range map[string]bool{
		"metric.x.max < 5": false, "metric.x.max >= 0": false, "metric.x.min >= 0": false, "metric.x.mean < 5": false,
		"metric.x.p50 < 5": false, "metric.x.count >= 5": false, "metric.x.count == 5": false,
		"metric.x.4 == 4": true, "metric.x.5 < 9": false, "metric.late.max == 1": true, "metric.late.count == 1": true,
	} {
		e, err := expect.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Eval(&s, expect.Scope{Metrics: []string{"x", "late"}})
		if got.OK != met || got.Unmeasured == met {
			t.Errorf("%s: %+v, want met %t", line, got, met)
		}
	}
}

// The names of a pattern share what is kept.
func TestEachNameHasItsShare(t *testing.T) {
	for pattern, most := range map[string]int{`(?P<a>\d)`: maxMetricRows, `(?P<a>\d)(?P<b>\d)`: maxMetricRows / 2, `x`: maxMetricRows} {
		if r := newReader(pattern); r.most != most {
			t.Errorf("%s: %d matches of a name are kept, want %d", pattern, r.most, most)
		}
	}
}
