package table

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"weft/results/record"
	"weft/units"
)

// Points writes several runs, one per row: the points of a sweep, or several labs. Runs with
// measured clocks are in a second table of their own.
func Points(w io.Writer, runs []*record.Summary, st Style) error {
	var busy, clocked []*record.Summary
	for _, s := range runs {
		if s.Clocks.Samples > 0 {
			clocked = append(clocked, s)
		}
		if s.Clocks.Samples == 0 || s.Flows.Count > 0 {
			busy = append(busy, s)
		}
	}
	asWritten := func(text string) string { return text }
	if len(busy) > 0 {
		if err := Columns(w, PointColumns(busy, asWritten), "--json has all", st); err != nil {
			return err
		}
	}
	if len(busy) > 0 && len(clocked) > 0 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	if len(clocked) > 0 {
		return Beside(clockColumns(clocked)).Write(w, st, "")
	}
	return nil
}

// A PointNumber is a number in the tables of several runs.
type PointNumber struct {
	record.Number
	First bool // of the first collective alone
	drop  int  // see Column.Drop
	rare  bool // left out if it is 0 in all runs: few labs have it
}

// PointNumbers returns the most important numbers of runs, in the order of columns: those of every
// run, and the medians of what their programs printed. The time of jobs is there if any of the runs
// has one.
func PointNumbers(runs []*record.Summary) []PointNumber {
	numbers := record.Select("fct.p50", "fct.p99", "fct_slowdown.p99", "collective.0.busbw", "rtt.mean",
		"queue_delay.p99", "ce_marks", "drops", "trims")
	all := make([]PointNumber, len(numbers))
	for i, drop := range []int{5, 0, 1, 2, 7, 3, 8, 4, 4} {
		all[i] = PointNumber{Number: numbers[i], drop: drop}
	}
	all[3].First, all[8].rare = true, true
	if slices.ContainsFunc(runs, func(s *record.Summary) bool { _, is := JobTime(s); return is }) {
		all = slices.Insert(all, 4, PointNumber{Number: jobTime, drop: 2})
	}
	seen := map[string]bool{}
	for _, s := range runs {
		for _, m := range s.Metrics {
			if seen[m.Name] {
				continue
			}
			seen[m.Name] = true
			all = append(all, PointNumber{Number: record.Number{Head: m.Name, Of: func(s *record.Summary) (float64,
				error) {
				i := slices.IndexFunc(s.Metrics, func(o record.Metric) bool { return o.Name == m.Name })
				if i < 0 {
					return 0, errNotPrinted
				}
				return s.Metrics[i].P50, nil
			}}})
		}
	}
	return all
}

var errNotPrinted = errors.New("no program printed it")

// jobTime is the time of a job.
var jobTime = record.Number{Head: "time", Unit: record.Microseconds, Of: func(s *record.Summary) (float64, error) {
	if us, is := JobTime(s); is {
		return us, nil
	}
	return 0, errors.New("the run has no job that ended")
}}

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
	key := record.Select("fct_slowdown.p99", "collective.0.busbw", "clock_error.p99")
	if s.Flows.Count == 0 && s.Clocks.Samples > 0 {
		return "clocks " + key[2].Text(s), "–"
	}
	return key[0].Text(s), key[1].Text(s)
}

// Incomplete reports whether any run has unfinished flows. Tables then show how many flows
// finished.
func Incomplete(runs []*record.Summary) bool {
	return slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Flows.Unfinished > 0 })
}

// column returns a column with a cell for each run.
func column(name string, runs []*record.Summary, cell func(*record.Summary) Cell) Column {
	c := Column{Name: name}
	for _, s := range runs {
		c.Cells = append(c.Cells, cell(s))
	}
	return c
}

// numberColumn returns a column of a number. If runs have several collectives, it says that the
// number is of the first.
func numberColumn(n PointNumber, runs []*record.Summary) Column {
	c := column(n.Head, runs, func(s *record.Summary) Cell { return Right(n.Text(s)) })
	if n.First && slices.ContainsFunc(runs, func(s *record.Summary) bool { return len(s.Collectives) > 1 }) {
		c.Name = "first " + c.Name
	}
	c.Drop, c.vary = n.drop, true
	return c
}

