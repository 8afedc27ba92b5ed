package table

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"weft/results/record"
)

// Column is a column of a table that fits a terminal.
type Column struct {
	Name  string
	Cells []string
	Right bool // aligned to the right, as numbers are
	Drop  int  // where there is no room for all, columns with the highest go first; 0 stays
	Most  int  // cells are shortened to so many characters, whatever room there is; 0: never

	vary    bool   // worth a column only if its cells differ
	colours []cell // cells with colours, in place of Cells
}

// Columns writes a table. In a terminal that is too narrow columns are left out, then text is shortened, and a line says so; more says where
// what was left out can be seen.
func Columns(w io.Writer, cols []Column, more string, st Style) error {
	same, cols := constant(cols)
	for i := range cols {
		if cols[i].Most > 0 {
			cols[i].shorten(cols[i].Most)
		}
	}
	kept, dropped := fit(cols, st.Width)
	var g grid
	var head []cell
	for _, c := range kept {
		head = append(head, header(c.Name))
	}
	g.row(head...)
	for i := range kept[0].all() {
		var row []cell
		for _, c := range kept {
			row = append(row, c.all()[i])
		}
		g.row(row...)
	}
	if err := g.write(w, st, ""); err != nil {
		return err
	}
	for _, line := range []string{
		listed("the same in all: ", same, ""), listed("no room for ", dropped, " ("+more+")"),
	} {
		if line == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, st.paint(dim, line)); err != nil {
			return err
		}
	}
	return nil
}

func listed(before string, names []string, after string) string {
	if len(names) == 0 {
		return ""
	}
	return before + strings.Join(names, ", ") + after
}

// all is the cells of a column.
func (c *Column) all() []cell {
	if c.colours != nil {
		return c.colours
	}
	out := make([]cell, len(c.Cells))
	for i, text := range c.Cells {
		out[i] = cell{text: text, right: c.Right, colour: colourOf(text)}
	}
	return out
}

func (c *Column) width() int {
	n := utf8.RuneCountInString(c.Name)
	for _, x := range c.all() {
		n = max(n, utf8.RuneCountInString(x.text))
	}
	return n
}

// constant takes out the columns that say the same in every row, and returns what they say.
func constant(cols []Column) (same []string, rest []Column) {
	for _, c := range cols {
		all := c.all()
		if !c.vary || len(all) < 2 || slices.ContainsFunc(all, func(x cell) bool { return x.text != all[0].text }) {
			rest = append(rest, c)
		} else if text := all[0].text; text != "" && text != "–" {
			same = append(same, c.Name+" "+text)
		}
	}
	return same, rest
}

// leastText is the least width that text is shortened to.
const leastText = 12

// fit leaves out and shortens columns until they fit a width; 0 is any.
func fit(cols []Column, width int) (kept []Column, dropped []string) {
	total := func() int {
		n := 2 * (len(kept) - 1)
		for i := range kept {
			n += kept[i].width()
		}
		return n
	}
	kept = slices.Clone(cols)
	if width <= 0 {
		return kept, nil
	}
	for total() > width {
		last := 0
		for i := range kept {
			if kept[i].Drop > kept[last].Drop {
				last = i
			}
		}
		if kept[last].Drop == 0 {
			break
		}
		dropped = append(dropped, kept[last].Name)
		kept = slices.Delete(kept, last, last+1)
	}
	slices.Reverse(dropped)
	for over := total() - width; over > 0; over = total() - width {
		widest := -1
		for i := range kept {
			if !kept[i].Right && kept[i].colours == nil && (widest < 0 || kept[i].width() > kept[widest].width()) {
				widest = i
			}
		}
		if widest < 0 || kept[widest].width() <= leastText {
			break
		}
		kept[widest].shorten(max(leastText, kept[widest].width()-over))
	}
	return kept, dropped
}

// shorten shortens the cells to a width.
func (c *Column) shorten(width int) {
	c.Cells = slices.Clone(c.Cells)
	for i, text := range c.Cells {
		c.Cells[i] = shortened(text, width)
	}
}

// shortened keeps the beginning and the end of a text: both tell names apart.
func shortened(text string, width int) string {
	r := []rune(text)
	if len(r) <= width {
		return text
	}
	end := width / 2
	return string(r[:width-end-1]) + "…" + string(r[len(r)-end:])
}

