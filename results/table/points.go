package table

import (
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
	if len(busy) > 0 {
		if err := workloads(w, busy, st); err != nil {
			return err
		}
	}
	if len(busy) > 0 && len(clocked) > 0 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	if len(clocked) > 0 {
		return clockPoints(w, clocked, st)
	}
	return nil
}

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
		if err := expectations(s).write(w, st, "  "); err != nil {
			return err
		}
	}
	return nil
}

// gradeColours are the colours of outcomes.
var gradeColours = map[record.Grade]colour{record.Good: green, record.Doubt: yellow, record.Bad: red}

// outcome returns the last column: in a word or two how the run ended.
func outcome(s *record.Summary) cell {
	o := s.Outcome()
	return cell{text: o.String(), colour: gradeColours[o.Grade()]}
}

// Compare writes one lab in two engines side by side, with the difference of the second from the
// first.
func Compare(w io.Writer, a, b *record.Summary, st Style) error {
	var g grid
	g.row(header(strings.TrimSpace(a.Lab+" "+Point(a.Point))), header(column(a)), header(column(b)),
		header("difference"))
	for _, r := range comparison(a, b) {
		c := right("")
		if !math.IsNaN(r.share) {
			c = right(units.FormatChange(r.share))
			if math.Abs(r.share) > 0.10 {
				c.colour = yellow
			}
		}
		g.row(left(r.name), right(known(!math.IsNaN(r.a), r.text(r.a))), right(known(!math.IsNaN(r.b), r.text(r.b))), c)
	}
	return g.write(w, st, "")
}

// column names a side of a comparison: its engine, and how far to trust it.
func column(s *record.Summary) string {
	if s.Fidelity == nil {
		return s.Engine
	}
	return fmt.Sprintf("%s (fidelity %s)", s.Engine, s.Fidelity.Verdict)
}

type difference struct {
	name  string
	a, b  float64 // in microseconds, or as text has them; NaN without a value
	share float64 // (b - a) / a; NaN if a is 0 or a value is missing
	text  func(float64) string
}

func comparison(a, b *record.Summary) []difference {
	var out []difference
	as := func(text func(float64) string, name string, x, y float64) {
		share := math.NaN()
		if x != 0 {
			share = (y - x) / x
		}
		out = append(out, difference{name, x, y, share, text})
	}
	add := func(name string, x, y float64) { as(micros, name, x, y) }
	counted := func(path string, value func(*record.Network) int64, text func(int64) string, name string) {
		of := func(s *record.Summary) float64 {
			if s.Network.Packets == 0 || s.Lacks(path) != "" {
				return math.NaN()
			}
			return float64(value(&s.Network))
		}
		as(func(v float64) string { return text(int64(v)) }, name, of(a), of(b))
	}
	for _, d := range []struct {
		name string
		a, b record.Quantiles
	}{
		{"flow completion", only(complete(a), a, "flows.fct_us", a.Flows.FCT),
			only(complete(b), b, "flows.fct_us", b.Flows.FCT)},
		{"round trip", only(answered(a), a, "rtt_us", a.RTT), only(answered(b), b, "rtt_us", b.RTT)},
		{"switch queues", only(delivered(a), a, "network.queue_delay_us", a.Network.QueueDelay),
			only(delivered(b), b, "network.queue_delay_us", b.Network.QueueDelay)},
	} {
		add(d.name+" mean", d.a.Mean, d.b.Mean)
		add(d.name+" p50", d.a.P50, d.b.P50)
		add(d.name+" p99", d.a.P99, d.b.P99)
	}
	counted("network.max_queue_bytes", func(n *record.Network) int64 { return n.MaxQueue }, size, "largest queue")
	counted("network.ce_marks", func(n *record.Network) int64 { return n.CEMarks }, units.Count, "CE marks")
	counted("network.drops", func(n *record.Network) int64 { return n.Drops }, units.Count, "drops")
	if a.Clocks.Samples > 0 && b.Clocks.Samples > 0 {
		x, y := only(true, a, "clocks.error_ns", a.Clocks.Error), only(true, b, "clocks.error_ns", b.Clocks.Error)
		add("clock error p50", x.P50/1e3, y.P50/1e3)
		add("clock error p99", x.P99/1e3, y.P99/1e3)
	}
	for i := range min(len(a.Collectives), len(b.Collectives)) {
		add(fmt.Sprintf("%s %d", a.Collectives[i].Name, i), positive(a.Collectives[i].TimeUS),
			positive(b.Collectives[i].TimeUS))
	}
	return out
}

// only returns q, the field at a path of a summary, without the numbers that have no value; without
// any if not is.
func only(is bool, s *record.Summary, path string, q record.Quantiles) record.Quantiles {
	value := func(part string, v float64) float64 {
		if is && s.Lacks(path+part) == "" {
			return v
		}
		return math.NaN()
	}
	return record.Quantiles{Mean: value(".mean", q.Mean), P50: value(".p50", q.P50), P99: value(".p99", q.P99),
		Max: value(".max", q.Max)}
}

// positive returns v, or NaN for a time that was not measured.
func positive(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.NaN()
}

// Misses writes Reasons below the table of several runs. Without any it writes nothing.
func Misses(w io.Writer, runs []*record.Summary, st Style) error {
	var g grid
	for _, row := range Reasons(runs) {
		cells := []cell{{text: row.Cells[0], colour: red}}
		for _, text := range row.Cells[1:] {
			cells = append(cells, left(text))
		}
		g.row(cells...)
	}
	if len(g.rows) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return g.write(w, st, "")
}

// A Reason is a row of Reasons.
type Reason struct {
	Cells []string
	Grade record.Grade // of the outcome
	Run   string       // directory of the first run that the row is about; empty: it has none
}

// Reasons lists, each once, why runs failed and which expectations they missed: the outcome, the
// runs, and what happened. Further lines of a reason begin with empty cells. Rows of expectations
// have a fourth cell with the value found.
func Reasons(runs []*record.Summary) (rows []Reason) {
	type reason struct{ status, text string }
	names := map[reason][]string{}
	for _, s := range runs {
		why := reason{s.Status, s.Error}
		names[why] = append(names[why], strings.TrimSpace(s.Lab+" "+Point(s.Point)))
	}
	for _, s := range runs {
		why := reason{s.Status, s.Error}
		if s.Error != "" && names[why] != nil {
			status, who := s.Status, some(names[why])
			for line := range strings.SplitSeq(s.Error, "\n") {
				if who != "" {
					line = units.Spaced(line) // the others may have values for a lab
				}
				rows = append(rows, Reason{[]string{status, who, line}, s.Outcome().Grade(), s.Run})
				status, who = "", ""
			}
			names[why] = nil
		}
		for _, e := range s.Expect {
			if e.Missed() {
				cells := []string{"missed", strings.TrimSpace(s.Lab + " " + Point(s.Point)), e.That, Found(e)}
				rows = append(rows, Reason{cells, record.Bad, s.Run})
			}
		}
	}
	return rows
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