// PointColumns returns the columns of a table of runs with a workload: their differing settings, as
// write writes them, their results, and their status. more are further numbers.
func PointColumns(runs []*record.Summary, write func(string) string, more ...PointNumber) []Column {
	lab := column("lab", runs, func(s *record.Summary) Cell { return Left(s.Lab) })
	engine := column("engine", runs, func(s *record.Summary) Cell { return Left(s.Engine) })
	lab.vary, engine.vary = true, true
	cols := append([]Column{lab}, swept(runs, write)...)
	cols = append(cols, engine)
	numbers := append(PointNumbers(runs), more...)
	if !slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Engine != "emu" }) {
		cols = append(cols, numberColumn(PointNumber{Number: headed("dilation", "dilation"), drop: 6}, runs))
	}
	flows := PointNumber{Number: headed("flows", "flows"), drop: 6}
	flows.Of = func(s *record.Summary) (float64, error) {
		if s.Flows.Count == 0 {
			return 0, errors.New("the run has no flows")
		}
		return float64(s.Flows.Count), nil
	}
	cols = append(cols, numberColumn(flows, runs))
	if Incomplete(runs) {
		last := &cols[len(cols)-1]
		last.Name, last.Drop = "done", 0
		for i, s := range runs {
			last.Cells[i] = Right(known(s.Flows.Count > 0, done(s)))
		}
	}
	if slices.ContainsFunc(runs, func(s *record.Summary) bool { return s.Network.Cut > 0 }) {
		numbers = append(numbers, PointNumber{Number: record.Select("cut")[0], drop: 4})
	}
	for _, n := range numbers {
		if n.rare && !slices.ContainsFunc(runs, func(s *record.Summary) bool { v, _ := n.Shown(s); return v > 0 }) {
			continue
		}
		cols = append(cols, numberColumn(n, runs))
	}
	return append(cols, column("status", runs, outcome))
}

// headed returns a number with another head.
func headed(name, head string) record.Number {
	n := record.Select(name)[0]
	n.Head = head
	return n
}

// clockColumns returns the columns of a table of runs with measured clocks.
func clockColumns(runs []*record.Summary) []Column {
	text := func(name string, of func(*record.Summary) string) Column {
		return column(name, runs, func(s *record.Summary) Cell { return Left(of(s)) })
	}
	cols := []Column{text("lab", func(s *record.Summary) string { return s.Lab }),
		text("point", func(s *record.Summary) string { return Point(s.Point) }),
		text("engine", func(s *record.Summary) string { return s.Engine }),
		text("clocks", func(s *record.Summary) string { return s.Clocks.Sync })}
	for _, n := range record.Select("clock_error.p50", "clock_error.p99", "clock_error.max", "clock_converged",
		"clock_bound.p50", "clock_coverage", "clock_share") {
		c := numberColumn(PointNumber{Number: n}, runs)
		for i, s := range runs {
			if n.Name == "clock_converged" && s.Clocks.ConvergedUS == nil {
				c.Cells[i].Text = "no"
			}
		}
		cols = append(cols, c)
	}
	return append(cols, column("status", runs, outcome))
}

// Outcome says in a word or two how a run ended.
func Outcome(s *record.Summary) string { return s.Outcome().String() }

// outcome returns the last cell of a row: in a word or two how the run ended.
func outcome(s *record.Summary) Cell { return Result(Outcome(s), s.Outcome().Grade()) }

// Modules writes a line for each congestion control that is a module, if runs have one.
func Modules(w io.Writer, runs []*record.Summary) error {
	var lines []string
	for _, s := range runs {
		if s.Module == nil {
			continue
		}
		if line := "module  " + moduleText(s.Module) + "\n"; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, ""))
	return err
}

// moduleText returns what identifies a module.
func moduleText(m *record.Module) string {
	return fmt.Sprintf("%s, %s, sha256 %s", m.Name, m.File, m.SHA256)
}

// MissedAmong returns the summaries with a missed expectation.
func MissedAmong(all []*record.Summary) []*record.Summary {
	return slices.DeleteFunc(slices.Clone(all), func(s *record.Summary) bool { return Missed(s) == 0 })
}

// Across writes the expectations over all points of sweeps, if there are any.
func Across(w io.Writer, judged []*record.Summary, st Style) error {
	for _, s := range judged {
		if len(s.Expect) == 0 {
			continue // of a sweep that has not ended
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", st.paint(bold, s.Lab)); err != nil {
			return err
		}
		if err := Expectations(s.Expect).Write(w, st, "  "); err != nil {
			return err
		}
	}
	return nil
}

