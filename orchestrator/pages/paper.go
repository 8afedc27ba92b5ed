package pages

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"weft/internal/regular"
	"weft/orchestrator/lab"
	"weft/orchestrator/paper"
	"weft/results/expect"
	"weft/results/names"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/table"
	"weft/units"
)

// Pictures writes the charts of a figure beside the page, numbered from 1, and removes leftover
// charts with higher numbers.
func Pictures(stem string, pictures [][]byte) error {
	name := func(i int) string { return fmt.Sprintf("%s-%d.svg", stem, i+1) }
	for i, svg := range pictures {
		if err := regular.WriteOutput(name(i), svg); err != nil {
			return err
		}
	}
	for i := len(pictures); ; i++ {
		switch err := os.Remove(name(i)); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
	}
}

// Runs returns the facts about the runs of a figure, as names and values.
func Runs(points []expect.Point) [][2]string {
	var out [][2]string
	for _, p := range points {
		var at []string
		for _, k := range slices.Sorted(maps.Keys(p.At)) {
			at = append(at, k+"="+p.At[k])
		}
		out = append(out, [2]string{p.Summary.Run, strings.Join(at, " ") + ": " + p.Summary.Status})
	}
	return out
}

// Redraw draws the chart of a figure, or for a series over time one chart per matching run.
func Redraw(p paper.Plot, points []expect.Point) ([][]byte, error) {
	var chosen []expect.Point
	for _, pt := range points {
		ok := pt.Summary != nil && pt.Summary.Run != ""
		for path, v := range p.Where {
			ok = ok && pt.At[path] == v
		}
		if ok {
			chosen = append(chosen, pt)
		}
	}
	var reference []plot.Series
	for _, c := range p.Paper {
		reference = append(reference, plot.Series{Name: c.Name, X: c.X, Y: c.Y, Dashed: true})
	}
	switch p.Kind {
	case "sweep":
		d, err := report.SweepPlot{Title: p.Title, Caption: p.Caption, X: p.X, Y: p.Y, By: p.By, Log: p.Log,
			Near: p.Near, Reference: reference}.Draw(chosen)
		return one(d, err)
	case "cdf":
		c := report.FlowChart(p.Y)
		c.Title, c.Caption = p.Title, p.Caption
		distribution := report.Distribution
		if p.Y == "jobs" {
			c.X, c.Y.Label = plot.Axis{Label: "time of a collective", Unit: "us"}, "share of collectives"
			distribution = func(dir, _, name string) (plot.Series, error) { return report.Jobs(dir, name) }
		}
		c.X.Scale = plot.Linear
		if strings.Contains(p.Log, "x") {
			c.X.Scale = plot.Log10
		}
		for _, pt := range chosen {
			s, err := distribution(pt.Summary.Run, p.Y, names.Label(pt.At, p.By))
			if err != nil {
				return nil, err
			}
			c.Series = append(c.Series, s)
		}
		report.Paint(c.Series)
		c.Series = append(c.Series, reference...)
		return one(c, nil)
	}
	return overTime(p, chosen, reference)
}