// swept is a column for each path that points of a sweep differ in.
func swept(runs []*record.Summary) []Column {
	paths := map[string]bool{}
	for _, s := range runs {
		for path := range s.Point {
			paths[path] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(paths))
	var out []Column
	for _, path := range sorted {
		c := Column{Name: Short(path, sorted), vary: true, Right: true}
		for _, s := range runs {
			text := ""
			if v, ok := s.Point[path]; ok {
				text = fmt.Sprint(v)
			}
			c.Right = c.Right && (text == "" || strings.ContainsAny(text[:1], "0123456789"))
			c.Cells = append(c.Cells, text)
		}
		out = append(out, c)
	}
	return out
}

// Short is the least of a path that tells it from the others: ranks of workload.0.ranks. A kind is called after what it is of.
func Short(path string, all []string) string {
	parts := strings.Split(path, ".")
	for n := 1; n < len(parts); n++ {
		short := strings.Join(parts[len(parts)-n:], ".")
		if short == "kind" {
			short = parts[len(parts)-2]
		}
		if !slices.ContainsFunc(all, func(p string) bool {
			return p != path && (strings.HasSuffix("."+p, "."+short) || strings.HasSuffix(p, "."+short+".kind"))
		}) {
			return short
		}
	}
	return path
}

// Metric is a number that tables of several runs show of each.
type Metric struct {
	Name, Unit string                                     // Unit is that of Of
	Of         func(*record.Summary) (v float64, is bool) // not is: the run has no such number

	drop  int // as of a Column
	write func(float64) string
}

// Metrics are the numbers of a run that everybody looks at first, in the order of columns.
func Metrics() []Metric {
	whole := func(v float64) string { return count(int64(v)) }
	return []Metric{
		{"FCT p50", "us", func(s *record.Summary) (float64, bool) { return s.Flows.FCT.P50, complete(s) }, 5, micros},
		{"FCT p99", "us", func(s *record.Summary) (float64, bool) { return s.Flows.FCT.P99, complete(s) }, 0, micros},
		{"slowdown p99", "", func(s *record.Summary) (float64, bool) { return s.Flows.Slowdown.P99, complete(s) }, 1, digits},
		{"busbw", "Gb/s", func(s *record.Summary) (float64, bool) { return BusBW(s), BusBW(s) > 0 }, 2, gbps},
		{"RTT mean", "us", func(s *record.Summary) (float64, bool) { return s.RTT.Mean, answered(s) }, 7, micros},
		{"queue p99", "us", func(s *record.Summary) (float64, bool) { return s.Network.QueueDelay.P99, delivered(s) }, 3, micros},
		{"marks", "", func(s *record.Summary) (float64, bool) { return float64(s.Network.CEMarks), s.Network.Packets > 0 }, 8, whole},
		{"drops", "", func(s *record.Summary) (float64, bool) { return float64(s.Network.Drops), s.Network.Packets > 0 }, 4, whole},
	}
}

// Incomplete says whether any of the runs has flows that did not end, so that tables tell how many did.
func Incomplete(runs []*record.Summary) bool {
	return slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Flows.Unfinished > 0 })
}

// workloads is the table of what workloads did: what differs between the runs, and what came of it.
func workloads(w io.Writer, runs []*record.Summary, st Style) error {
	text := func(name string, get func(*record.Summary) string) Column {
		c := Column{Name: name, vary: true}
		for _, s := range runs {
			c.Cells = append(c.Cells, get(s))
		}
		return c
	}
	number := func(name string, drop int, get func(*record.Summary) string) Column {
		c := text(name, get)
		c.Right, c.Drop = true, drop
		return c
	}
	cols := []Column{text("lab", func(s *record.Summary) string { return s.Lab })}
	cols = append(cols, swept(runs)...)
	cols = append(cols, text("engine", func(s *record.Summary) string { return s.Engine }))
	flows := number("flows", 6, func(s *record.Summary) string { return known(s.Flows.Count > 0, count(s.Flows.Count)) })
	if Incomplete(runs) {
		flows = number("done", 0, func(s *record.Summary) string { return known(s.Flows.Count > 0, done(s)) })
	}
	cols = append(cols, flows)
	for _, m := range Metrics() {
		cols = append(cols, number(m.Name, m.drop, func(s *record.Summary) string {
			v, is := m.Of(s)
			return known(is, m.write(v))
		}))
	}
	if slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Network.Cut > 0 }) {
		cols = append(cols, number("cut", 4, func(s *record.Summary) string { return known(s.Network.Packets > 0, count(s.Network.Cut)) }))
	}
	status := Column{Name: "status"}
	for _, s := range runs {
		status.colours = append(status.colours, outcome(s))
	}
	return Columns(w, append(cols, status), "--json has all", st)
}

// BusBW is the bus bandwidth of the first collective of a run, in Gb/s; 0: it has none, or it did not finish.
func BusBW(s *record.Summary) float64 {
	if len(s.Collectives) == 0 {
		return 0
	}
	return s.Collectives[0].BusBWGbps
}

// Main is the numbers of a run that it is known by: the 99th percentile of slowdown, and the bus bandwidth of its first collective, or
// without a workload the error of its clocks. A number that the run does not have is a dash.
func Main(s *record.Summary) (slowdown, busbw string) {
	if s.Flows.Count == 0 && s.Clocks.Samples > 0 {
		return "clocks " + micros(s.Clocks.Error.P99/1e3), "–"
	}
	return known(complete(s), digits(s.Flows.Slowdown.P99)), known(BusBW(s) > 0, gbps(BusBW(s)))
}

// Outcome is how a run went, in a word or two.
func Outcome(s *record.Summary) string { return outcome(s).text }