// Compare writes one lab in two engines side by side, with the difference of the second from the
// first. A number that neither has is left out.
func Compare(w io.Writer, a, b *record.Summary, st Style) error {
	t := Table{Head: []string{strings.TrimSpace(a.Lab + " " + Point(a.Point)), side(a), side(b), "difference"}}
	for _, n := range sideNumbers(a, b) {
		x, inA := n.Shown(a)
		y, inB := n.Shown(b)
		if !inA && !inB {
			continue
		}
		c := Right("")
		if inA && inB && x != 0 {
			share := (y - x) / x
			if c.Text = units.FormatChange(share); math.Abs(share) > 0.10 {
				c.Mark = MarkDoubt
			}
		}
		t.Add(Left(n.Label), Right(n.Text(a)), Right(n.Text(b)), c)
	}
	return t.Write(w, st, "")
}

// side names a side of a comparison: its engine, and how far to trust it.
func side(s *record.Summary) string {
	if s.Fidelity == nil {
		return s.Engine
	}
	return fmt.Sprintf("%s (fidelity %s)", s.Engine, s.Fidelity.Verdict)
}

// sideNumbers returns the numbers of two runs of one lab that Compare shows.
func sideNumbers(a, b *record.Summary) []record.Number {
	all := record.Select("fct.mean", "fct.p50", "fct.p99", "rtt.mean", "rtt.p50", "rtt.p99", "queue_delay.mean",
		"queue_delay.p50", "queue_delay.p99", "max_queue", "ce_marks", "drops", "clock_error.p50", "clock_error.p99")
	for i := range min(len(a.Collectives), len(b.Collectives)) {
		n := record.Select(fmt.Sprintf("collective.%d.time", i))[0]
		n.Label = fmt.Sprintf("%s %d", a.Collectives[i].Name, i)
		all = append(all, n)
	}
	return all
}

// Reasons lists, each once, why runs failed and which expectations they missed: the outcome, the
// runs, and what happened. Further lines of a reason begin with empty cells. Rows of expectations
// have a fourth cell with the value found. link returns the address of a run's report.
func Reasons(runs []*record.Summary, link func(run string) string) (t Table) {
	type reason struct{ status, text string }
	names := map[reason][]string{}
	name := func(s *record.Summary) string { return strings.TrimSpace(s.Lab + " " + Point(s.Point)) }
	for _, s := range runs {
		why := reason{s.Status, s.Error}
		names[why] = append(names[why], name(s))
	}
	add := func(s *record.Summary, result Cell, who string, texts ...string) {
		about := Left(who)
		if who != "" && s.Run != "" {
			about.Link = link(s.Run)
		}
		row := []Cell{result, about}
		for _, text := range texts {
			row = append(row, Left(text))
		}
		t.Add(row...)
	}
	for _, s := range runs {
		why := reason{s.Status, s.Error}
		if s.Error != "" && names[why] != nil {
			result, who := Result(s.Status, s.Outcome().Grade()), some(names[why])
			for line := range strings.SplitSeq(s.Error, "\n") {
				if who != "" {
					line = units.Spaced(line) // the others may have values for a lab
				}
				add(s, result, who, line)
				result, who = Cell{}, ""
			}
			names[why] = nil
		}
		for _, e := range s.Expect {
			if e.Missed() {
				add(s, Result("missed", record.Bad), name(s), e.That, Found(e))
			}
		}
	}
	return t
}

// Misses writes Reasons below the table of several runs. Without any it writes nothing.
func Misses(w io.Writer, runs []*record.Summary, st Style) error {
	return Reasons(runs, func(string) string { return "" }).Below(w, st, "")
}

// some names the first of several runs and counts the others.
func some(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// Started returns the runs without those that an interruption left out.
func Started(runs []*record.Summary) []*record.Summary {
	return slices.DeleteFunc(slices.Clone(runs), func(s *record.Summary) bool { return !s.Started() })
}

// Interrupted says how many points of a sweep ran before an interruption: "interrupted: 3 of 18
// points ran". It is empty if no run was interrupted.
func Interrupted(runs []*record.Summary) string {
	ran := 0
	for _, s := range runs {
		if s.Status != record.Interrupted {
			ran++
		}
	}
	if ran == len(runs) {
		return ""
	}
	return fmt.Sprintf("interrupted: %d of %d points ran", ran, len(runs))
}

// Unended says how many points of a sweep that has not ended have a result. submitted is its
// directory if it was submitted.
func Unended(runs []*record.Summary, submitted string) string {
	have, running := 0, false
	for _, s := range runs {
		running = running || s.Status == record.Running
		if s.Run != "" && s.Complete() {
			have++
		}
	}
	end := "did not end (it was killed)"
	if running {
		end = "has not ended yet"
	}
	if submitted != "" {
		end = "was submitted, and is not collected (weft sweep status " + submitted + ")"
	}
	return fmt.Sprintf("the sweep %s: %d of %d points have a result, and nothing was judged across points", end, have,
		len(runs))
}
