package report

import (
	"errors"
	"fmt"
	"html/template"
	"path/filepath"
	"slices"
	"strings"

	"weft/results/expect"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/table"
	"weft/units"
)

// ComparePage returns the page of a comparison: what differs, with charts of both sides, and below
// it everything that was compared. from says where the sides are. notes are shown at the top.
func ComparePage(version string, from [2]string, a, b Side, all []Difference, notes []string) (*Page, error) {
	labels := sideLabels(from, a, b)
	p := &Page{Title: labels[1] + " compared with " + labels[0], Sub: "A: " + from[0] + " · B: " + from[1],
		Footer: "weft " + version}
	count := map[Verdict]int{}
	var differing, others []Difference
	for _, d := range all {
		count[d.Verdict]++
		if d.Verdict == Same || d.Verdict == Unknown {
			others = append(others, d)
		} else {
			differing = append(differing, d)
		}
	}
	var parts []string
	for _, v := range []struct {
		verdict Verdict
		words   string
	}{
		{Worse, "worse"}, {Better, "better"}, {Differs, "different, neither better nor worse"},
	} {
		if n := count[v.verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v.words))
		}
	}
	p.Verdict = fmt.Sprintf("of %d numbers in B: %s", len(all), strings.Join(parts, ", "))
	switch {
	case len(differing) == 0:
		p.Verdict = NoneDiffers(all, "")
	case count[Worse] > 0 && count[Better] > 0:
		p.Grade = record.Doubt
	case count[Worse] > 0:
		p.Grade = record.Bad
	}
	for _, note := range notes {
		if note != "" {
			p.Doubts = append(p.Doubts, units.Spaced(note))
		}
	}
	order := []Verdict{Worse, Differs, Better}
	slices.SortStableFunc(differing, func(x, y Difference) int {
		return slices.Index(order, x.Verdict) - slices.Index(order, y.Verdict)
	})
	if len(differing) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "What differs", Tables: []table.Table{compareTable(differing)}})
	}
	charts, err := compareCharts(a, b, labels)
	if err != nil {
		return nil, err
	}
	if len(charts) > 0 {
		part := Part{Heading: "Charts"}
		for _, c := range charts {
			var picture template.HTML // a row of the page, if these are two charts
			for _, d := range c.drawings {
				svg, err := small(d).SVG()
				if err != nil {
					return nil, err
				}
				picture += Inline(svg)
			}
			part.Pictures = append(part.Pictures, picture)
		}
		p.Parts = append(p.Parts, part)
	}
	if len(others) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "What does not differ, or cannot be judged",
			Text:   "~ is no difference beyond noise, ? cannot be judged.",
			Folded: []Folded{{Summary: "show them", Tables: []table.Table{compareTable(others)}}}})
	}
	return p, nil
}

// compareTable is ComparisonTable for a page: without the points if there is only one.
func compareTable(all []Difference) table.Table {
	t := ComparisonTable(all)
	for i := range all {
		t.Rows[i][0].Text = all[i].words
	}
	if !slices.ContainsFunc(all, func(d Difference) bool { return d.words != all[0].words }) {
		t.Head = t.Head[1:]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][1:]
		}
	}
	return t
}

// sideLabels returns what tells two sides apart: the titles of two single runs, without what these
// share, or the names of directories.
func sideLabels(from [2]string, a, b Side) [2]string {
	if len(a) != 1 || len(b) != 1 {
		return [2]string{filepath.Base(from[0]), filepath.Base(from[1])}
	}
	x, y := a[0].title(), b[0].title()
	if lab := a[0].Manifest.Lab + ": "; strings.HasPrefix(x, lab) && strings.HasPrefix(y, lab) && x != y {
		return [2]string{strings.TrimPrefix(x, lab), strings.TrimPrefix(y, lab)}
	}
	return [2]string{x, y}
}

// sidesPath is the path of the sweep that the sides of a comparison are.
const sidesPath = "lab"

// beside is a chart of a comparison, or two that belong beside each other.
type beside struct {
	about    string // of record.Charts
	drawings []Drawing
}

// compareCharts draws both sides: what the labs are about first, as a sweep over the sides, and
// over time if each side has a single point. A side without a run leaves nothing to draw.
func compareCharts(a, b Side, labels [2]string) ([]beside, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	first := append(a[0].about(), named(append(a.expected(), b.expected()...))...)
	var points []expect.Point
	for i, side := range []Side{a, b} {
		for _, r := range side.done() {
			at := expect.At(r.point())
			at[sidesPath] = string("AB"[i]) + ": " + labels[i]
			points = append(points, expect.Point{At: at, Summary: r.Summary})
		}
	}
	all, err := Charts(a[0], points, nil)
	if err != nil {
		return nil, err
	}
	one := len(a.byPoint(nameParts{})) == 1 && len(b.byPoint(nameParts{})) == 1
	var out []beside
	for _, c := range all {
		if b, ok := c.Drawing.(plot.Bars); ok && c.x == sidesPath {
			b.X.Label = ""
			c.Drawing = b
		}
		if !one || c.curves || slices.Contains(first, c.Of) { // else two bars, which the table has as numbers
			out = append(out, beside{c.Of, []Drawing{c.Drawing}})
		}
	}
	if one {
		x, y := a.done(), b.done()
		if shared := x.sharing(y); len(shared) > 0 {
			x, y = shared, y.sharing(x)
		}
		if len(x) == 0 || len(y) == 0 {
			return nil, nil
		}
		more, err := besideCharts([2]*Run{x[0], y[0]}, labels)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	lead(out, first, func(c beside) string { return c.about })
	return out, nil
}

// expected returns the texts of the expectations of a side's runs.
func (s Side) expected() []string {
	points := make([]expect.Point, len(s))
	for i, r := range s {
		points[i].Summary = r.Summary
	}
	return expectationsOf(points)
}

// besideCharts draws two runs over each other, and what they measured over time beside each other,
// with the same axes.
func besideCharts(runs [2]*Run, labels [2]string) (out []beside, err error) {
	sides := [2]string{"A: " + labels[0], "B: " + labels[1]}
	for _, name := range []string{"queues", "rates", "slowdown", "queueing"} {
		c, err := Overlay(runs[:], sides[:], name)
		switch {
		case errors.Is(err, plot.ErrEmpty):
		case err != nil:
			return nil, err
		case len(c.Series) > 1:
			c.Series[1].Dashed = true // both are seen where they are equal
			out = append(out, beside{name, []Drawing{c}})
		}
	}
	var figures [2][]Figure
	for i, r := range runs {
		if figures[i], err = r.Figures(); err != nil {
			return nil, err
		}
	}
	for _, x := range figures[0] {
		i := slices.IndexFunc(figures[1], func(f Figure) bool { return f.Name == x.Name })
		if x.X != timeAxis() || i < 0 {
			continue
		}
		y := figures[1][i]
		sameAxes(&x.Chart, &y.Chart)
		x.Title += ", " + sides[0]
		y.Title += ", " + sides[1]
		out = append(out, beside{x.Name, []Drawing{x, y}})
	}
	return out, nil
}
