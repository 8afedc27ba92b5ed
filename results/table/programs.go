package table

import (
	"fmt"
	"strings"

	"weft/results/record"
	"weft/units"
)

// programs returns the grid of the programs' hosts, or nil without any.
func programs(s *record.Summary) *grid {
	if len(s.Programs) == 0 {
		return nil
	}
	g := &grid{}
	g.row(header("program"), header("host"), header("lab time"), header("wall time"), header("processor"),
		header("waited"), header("lines"), header("end"))
	for i := range s.Programs {
		p := &s.Programs[i]
		for k := range p.Hosts {
			h := &p.Hosts[k]
			end := cell{text: EndOf(h), colour: green}
			if h.Failed() {
				end.colour = red
			}
			waited, judged := h.Waited()
			g.row(left(p.Command), left(h.Host), right(micros(h.TimeUS)), right(micros(1e6*h.WallS)),
				right(micros(1e6*h.CPUS)), right(known(judged, percent(waited))),
				right(units.Count(h.Lines)), end)
		}
	}
	return g
}

// outputs says where the output of failed programs is, or "" without any.
func outputs(s *record.Summary) string {
	var files []string
	for i := range s.Programs {
		p := &s.Programs[i]
		for k := range p.Hosts {
			if p.Hosts[k].Failed() {
				files = append(files, fmt.Sprintf("%s/output/%d-%s.log", s.Run, p.Item, p.Hosts[k].Host))
			}
		}
	}
	if more := len(files) - 1; more > 0 {
		return fmt.Sprintf("%s, and %s more", files[0], units.Count(int64(more)))
	}
	return strings.Join(files, "")
}

// EndOf says in a few words how a program ended.
func EndOf(h *record.ProgramHost) string {
	switch {
	case h.Ended != "":
		return h.Ended
	case h.Signal != "":
		return h.Signal
	}
	return fmt.Sprintf("exit %d", h.Exit)
}

// metrics returns the grid of what programs printed, or nil without any.
func metrics(s *record.Summary) *grid {
	if len(s.Metrics) == 0 {
		return nil
	}
	g := &grid{}
	for i, row := range MetricRows(s) {
		cells := []cell{left(row[0])}
		for _, text := range row[1:] {
			cells = append(cells, right(text))
		}
		if i == 0 {
			for k := range cells {
				cells[k] = header(row[k])
			}
		}
		g.row(cells...)
	}
	return g
}

// MetricRows returns a table of what programs printed, with its head: a row for each metric, or for
// each size of its lines.
func MetricRows(s *record.Summary) [][]string {
	rows := [][]string{{"metric", "count", "min", "mean", "p50", "max"}}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		unit, scale := record.MetricUnit(m.Name)
		add := func(name string, count int, values ...float64) {
			row := []string{name, units.Count(int64(count))}
			for _, v := range values {
				row = append(row, units.Shown(scale*v, unit))
			}
			rows = append(rows, row)
		}
		if len(m.Groups) == 0 {
			add(m.Name, m.Count, m.Min, m.Mean, m.P50, m.Max)
		}
		for _, g := range m.Groups {
			add(m.Name+", "+g.At, g.Count, g.Min, g.Mean, g.P50, g.Max)
		}
	}
	return rows
}
