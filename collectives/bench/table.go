package bench

import (
	"fmt"
	"strings"

	"weft/collectives/schedule"
	"weft/units"
)

// The table of nccl-tests (src/util.cu): the same lines, columns, widths and roundings, so that what reads one
// reads the other. Times are lab time, bandwidths GB/s of 1e9 bytes.

// Measure is what one half of a row is about.
type Measure struct {
	Time    units.Time // of one collective, on average
	Wrong   int64      // elements
	Checked bool       // data was compared; otherwise Wrong says nothing
}

// Row is one line of the table.
type Row struct {
	Size       units.Bytes
	Count      int64  // elements: of the buffer, or of each rank's block where it is shared
	Type, Op   string // as nccl-tests calls them
	Root       int    // -1: there is none
	OutOfPlace *Result
	InPlace    *Result // nil: was not measured
}

// Result is a measure with its bandwidths.
type Result struct {
	Measure
	Alg, Bus units.Bandwidth
}

// NewRow returns the row of a collective that was measured out of place, in place, or both (nil: not).
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

// String returns the row's line.
func (r Row) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12d  %12d  %8s  %6s  %6d", int64(r.Size), r.Count, r.Type, r.Op, r.Root)
	b.WriteString(r.OutOfPlace.columns())
	if r.InPlace != nil {
		b.WriteString(r.InPlace.columns())
	}
	return b.String() + "\n"
}

// columns returns one half of a line; without a result it is blank.
func (m *Result) columns() string {
	if m == nil {
		return strings.Repeat(" ", 32)
	}
	wrong := "   N/A"
	if m.Checked {
		wrong = fmt.Sprintf("%6.6g", float64(m.Wrong))
	}
	return fmt.Sprintf("  %7s  %6s  %6s  %s", fit(m.Time.Microseconds(), 7), fit(GBps(m.Alg), 6), fit(GBps(m.Bus), 6), wrong)
}

// fit writes x into so many columns with as many decimals as there is room for, two at most.
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

// Footer returns the lines below the last row: how many rows had wrong elements, N/A if no data was compared, and the
// mean bus bandwidth of all measures, N/A if there is none.
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

// Span is when a rank's part in one collective began and ended.
type Span struct{ Start, End units.Time }

// Mean returns the time of one collective as nccl-tests measures it by default: each rank runs them back to back,
// its time is that of all after the first warmup divided by their number, and the mean over ranks is taken.
// ranks holds each rank's collectives in order. It is 0 when there is nothing to measure.
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
