package bench

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/internal/fuzztest"
	"weft/internal/golden"
	"weft/units"
)

// row is a row of an all-reduce of 8 ranks, unless changed.
func row(t *testing.T, size units.Bytes, out, in *Measure, change func(*schedule.Spec)) Row {
	t.Helper()
	s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: 8, Size: size}
	if change != nil {
		change(&s)
	}
	r, err := NewRow(s, out, in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func took(t units.Time) *Measure { return &Measure{Time: t, Checked: true} }

// A scan as of all_reduce_perf -b 8 -e 1G: small times and bandwidths, wide ones, and a row that
// was not checked.
func TestTable(t *testing.T) {
	us := units.Microsecond
	rows := []Row{
		row(t, 8, took(12340*units.Nanosecond), took(11*us), nil),
		row(t, 64*units.KiB, took(31*us), took(30500*units.Nanosecond), nil),
		row(t, 128*units.MiB, took(2481*us), &Measure{Time: 2500 * us}, nil),
		row(t, units.GiB, took(123456*us+780*units.Nanosecond), took(1234567*us), nil),
	}
	golden.Check(t, "both", Table(rows))
}

// Out of place alone, over collectives: root and operation where they mean something, counts per
// rank where the buffer is shared, and wrong elements.
func TestTableOfCollectives(t *testing.T) {
	var rows []Row
	for _, c := range schedule.Collectives() {
		s := func(s *schedule.Spec) {
			s.Collective, s.Algorithm, s.Root = c, schedule.Algorithms(c)[0], 3
			s.Type, s.Op = schedule.BFloat16, schedule.Max
		}
		rows = append(rows, row(t, 32*units.MiB, took(units.Millisecond), nil, s))
	}
	bad := took(20 * units.Millisecond)
	bad.Wrong = 12345678
	rows = append(rows, row(t, 32*units.MiB, bad, nil, func(s *schedule.Spec) { s.Type = schedule.Int32 }))
	golden.Check(t, "collectives", Table(rows))
}

// nccl-tests, src/util.cu: the header is two lines of names and one of halves, 105 columns wide and
// a space; a row is "%12li  %12li  %8s  %6s  %6s" and two halves of "  %7s  %6s  %6s  %6g".
func TestWidths(t *testing.T) {
	header := strings.Split(Header(true), "\n")
	want := []string{
		"#",
		"#                                                              out-of-place                       in-place          ",
		"#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ",
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ",
		"",
	}
	if !slices.Equal(header, want) {
		t.Errorf("header\n%q\nwant\n%q", header, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		size := units.Bytes(rapid.Int64Range(1, 1<<38).Draw(t, "elements")) * 4
		at := units.Time(rapid.Int64Range(1, 1<<60).Draw(t, "time"))
		s := schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Ranks: 8, Size: size}
		m := &Measure{Time: at, Wrong: rapid.Int64Range(0, 1<<40).Draw(t, "wrong"), Checked: rapid.Bool().Draw(t, "checked")}
		r, err := NewRow(s, m, m)
		if err != nil {
			t.Fatal(err)
		}
		line := r.String()
		fields := strings.Fields(line)
		if len(fields) != 13 {
			t.Fatalf("%d columns: %q", len(fields), line)
		}
		if most := len(want[2]) + len("1.09951e+12")*2; len(line) > most {
			t.Fatalf("%d wide: %q", len(line), line)
		}
		for i, width := range map[int]int{5: 7, 6: 6, 7: 6, 9: 7} {
			if len(fields[i]) > width {
				t.Fatalf("column %d of %q is wider than %d", i, line, width)
			}
		}
	})
}

// getFloatStr: two decimals where there is room, fewer in wide numbers, and an exponent when all
// else fails.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		x     float64
		width int
		want  string
	}{
		{12.345, 7, "  12.35"}, {1234.5, 7, "1234.50"}, {12345.67, 7, "12345.7"}, {123456.7, 7, " 123457"},
		{12345678, 7, "1.2e+07"}, {0, 6, "  0.00"}, {123.456, 6, "123.46"}, {1234.56, 6, "1234.6"}, {1e6, 6, " 1e+06"},
	} {
		if got := fit(c.x, c.width); got != c.want {
			t.Errorf("%g in %d columns is %q, want %q", c.x, c.width, got, c.want)
		}
	}
}

func TestOnlyInPlace(t *testing.T) {
	r := row(t, 1024, nil, took(units.Microsecond), nil)
	want := "        1024           256     float     sum      -1" + strings.Repeat(" ", 32) + "     1.00    1.02    1.79       0\n"
	if got := r.String(); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if f := Footer(nil); f != "# Out of bounds values : N/A\n# Avg bus bandwidth    : N/A \n#\n" {
		t.Errorf("%q", f)
	}
	if _, err := NewRow(schedule.Spec{Collective: "gossip"}, nil, nil); err == nil {
		t.Error("a row of gossip")
	}
}

func TestMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var ranks [][]Span
	for range 4 { // each takes 10 on average, back to back, after a warm-up of 1000
		at := units.Time(rng.IntN(50))
		spans := []Span{{at, at + 1000}}
		for _, d := range []units.Time{5, 10, 15} {
			last := spans[len(spans)-1].End
			spans = append(spans, Span{last, last + d})
		}
		ranks = append(ranks, spans)
	}
	if got := Mean(ranks, 1); got != 10 {
		t.Errorf("%d", got)
	}
	if got := Mean(ranks, 4); got != 0 {
		t.Errorf("nothing after the warm-up: %d", got)
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		s    Sizes
		want []units.Bytes
		err  string
	}{
		{Sizes{Begin: 32 * units.MiB, End: 32 * units.MiB, Step: units.MiB, Factor: 1}, []units.Bytes{32 * units.MiB}, ""},
		{Sizes{Begin: 8, End: 100, Factor: 2}, []units.Bytes{8, 16, 32, 64}, ""},
		{Sizes{Begin: 8, End: 64, Factor: 2}, []units.Bytes{8, 16, 32, 64}, ""},
		{Sizes{Begin: 8, End: 512, Factor: 8}, []units.Bytes{8, 64, 512}, ""},
		{Sizes{Begin: 10, End: 40, Step: 15, Factor: 1}, []units.Bytes{10, 25, 40}, ""},
		{Sizes{Begin: 10, End: 40, Step: 15}, []units.Bytes{10, 25, 40}, ""},
		{Sizes{Begin: 1 << 62, End: 1<<63 - 1, Factor: 4}, []units.Bytes{1 << 62}, ""},
		{Sizes{Begin: 1<<63 - 2, End: 1<<63 - 1, Step: 1 << 62}, []units.Bytes{1<<63 - 2}, ""},
		{Sizes{Begin: 7, End: 7}, []units.Bytes{7}, ""},
		{Sizes{Begin: 0, End: 7, Factor: 2}, nil, "first size"},
		{Sizes{Begin: 8, End: 7, Factor: 2}, nil, "above the last"},
		{Sizes{Begin: 8, End: 9}, nil, "in steps of 0"},
		{Sizes{Begin: 1, End: 1 << 40, Step: 1}, nil, "more than 10000"},
	} {
		got, err := c.s.List()
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v, %v", c.s, got, err)
		}
	}
	// -b 8 -e 128M -f 2: 25 sizes.
	begin, err1 := ParseSize("8")
	end, err2 := ParseSize("128M")
	list, err3 := Sizes{Begin: begin, End: end, Factor: 2}.List()
	if err1 != nil || err2 != nil || err3 != nil || len(list) != 25 || list[24] != 128*units.MiB {
		t.Errorf("%v, %v, %v, %v", list, err1, err2, err3)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]units.Bytes{
		"8": 8, "1K": 1024, "1k": 1024, "128M": 128 * units.MiB, "2g": 2 * units.GiB, "1.5K": 1536, "0": 0,
		"128MB": 128 * units.MB, "4KiB": 4096, "100B": 100,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "K", "M8", "-1", "-1K", "0.3", "1T", "1e3", "0x10", "1_000", "NaN", "Inf", "infK", "+8", "8 M", "1e99G", "9999999999999999999G",
		strings.Repeat("9", 100),
	} {
		if got, err := ParseSize(text); err == nil || len(err.Error()) > 120 {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, s := range []string{"8", "128M", "1.5K", "4KiB", "-1", "1e9"} {
		corpus.Add(s)
	}
	corpus.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseSize(text); err == nil && n < 0 {
			t.Errorf("%q is %d", text, n)
		}
	})
}

func TestFitSize(t *testing.T) {
	for _, c := range []struct {
		collective string
		size, want units.Bytes
	}{
		{schedule.AllReduce, 10, 8}, {schedule.AllGather, 1000, 896}, {schedule.AllToAll, 127, 0}, {schedule.Broadcast, 3, 0},
	} {
		s := schedule.Spec{Collective: c.collective, Algorithm: schedule.Algorithms(c.collective)[0], Ranks: 8, Size: c.size}
		if got, err := Fit(s); err != nil || got != c.want {
			t.Errorf("%s of %d: %d, %v", c.collective, c.size, got, err)
		}
	}
	if _, err := Fit(schedule.Spec{Collective: "gossip"}); err == nil {
		t.Error("a size of gossip")
	}
	if _, err := Fit(schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring}); err == nil {
		t.Error("no ranks")
	}
}