// overTime draws one chart per run.
func overTime(p paper.Plot, points []expect.Point, reference []plot.Series) ([][]byte, error) {
	var out [][]byte
	for _, pt := range points {
		r, err := report.Load(pt.Summary.Run)
		if err != nil {
			return nil, err
		}
		f, err := map[string]func() (report.Figure, error){
			"queues": r.Queues, "rates": r.Rates, "cwnd": r.Windows, "acks": r.Acks, "clocks": r.Clocks,
		}[p.Kind]()
		if errors.Is(err, store.ErrNoTable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.Title = strings.TrimSuffix(p.Title+": "+names.Label(pt.At, p.By), ": ")
		f.Caption = strings.TrimSpace(p.Caption + " " + f.Caption)
		if p.Only != "" {
			f.Series = slices.DeleteFunc(f.Series, func(s plot.Series) bool { return s.Name != p.Only })
		}
		f.Series = append(f.Series, reference...)
		pictures, err := one(f, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, pictures...)
	}
	return out, nil
}

// one returns a drawing as a list, which is empty if it shows nothing.
func one(d report.Drawing, err error) ([][]byte, error) {
	if err == nil {
		var svg []byte
		if svg, err = d.SVG(); err == nil {
			return [][]byte{svg}, nil
		}
	}
	if errors.Is(err, plot.ErrEmpty) {
		return nil, nil
	}
	return nil, err
}

// verdictColumn is where Claims has the verdict, and claimGrades what that means.
const verdictColumn = 7

var claimGrades = map[string]record.Grade{paper.Pass: record.Good, paper.Fail: record.Bad, paper.Skipped: record.Doubt}

// Claims returns the table of claims.
func Claims(rows []paper.Row) table.Table {
	t := table.Table{Head: []string{"figure", "claim", "paper", "ours", "tolerance", "class", "whose", "verdict",
		"note"}}
	for _, r := range rows {
		t.Texts(r.ID+" "+r.Figure, r.Claim, r.Paper, r.Ours, r.Tolerance, r.Class, string(r.Group), r.Verdict, r.Note)
		t.Rows[len(t.Rows)-1][verdictColumn] = table.Result(r.Verdict, claimGrades[r.Verdict])
	}
	return t
}

// FigureClaims is Claims for the part of a figure in a page: those that fail first, each with its
// verdict first and a space before units, without the figure's name, and with the reasons for its
// tolerance.
func FigureClaims(rows []paper.Row) table.Table {
	order := []string{paper.Fail, paper.Pass, paper.Skipped}
	rows = slices.SortedStableFunc(slices.Values(rows), func(a, b paper.Row) int {
		return slices.Index(order, a.Verdict) - slices.Index(order, b.Verdict)
	})
	t := Claims(rows)
	t.Head = verdictFirst(t.Head)
	for i, row := range t.Rows {
		row[8].Text = strings.Join(slices.DeleteFunc([]string{row[8].Text, before("one side is enough: ",
			rows[i].OneSided),
			before("tolerance: ", rows[i].Why)}, func(s string) bool { return s == "" }), "; ")
		for _, k := range []int{2, 3, 8} {
			row[k].Text = strings.ReplaceAll(units.Spaced(row[k].Text), " %", "\u00a0%")
		}
		row[5].Text = paper.ClassWords(row[5].Text)
		t.Rows[i] = verdictFirst(row)
	}
	return t
}

// verdictFirst returns a row of Claims without the figure, and with the verdict first.
func verdictFirst[T any](row []T) []T {
	return slices.Concat(row[verdictColumn:verdictColumn+1], row[1:verdictColumn], row[verdictColumn+1:])
}

// before returns a text with a prefix, or "" if the text is empty.
func before(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// NotClaims returns the table of the sentences of a paper that no claim is made of.
func NotClaims(sentences []paper.Sentence) table.Table {
	t := table.Table{Head: []string{"the paper says", "why it is no claim"}}
	for _, s := range sentences {
		t.Texts(s.Says, s.Why)
	}
	return t
}

// FailuresFirst returns the parts of a paper's page: how many claims of each figure pass and fail,
// and then the parts of figures, those with a claim that fails before the others.
func FailuresFirst(rows []paper.Row, figures []report.Part) []report.Part {
	count := map[string]map[string]int{} // by figure and verdict
	for _, r := range rows {
		if count[r.ID] == nil {
			count[r.ID] = map[string]int{}
		}
		count[r.ID][r.Verdict]++
	}
	failed := func(p report.Part) int { return min(count[p.ID][paper.Fail], 1) }
	slices.SortStableFunc(figures, func(a, b report.Part) int { return failed(b) - failed(a) })
	t := table.Table{Head: []string{"figure", "fail", "pass", "skipped"}}
	for _, p := range figures {
		row := []table.Cell{{Text: p.Heading, Link: "#" + p.ID}}
		for _, v := range []string{paper.Fail, paper.Pass, paper.Skipped} {
			text := ""
			if n := count[p.ID][v]; n > 0 {
				text = fmt.Sprint(n)
			}
			row = append(row, table.Right(text))
		}
		t.Add(row...)
	}
	return append([]report.Part{{Heading: "Claims by figure", Tables: []table.Table{t}}}, figures...)
}

// Open returns the table of parameters that a paper leaves open.
func Open(parameters []paper.Parameter) table.Table {
	t := table.Table{Head: []string{"parameter", "value", "why", "sensitivity"}}
	for _, o := range parameters {
		t.Texts(o.Name, o.Value, o.Why, strings.Join(o.Sensitivity, ", "))
	}
	return t
}

// Parameters returns the table of all settings of a figure's labs: their values over all runs and
// their origin, which is an entry in paper.yml or the source of the default.
func Parameters(p *paper.Paper, f *paper.Figure, labs []*lab.Lab) table.Table {
	t := table.Table{Head: []string{"parameter", "value", "source"}}
	row := map[string]int{}
	for _, l := range labs {
		for _, s := range l.Sources {
			if about(s.Path) {
				continue
			}
			n, ok := row[s.Path]
			if !ok {
				n = len(t.Rows)
				row[s.Path] = n
				t.Texts(s.Path, "", sourceOf(p, f, s))
			}
			switch all := &t.Rows[n][1].Text; {
			case *all == "":
				*all = s.Value
			case !slices.Contains(strings.Split(*all, "; "), s.Value):
				*all += "; " + s.Value
			}
		}
	}
	return t
}

// about reports whether a setting describes the lab file instead of its network.
func about(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	return slices.Contains([]string{"name", "about", "expect", "report", "measure", "engine"}, first)
}

// sourceOf returns the origin of a value; without any entry, that is the lab.
func sourceOf(p *paper.Paper, f *paper.Figure, s lab.Source) string {
	if from, ok := strings.CutPrefix(s.From, "default: "); ok {
		return "default: " + from
	}
	said := p.Source(f, s.Path)
	switch {
	case strings.HasPrefix(s.From, "command line"):
		return "smaller, for --quick"
	case said == "":
		return "the lab file, " + s.From
	}
	return said
}
