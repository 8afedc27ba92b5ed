package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"weft/results/plot"
	"weft/results/store"
)

// ComparePage returns the page of a comparison: what differs, with charts of both sides, and below
// it everything that was compared. names are those of the sides. notes are shown at the top.
func ComparePage(version string, names [2]string, a, b Side, all []Difference, notes []string) (*Page, error) {
	labels := sideLabels(names, a, b)
	p := &Page{Title: labels[1] + " compared with " + labels[0], Sub: "A: " + names[0] + " · B: " + names[1],
		Footer: "weft " + version}
	count := map[string]int{}
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
	for _, v := range []struct{ verdict, words string }{
		{Worse, "worse"}, {Better, "better"}, {Differs, "different, neither better nor worse"},
	} {
		if n := count[v.verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v.words))
		}
	}
	p.Verdict = fmt.Sprintf("of %d numbers in B: %s", len(all), strings.Join(parts, ", "))
	switch {
	case len(differing) == 0:
		p.Verdict = NoneDiffers(all, false)
	case count[Worse] > 0 && count[Better] > 0:
		p.Class = "doubt"
	case count[Worse] > 0:
		p.Class = "bad"
	}
	for _, note := range notes {
		if note != "" {
			p.Doubts = append(p.Doubts, Spaced(note))
		}
	}
	order := []string{Worse, Differs, Better}
	slices.SortStableFunc(differing, func(x, y Difference) int {
		return slices.Index(order, x.Verdict) - slices.Index(order, y.Verdict)
	})
	if len(differing) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "What differs", Tables: []Table{compareTable(differing)}})
	}
	charts, err := compareCharts(a, b, labels)
	if err != nil {
		return nil, err
	}
	if len(charts) > 0 {
		part := Part{Heading: "Charts"}
		for _, c := range charts {
			svg, err := small(c).SVG()
			if err != nil {
				return nil, err
			}
			part.Pictures = append(part.Pictures, Inline(svg))
		}
		p.Parts = append(p.Parts, part)
	}
	if len(others) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "What does not differ, or cannot be judged",
			Text:   "~ is no difference beyond noise, ? cannot be judged.",
			Folded: []Folded{{Summary: "show them", Tables: []Table{compareTable(others)}}}})
	}
	return p, nil
}

// compareTable is ComparisonTable for a page: with commas between thousands, and without the points
// if there is only one.
func compareTable(all []Difference) Table {
	t := ComparisonTable(all)
	for _, row := range t.Rows {
		for i := range row[t.Numbers:t.Words] {
			mean, half, interval := strings.Cut(row[t.Numbers+i], " ±")
			if row[t.Numbers+i] = commas(mean); interval {
				row[t.Numbers+i] += " ±" + commas(half)
			}
		}
	}
	if !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[0] != t.Rows[0][0] }) {
		t.Head = t.Head[1:]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][1:]
		}
		t.Numbers, t.Words = t.Numbers-1, t.Words-1
	}
	return t
}

// sideLabels returns what tells two sides apart: the titles of two single runs, without what these
// share, or the names of directories.
func sideLabels(names [2]string, a, b Side) [2]string {
	if len(a) != 1 || len(b) != 1 {
		return [2]string{filepath.Base(names[0]), filepath.Base(names[1])}
	}
	x, y := a[0].title(), b[0].title()
	if lab := a[0].Manifest.Lab + ": "; strings.HasPrefix(x, lab) && strings.HasPrefix(y, lab) && x != y {
		return [2]string{strings.TrimPrefix(x, lab), strings.TrimPrefix(y, lab)}
	}
	return [2]string{x, y}
}

// compareCharts draws the flows of both sides.
func compareCharts(a, b Side, labels [2]string) ([]Drawing, error) {
	var out []Drawing
	for _, of := range []struct{ column, title, unit string }{
		{"fct_ps", "Flow completion times", "us"}, {"slowdown", "Slowdown", ""},
	} {
		c := plot.Chart{Title: of.title, Y: plot.Axis{Label: "share of flows"}, X: plot.Axis{
			Label: strings.ToLower(strings.TrimSuffix(of.title, "s")), Unit: of.unit, Scale: plot.Log10}}
		for i, side := range []Side{a, b} {
			var values []float64
			for _, r := range side {
				one, err := store.Numbers(r.Dir, store.FlowsFile, of.column)
				if err != nil && !errors.Is(err, store.ErrNoTable) {
					return nil, err
				}
				values = append(values, one...)
			}
			if of.unit == "us" {
				for k := range values {
					values[k] /= 1e6
				}
			}
			if s := plot.CDF(string("AB"[i])+": "+labels[i], values); len(s.X) > 0 {
				c.Series = append(c.Series, s)
			}
		}
		if len(c.Series) == 2 {
			Paint(c.Series)
			out = append(out, c)
		}
	}
	return out, nil
}
