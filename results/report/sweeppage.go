package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"weft/results/expect"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/table"
)

// Chart is a drawing of a sweep with a name that files can have.
type Chart struct {
	Name string
	Drawing
}

// Charts draws the points of a sweep. A chart with nothing to show is left out.
func Charts(points []expect.Point) ([]Chart, error) {
	var out []Chart
	for _, o := range Overview(points) {
		d, err := o.Draw(points)
		if errors.Is(err, plot.ErrEmpty) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Chart{o.Name, d})
	}
	return out, nil
}

// SweepPage is the page about all points of a sweep: what was expected across them, a table, why points failed, what they warn of,
// links to their reports, which are in folders beside the sweep's, charts, the lab and how to run it again. first is the run of the
// first point.
func SweepPage(version string, first *Run, runs []*record.Summary, across []record.Expect, charts []Chart) (*Page, error) {
	p := &Page{Title: runs[0].Lab + ": sweep", About: first.setting("about"), Footer: "weft " + version}
	p.Verdict, p.Class = sweepVerdict(runs, across)
	if len(across) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "Expectations across points", Tables: []Table{Expectations(across)}})
	}
	p.Parts = append(p.Parts, Part{Heading: "Points", Tables: []Table{Points(runs)}, Links: runLinks(runs)})
	if rows := table.Reasons(runs); len(rows) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "What went wrong", Tables: []Table{{Head: []string{"", "point", "why", ""}, Rows: rows}}})
	}
	if warned := table.Warned(runs); len(warned) > 0 {
		t := Table{Head: []string{"of", "warning"}}
		for _, w := range warned {
			t.Rows = append(t.Rows, w[:])
		}
		p.Parts = append(p.Parts, Part{Heading: "Warnings", Tables: []Table{t}})
	}
	plots := Part{Heading: "Plots"}
	for _, c := range charts {
		svg, err := c.SVG()
		if err != nil {
			return nil, err
		}
		plots.Pictures = append(plots.Pictures, Inline(svg))
	}
	if len(plots.Pictures) > 0 {
		p.Parts = append(p.Parts, plots)
	}
	p.Parts = append(p.Parts, Part{Heading: "How to run it again", Pre: first.sweepAgain()}, Part{Heading: "The lab file", Pre: first.Lab})
	return p, nil
}

// Swept is what sweep.json says of the points of a sweep.
func Swept(runs []*record.Summary, across []record.Expect, version string) record.Sweep {
	sum := record.Sweep{Lab: runs[0].Lab, Expect: across, Version: version}
	for _, s := range runs {
		sum.Points = append(sum.Points, record.SweepPoint{
			Point: s.Point, Run: s.Run, Status: s.Status, Error: s.Error, Flows: s.Flows.Count, Done: s.Flows.Count - s.Flows.Unfinished,
			Warnings: s.Warnings,
		})
	}
	return sum
}

// runLinks lead from the page of a sweep to those of its runs.
func runLinks(runs []*record.Summary) [][2]string {
	var out [][2]string
	for _, s := range runs {
		if s.Run != "" {
			base := filepath.Base(s.Run)
			out = append(out, [2]string{strings.TrimSpace(base + " " + table.Point(s.Point)), "../" + base + "/report.html"})
		}
	}
	return out
}

func sweepVerdict(runs []*record.Summary, across []record.Expect) (text, class string) {
	failed, missed, expected, doubtful, invalid := 0, 0, len(across), 0, 0
	for _, s := range runs {
		if s.Status != record.OK {
			failed++
		}
		if s.Fidelity != nil && s.Fidelity.Verdict != "ok" {
			doubtful++
		}
		if s.Fidelity.Invalid() {
			invalid++
		}
		expected += len(s.Expect)
		missed += table.Missed(s)
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
	switch {
	case failed > 0:
		return fmt.Sprintf("%d of %d runs failed", failed, len(runs)), "bad"
	case invalid > 0:
		return fmt.Sprintf("the fidelity of %d of %d runs is invalid: do not use their numbers", invalid, len(runs)), "bad"
	case missed > 0:
		return fmt.Sprintf("%d runs, %d of %d expectations missed", len(runs), missed, expected), "bad"
	case doubtful > 0:
		return fmt.Sprintf("%d runs, the fidelity of %d is not ok", len(runs), doubtful), "doubt"
	case expected == 0:
		return fmt.Sprintf("%d runs ok; the lab expects nothing", len(runs)), ""
	}
	if skipped > 0 {
		return fmt.Sprintf("%d runs, %d of %d expectations met, the others skipped", len(runs), expected-skipped, expected), ""
	}
	return fmt.Sprintf("%d runs, every expectation met", len(runs)), ""
}
