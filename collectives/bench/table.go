package bench

import (
	"fmt"
	"strings"

	"weft/collectives/schedule"
	"weft/units"
)

// This file has the table of nccl-tests (src/util.cu), with the same lines, columns, widths and
// roundings, so that programs that read one read the other. Times are lab time, bandwidths GB/s of
// 1e9 bytes.

// Measure is the measurement in one half of a row.
type Measure struct {
	Time    units.Time // of one collective, on average
	Wrong   int64      // number of wrong elements, if Checked
	Checked bool       // data was compared
}

// Row is one line of the table.
type Row struct {
	Size       units.Bytes
	Count      int64  // elements of the buffer, or of each rank's block if the buffer has one per rank
	Type, Op   string // in the terms of nccl-tests
	Root       int    // -1 if there is none
	OutOfPlace *Result
	InPlace    *Result // nil if it was not measured
}

// Result is a measure with its bandwidths.
type Result struct {
	Measure
	Alg, Bus units.Bandwidth
}

// NewRow returns the row of a collective that was measured out of place, in place, or both. A
// measure that was not taken is nil.
func NewRow(s schedule.Spec, outOfPlace, inPlace *Measure) (Row, error) {
	f, err := schedule.About(s.Collective, s.Algorithm)
	if err != nil {
		return Row{}, err
	}
	r := Row{
		Size: Size(s.Collective, s.Ranks, s.Size*units.Bytes(max(1, s.Flows))),
		Type: typeName(s.Type), Op: "none", Root: -1,
	}
	count := s.Size
	if f.Shared {
		count /= units.Bytes(s.Ranks)
	}
	r.Count = int64(count / s.Type.Size())
	switch {
	case f.Reduces && s.Op != "":
		r.Op = string(s.Op)
	case f.Reduces, f.Permuted: // sendrecv_perf says so too
		r.Op = string(schedule.Sum)
	}
	if f.Rooted {
		r.Root = s.Root
	}
	result := func(m *Measure) *Result {
		if m == nil {
			return nil
		}
		alg, bus, e := Bandwidth(s.Collective, s.Ranks, r.Size, m.Time)
		err = e
		return &Result{*m, alg, bus}
	}
	r.OutOfPlace, r.InPlace = result(outOfPlace), result(inPlace)
	return r, err
}

// typeName returns the name of a type in nccl-tests.
func typeName(t schedule.Type) string {
	if t == "" || t == schedule.Float32 {
		return "float"
	}
	return string(t)
}

// Table returns header, rows and footer.
func Table(rows []Row) string {
	var b strings.Builder
	inPlace := false
	for _, r := range rows {
		inPlace = inPlace || r.InPlace != nil
	}
	b.WriteString(Header(inPlace))
	for _, r := range rows {
		b.WriteString(r.String())
	}
	b.WriteString(Footer(rows))
	return b.String()
}

// Header returns the lines above the first row.
func Header(inPlace bool) string {
	line := func(size, count, kind, op, root, half string, both string) string {
		s := fmt.Sprintf("# %10s  %12s  %8s  %6s  %6s%s", size, count, kind, op, root, half)
		if inPlace {
			s += both
		}
		return s + "\n"
	}
	half := func(time, alg, bus, wrong string) string {
		return fmt.Sprintf("  %7s  %6s  %6s  %6s", time, alg, bus, wrong)
	}
	names, unitsOf := half("time", "algbw", "busbw", "#wrong"), half("(us)", "(GB/s)", "(GB/s)", "")
	return "#\n" +
		line("", "", "", "", "", "           out-of-place            ", "           in-place          ") +
		line("size", "count", "type", "redop", "root", names, names+" ") +
		line("(B)", "(elements)", "", "", "", unitsOf, unitsOf+" ")
}

// String returns the line of the row.
func (r Row) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12d  %12d  %8s  %6s  %6d", int64(r.Size), r.Count, r.Type, r.Op, r.Root)
	b.WriteString(r.OutOfPlace.columns())
	if r.InPlace != nil {
		b.WriteString(r.InPlace.columns())
	}
	return b.String() + "\n"
}

// columns returns one half of a line. It is blank without a result.
func (m *Result) columns() string {
	if m == nil {
		return strings.Repeat(" ", 32)
	}
	wrong := "   N/A"
	if m.Checked {
		wrong = fmt.Sprintf("%6.6g", float64(m.Wrong))
	}
	return fmt.Sprintf("  %7s  %6s  %6s  %s", fit(m.Time.Microseconds(), 7), fit(GBps(m.Alg), 6), fit(GBps(m.Bus), 6),
		wrong)
}

// fit formats x in width columns with as many decimals as fit, at most two.
func fit(x float64, width int) string {
	for decimals := 2; decimals >= 0; decimals-- {
		if s := fmt.Sprintf("%*.*f", width, decimals, x); len(s) <= width {
			return s
		}
	}
	s := fmt.Sprintf("%*.0e", width, x)
	if width >= 7 {
		s = fmt.Sprintf("%*.1e", width, x)
	}
	return s[:width]
}

// Footer returns the lines below the last row: the number of measures with wrong elements, or N/A
// if no data was compared, and the mean bus bandwidth of all measures, or N/A if there is none.
func Footer(rows []Row) string {
	bad, n, compared, bus := 0, 0, 0, 0.0
	for _, r := range rows {
		for _, m := range []*Result{r.OutOfPlace, r.InPlace} {
			if m == nil {
				continue
			}
			n++
			bus += GBps(m.Bus)
			if m.Checked {
				compared++
			}
			if m.Checked && m.Wrong > 0 {
				bad++
			}
		}
	}
	verdict, mean := fmt.Sprintf("%d OK", bad), "N/A"
	switch {
	case compared == 0:
		verdict = "N/A"
	case bad > 0:
		verdict = fmt.Sprintf("%d FAILED", bad)
	}
	if n > 0 {
		mean = fmt.Sprintf("%.6g", bus/float64(n))
	}
	return fmt.Sprintf("# %-20s : %s\n# %-20s : %s \n#\n", "Out of bounds values", verdict, "Avg bus bandwidth", mean)
}

// Span is the time during which a rank took part in one collective.
type Span struct{ Start, End units.Time }

// Mean returns the time of one collective as nccl-tests measures it by default. Each rank runs the
// collectives back to back. Its time is that of all after the first warmup ones, divided by their
// number; the result is the mean over ranks. ranks holds each rank's collectives in order. The
// result is 0 if there is nothing to measure.
func Mean(ranks [][]Span, warmup int) units.Time {
	var total units.Time
	n := 0
	for _, spans := range ranks {
		if len(spans) <= warmup {
			continue
		}
		spans = spans[warmup:]
		total += (spans[len(spans)-1].End - spans[0].Start) / units.Time(len(spans))
		n++
	}
	return total / units.Time(max(1, n))
}
