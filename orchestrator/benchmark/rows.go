package benchmark

import (
	"fmt"
	"math"

	"weft/collectives/bench"
	"weft/results/plot"
	"weft/results/record"
)

// Rows returns the table of a run from its ranks' results: a row for each size that all ranks
// finished, in order.
func (m *Measured) Rows(parts []record.Part) ([]bench.Row, error) {
	spans := make([][][]bench.Span, len(m.Specs)) // by size and rank
	measures := make([]bench.Measure, len(m.Specs))
	for i := range spans {
		spans[i] = make([][]bench.Span, m.Specs[i].Ranks)
	}
	for _, p := range parts {
		if p.Item < 0 || p.Item >= len(spans) || p.Rank < 0 || p.Rank >= len(spans[p.Item]) {
			return nil, fmt.Errorf("rank %d of collective %d was not asked for", p.Rank, p.Item)
		}
		spans[p.Item][p.Rank] = append(spans[p.Item][p.Rank], bench.Span{Start: p.Start, End: p.End})
		measures[p.Item].Wrong += p.Wrong
		measures[p.Item].Checked = measures[p.Item].Checked || p.Checked > 0
	}
	var rows []bench.Row
	for i := range spans {
		for _, all := range spans[i] {
			if len(all) < m.Warmup+m.Iterations[i] {
				return rows, nil // later sizes did not start
			}
		}
		measures[i].Time = bench.Mean(spans[i], m.Warmup)
		row, err := bench.NewRow(m.Specs[i], &measures[i], nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Curve is one table for the picture.
type Curve struct {
	Name string
	Rows []bench.Row
}

// Chart draws bus bandwidth over size, one line per curve; ok is false if there is nothing to draw.
// line is the link rate in GB/s.
func Chart(title, caption string, line float64, curves []Curve) (plot.Chart, bool) {
	c := plot.Chart{
		Title: title, Caption: caption,
		X: plot.Axis{Label: "size", Unit: "B", Scale: plot.Log2},
		Y: plot.Axis{Label: "bus bandwidth", Unit: "GB/s", Zero: true},
	}
	any := false
	for _, curve := range curves {
		s := plot.Series{Name: curve.Name, Points: true}
		for _, r := range curve.Rows {
			if r.OutOfPlace == nil || r.Size <= 0 {
				continue
			}
			s.X = append(s.X, float64(r.Size))
			s.Y = append(s.Y, bench.GBps(r.OutOfPlace.Bus))
		}
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
			any = true
		}
	}
	if line > 0 && !math.IsInf(line, 0) {
		c.Marks = append(c.Marks, plot.Mark{Name: "line rate", At: line})
	}
	return c, any
}
