package table

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"weft/results/record"
	"weft/units"
)

// Column is a column of a table that fits a terminal.
type Column struct {
	Name     string
	Cells    []string
	Right    bool // right-aligned, as numbers are
	Drop     int  // without enough room the columns with the highest Drop go first; 0 stays
	MaxWidth int  // most characters of a cell, however much room there is; 0: any

	// Grades colour the cells, and no cell is shortened. nil: none has a grade.
	Grades []record.Grade

	vary bool // left out if all its cells are alike
}

// Columns writes a table. In a terminal that is too narrow it leaves out columns, then shortens
// text, and says so in a last line; more says where the reader finds the rest.
func Columns(w io.Writer, cols []Column, more string, st Style) error {
	same, cols := constant(cols)
	for i := range cols {
		if cols[i].MaxWidth > 0 {
			cols[i].shorten(cols[i].MaxWidth)
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

// all returns the cells of a column.
func (c *Column) all() []cell {
	out := make([]cell, len(c.Cells))
	for i, text := range c.Cells {
		out[i] = cell{text: text, right: c.Right}
		if c.Grades != nil {
			out[i].colour = gradeColours[c.Grades[i]]
		}
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

// constant splits off the columns with the same text in every row, and returns those texts.
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

// minText is the shortest width to which text is cut.
const minText = 12

// fit leaves out and shortens columns until they fit a width in characters; 0 is any.
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
			if !kept[i].Right && kept[i].Grades == nil && (widest < 0 || kept[i].width() > kept[widest].width()) {
				widest = i
			}
		}
		if widest < 0 || kept[widest].width() <= minText {
			break
		}
		kept[widest].shorten(max(minText, kept[widest].width()-over))
	}
	return kept, dropped
}

// shorten cuts the cells to a width.
func (c *Column) shorten(width int) {
	c.Cells = slices.Clone(c.Cells)
	for i, text := range c.Cells {
		c.Cells[i] = shortened(text, width)
	}
}

// shortened keeps the beginning and the end of a text, since either may tell two names apart.
func shortened(text string, width int) string {
	r := []rune(text)
	if len(r) <= width {
		return text
	}
	end := width / 2
	return string(r[:width-end-1]) + "…" + string(r[len(r)-end:])
}

// SweptPaths returns the paths in which the points of a sweep differ, sorted.
func SweptPaths(runs []*record.Summary) []string {
	paths := map[string]bool{}
	for _, s := range runs {
		for path := range s.Point {
			paths[path] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// swept returns a column for each path in which the points of a sweep differ.
func swept(runs []*record.Summary) []Column {
	sorted := SweptPaths(runs)
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

// Short returns the shortest end of a path that no other path shares: ranks for workload.0.ranks. A
// kind takes the name of its section.
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

// Metric is a number of a run that tables of several runs show.
type Metric struct {
	Name, Unit string                                     // Unit is the unit of the value of Of
	Of         func(*record.Summary) (v float64, is bool) // is is false if the run has no such number
	First      bool                                       // the number is of the first collective alone

	drop  int // see Column.Drop
	write func(float64) string
	rare  bool // see Absent
}

// Heading returns the name of the metric in a table of runs. If runs have several collectives, it
// says that the number is of the first.
func (m *Metric) Heading(runs []*record.Summary) string {
	if m.First && slices.ContainsFunc(runs, func(s *record.Summary) bool { return len(s.Collectives) > 1 }) {
		return "first " + m.Name
	}
	return m.Name
}

// Absent reports whether tables of runs leave the metric out: few labs have it, and none of runs.
func (m *Metric) Absent(runs []*record.Summary) bool {
	return m.rare && !slices.ContainsFunc(runs, func(s *record.Summary) bool { v, _ := m.Of(s); return v > 0 })
}

// MetricsOf returns the most important numbers of runs: those of every run, and what their programs
// printed, in the order of columns. The time of jobs is there if any of the runs has one.
func MetricsOf(runs []*record.Summary) []Metric {
	all := Metrics()
	if !slices.ContainsFunc(runs, func(s *record.Summary) bool { _, is := JobTime(s); return is }) {
		all = slices.DeleteFunc(all, func(m Metric) bool { return m.Name == "time" })
	}
	seen := map[string]bool{}
	for _, s := range runs {
		for _, m := range s.Metrics {
			if seen[m.Name] {
				continue
			}
			seen[m.Name] = true
			all = append(all, Metric{Name: m.Name, write: units.Number, Of: func(s *record.Summary) (float64, bool) {
				for i := range s.Metrics {
					if s.Metrics[i].Name == m.Name {
						return s.Metrics[i].P50, true
					}
				}
				return 0, false
			}})
		}
	}
	return all
}

// Metrics returns the most important numbers of every run, in the order of columns.
func Metrics() []Metric {
	whole := func(v float64) string { return units.Count(int64(v)) }
	counter := func(name, path string, drop int, of func(*record.Network) int64) Metric {
		return Metric{Name: name, drop: drop, write: whole, Of: func(s *record.Summary) (float64, bool) {
			return float64(of(&s.Network)), s.Network.Packets > 0 && s.Lacks("network."+path) == ""
		}}
	}
	trims := counter("trims", "trims", 4, func(n *record.Network) int64 { return n.Trims })
	trims.rare = true
	return []Metric{
		{Name: "FCT p50", Unit: "us", drop: 5, write: micros,
			Of: func(s *record.Summary) (float64, bool) { return s.Flows.FCT.P50, complete(s) }},
		{Name: "FCT p99", Unit: "us", write: micros,
			Of: func(s *record.Summary) (float64, bool) { return s.Flows.FCT.P99, complete(s) }},
		{Name: "slowdown p99", drop: 1, write: units.Number,
			Of: func(s *record.Summary) (float64, bool) { return s.Flows.Slowdown.P99, complete(s) }},
		{Name: "busbw", Unit: "Gb/s", drop: 2, write: gbps, First: true,
			Of: func(s *record.Summary) (float64, bool) { return BusBW(s), BusBW(s) > 0 }},
		{Name: "time", Unit: "us", drop: 2, write: micros, Of: JobTime},
		{Name: "RTT mean", Unit: "us", drop: 7, write: micros,
			Of: func(s *record.Summary) (float64, bool) {
				return s.RTT.Mean, answered(s) && s.Lacks("rtt_us.mean") == ""
			}},
		{Name: "queue p99", Unit: "us", drop: 3, write: micros,
			Of: func(s *record.Summary) (float64, bool) {
				return s.Network.QueueDelay.P99, delivered(s) && s.Lacks("network.queue_delay_us.p99") == ""
			}},
		counter("marks", "ce_marks", 8, func(n *record.Network) int64 { return n.CEMarks }),
		counter("drops", "drops", 4, func(n *record.Network) int64 { return n.Drops }),
		trims,
	}
}

// Incomplete reports whether any run has unfinished flows. Tables then show how many flows
// finished.
func Incomplete(runs []*record.Summary) bool {
	return slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Flows.Unfinished > 0 })
}

// workloads writes the table of runs with a workload: their differing settings and their results.
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
	if !slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Engine != "emu" }) {
		cols = append(cols, number("dilation", 6, func(s *record.Summary) string { return units.Number(s.Dilation) }))
	}
	flows := number("flows", 6, func(s *record.Summary) string {
		return known(s.Flows.Count > 0, units.Count(s.Flows.Count))
	})
	if Incomplete(runs) {
		flows = number("done", 0, func(s *record.Summary) string { return known(s.Flows.Count > 0, done(s)) })
	}
	cols = append(cols, flows)
	for _, m := range MetricsOf(runs) {
		if m.Absent(runs) {
			continue
		}
		cols = append(cols, number(m.Heading(runs), m.drop, func(s *record.Summary) string {
			v, is := m.Of(s)
			return known(is, m.write(v))
		}))
	}
	if slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Network.Cut > 0 }) {
		cols = append(cols, number("cut", 4, func(s *record.Summary) string {
			return known(s.Network.Packets > 0 && s.Lacks("network.cut") == "", units.Count(s.Network.Cut))
		}))
	}
	status := Column{Name: "status"}
	for _, s := range runs {
		status.Cells, status.Grades = append(status.Cells, Outcome(s)), append(status.Grades, s.Outcome().Grade())
	}
	return Columns(w, append(cols, status), "--json has all", st)
}

