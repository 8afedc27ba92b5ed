package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/results/expect"
	"weft/results/names"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/table"
	"weft/units"
)

// A Chart is a drawing of a sweep and its name, which is also that of its file.
type Chart struct {
	Name   string
	Of     string // what it is about, of record.Charts
	x      string // the path of the sweep that it is over
	curves bool   // it has a curve for each of several points, not a number
	Drawing
}

// Charts draws the points of a sweep, first what the lab of run first is about and then what its
// expectations name. It leaves out charts without data. across are the expectations across points.
func Charts(first *Run, points []expect.Point, across []record.Expect) ([]Chart, error) {
	var out []Chart
	for _, o := range overviewPlots(points) {
		d, err := o.Draw(points)
		if errors.Is(err, plot.ErrEmpty) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Chart{Name: o.Name, Of: o.Name, x: o.X, Drawing: d})
	}
	c, ok, err := distributions(points)
	if err != nil {
		return nil, err
	}
	if ok {
		out = append(out, c)
	}
	texts := append(expectationTexts(across), expectationsOf(points)...)
	lead(out, append(first.about(), named(texts)...), func(c Chart) string { return c.Of })
	return out, nil
}

// expectationsOf returns the texts of the expectations of all points.
func expectationsOf(points []expect.Point) (texts []string) {
	for _, p := range points {
		if p.Summary == nil {
			continue
		}
		for _, text := range expectationTexts(p.Summary.Expect) {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// swept describes the points of a sweep: "30 points; transport pc4, roce; ranks 2, 4".
func swept(runs []*record.Summary) string {
	paths := table.SweptPaths(runs)
	heads := shortPaths(paths)
	parts := []string{fmt.Sprintf("%d points", len(runs))}
	for i, path := range paths {
		var all []string
		for _, s := range runs {
			if v, ok := s.Point[path]; ok && !slices.Contains(all, names.Value(fmt.Sprint(v))) {
				all = append(all, names.Value(fmt.Sprint(v)))
			}
		}
		if len(all) > 6 {
			all = []string{all[0], fmt.Sprintf("... (%d values)", len(all)), all[len(all)-1]}
		}
		between := ", "
		if slices.ContainsFunc(all, func(v string) bool { return strings.Contains(v, between) }) {
			between = " · "
		}
		parts = append(parts, heads[i]+" "+strings.Join(all, between))
	}
	if !slices.Contains(paths, "seed") {
		parts = append(parts, "one seed, so no intervals")
	}
	if text := dilations(runs); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// dilations describes the dilation of runs; "": none was emulated.
func dilations(runs []*record.Summary) string {
	var all []float64
	for _, s := range runs {
		if s.Engine == "emu" && s.Dilation > 0 {
			all = append(all, s.Dilation)
		}
	}
	if len(all) == 0 {
		return ""
	}
	least, most := slices.Min(all), slices.Max(all)
	if least == most {
		return "dilation " + units.Number(least)
	}
	return "dilation " + units.Number(least) + " to " + units.Number(most)
}

// SweepPage returns the page of a sweep: its expectations, failures and warnings, charts, a table
// of its points with links to the reports of the runs (in directories beside the sweep's own), the
// lab file and the command that repeats it. first is the run of the first point. viewed reports
// whether the directory of a run has ViewFile.
func SweepPage(
	version string, first *Run, runs []*record.Summary, across []record.Expect, charts []Chart,
	viewed func(run string) bool,
) (*Page, error) {
	p := &Page{Title: runs[0].Lab + ": sweep", About: first.setting("about"), Sub: swept(runs),
		Footer: "weft " + version}
	p.Verdict, p.Grade = sweepVerdict(runs, across)
	runs = table.Started(runs)
	expected := expectations("Expectations across points", across)
	if len(across) > 0 && p.Grade != record.Good {
		p.Parts = append(p.Parts, expected)
	}
	if t := table.Reasons(runs, reportOf); len(t.Rows) > 0 {
		t.Head = []string{"", "point", "error or expectation", "found"}
		p.Parts = append(p.Parts, Part{Heading: "What went wrong", Tables: []table.Table{t}})
	}
	if warned := table.Warned(runs); len(warned.Rows) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "Warnings", Tables: []table.Table{warned}})
	}
	if note := SweepControllerNote(runs); note != "" {
		p.Parts = append(p.Parts, Part{Heading: "Fairness", Text: note})
	}
	plots := Part{Heading: "Charts"}
	invalid := 0
	for _, s := range runs {
		if s.Status == record.OK && s.Fidelity.Invalid() {
			invalid++
		}
	}
	if invalid > 0 {
		plots.Text = fmt.Sprintf("The charts have %s of invalid fidelity among them: see the status of points below.",
			plural.Count(invalid, "run"))
	}
	for _, c := range charts {
		svg, err := small(c.Drawing).SVG()
		if err != nil {
			return nil, err
		}
		plots.Pictures = append(plots.Pictures, Inline(svg))
	}
	if len(plots.Pictures) > 0 {
		p.Parts = append(p.Parts, plots)
	}
	if len(across) > 0 && p.Grade == record.Good {
		p.Parts = append(p.Parts, expected) // the verdict says that they are met
	}
	points, same := pointTable(runs, viewed)
	p.Parts = append(p.Parts, Part{Heading: "Points", Text: same, Tables: []table.Table{points}},
		Part{Heading: "How to run it again", Text: first.original(), Pre: first.sweepCommand(),
			Folded: []Folded{{Summary: "the lab file", Pre: first.Lab}}})
	return p, nil
}

// reportOf returns the address of a run's report from the page of its sweep.
func reportOf(run string) string { return "../" + filepath.Base(run) + "/report.html" }

// SweepRecord returns the contents of sweep.json. head has what identifies the sweep.
func SweepRecord(head record.Sweep, runs []*record.Summary, across []record.Expect) record.Sweep {
	head.Expect = across
	for _, s := range runs {
		head.Points = append(head.Points, record.SweepPoint{
			Point: s.Point, Seed: s.Seed, Run: s.Run, Status: s.Status, Outcome: s.Outcome().String(), Error: s.Error,
			Flows: s.Flows.Count, Done: s.Flows.Count - s.Flows.Unfinished, Warnings: s.Warnings,
		})
	}
	return head
}

// sweepVerdict returns the result of a sweep in one line, and its grade. An
// interruption comes before failed runs, then invalid fidelity, then missed expectations.
func sweepVerdict(runs []*record.Summary, across []record.Expect) (text string, grade record.Grade) {
	failed, missed, expected, doubtful, invalid := 0, 0, len(across), 0, 0
	for _, s := range runs {
		o := s.Outcome()
		if o.Status != record.OK && o.Status != record.Interrupted {
			failed++
		}
		if o.Doubtful() {
			doubtful++
		}
		if o.Fidelity == record.Invalid {
			invalid++
		}
		expected += o.Expected
		missed += o.Missed
	}
	skipped := 0
	for _, e := range across {
		switch {
		case e.Skipped:
			skipped++
		case !e.OK:
			missed++
		}
	}
	interrupted := table.Interrupted(runs)
	switch {
	case interrupted != "" && failed > 0:
		return fmt.Sprintf("%s, %d of them failed", interrupted, failed), record.Bad
	case interrupted != "":
		return interrupted, record.Doubt
	case failed > 0:
		return fmt.Sprintf("%d of %d runs failed", failed, len(runs)), record.Bad
	case invalid > 0:
		return fmt.Sprintf("fidelity of %d of %d runs invalid: do not use their numbers", invalid, len(runs)),
			record.Bad
	case missed > 0:
		return fmt.Sprintf("%d runs, %d of %d expectations missed", len(runs), missed, expected), record.Bad
	case doubtful > 0:
		return fmt.Sprintf("%d runs, fidelity of %d not ok", len(runs), doubtful), record.Doubt
	case expected == 0:
		return fmt.Sprintf("%d runs ok; the lab has no expectations", len(runs)), record.Good
	}
	if skipped > 0 {
		return fmt.Sprintf("%d runs, %d of %d expectations met, the others skipped", len(runs), expected-skipped,
			expected), record.Good
	}
	return fmt.Sprintf("%d runs, every expectation met", len(runs)), record.Good
}