// BusBW returns the bus bandwidth of a run's first collective in Gb/s, or 0 if there is none or it
// did not finish.
func BusBW(s *record.Summary) float64 {
	if len(s.Collectives) == 0 {
		return 0
	}
	return s.Collectives[0].BusBWGbps
}

// JobTime returns the time in us of a run's first item if that has a label, such as a job of a
// file, or no bandwidth. is is false for other runs and unfinished jobs.
func JobTime(s *record.Summary) (us float64, is bool) {
	if len(s.Collectives) == 0 || BusBW(s) > 0 && s.Collectives[0].Label == "" {
		return 0, false
	}
	us = s.Collectives[0].TimeUS
	return us, us > 0
}

// KeyMetrics returns the numbers that identify a run at a glance: the 99th percentile of slowdown,
// and the bus bandwidth of its first collective, or without a workload the error of its clocks. A
// missing number is a dash.
func KeyMetrics(s *record.Summary) (slowdown, busbw string) {
	if s.Flows.Count == 0 && s.Clocks.Samples > 0 {
		return "clocks " + micros(s.Clocks.Error.P99/1e3), "–"
	}
	return known(complete(s), units.Number(s.Flows.Slowdown.P99)), known(BusBW(s) > 0, gbps(BusBW(s)))
}

// Outcome says in a word or two how a run ended.
func Outcome(s *record.Summary) string { return outcome(s).text }
