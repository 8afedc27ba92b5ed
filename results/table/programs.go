package table

import (
	"fmt"
	"strings"

	"weft/results/record"
	"weft/units"
)

// Programs returns the table of the programs' hosts.
func Programs(s *record.Summary) Table {
	t := Table{Head: []string{"program", "host", "lab time", "wall time", "processor", "waited", "lines", "end"}}
	for i := range s.Programs {
		p := &s.Programs[i]
		for k := range p.Hosts {
			h := &p.Hosts[k]
			end := Result(EndOf(h), record.Good)
			if h.Failed() {
				end.Mark = MarkBad
			}
			waited, judged := h.Waited()
			t.Add(Left(p.Command), Left(h.Host), Right(micros(h.TimeUS)), Right(micros(1e6*h.WallS)),
				Right(micros(1e6*h.CPUS)), Right(known(judged, percent(waited))), Right(units.Count(h.Lines)), end)
		}
	}
	return t
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

// Metrics returns the table of what programs printed: a row for each metric, or for each size of
// its lines.
func Metrics(s *record.Summary) Table {
	t := Table{Head: []string{"metric", "count", "min", "mean", "p50", "max"}}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		unit, scale := record.MetricUnit(m.Name)
		add := func(name string, count int, values ...float64) {
			row := []Cell{Left(name), Right(units.Count(int64(count)))}
			for _, v := range values {
				row = append(row, Right(units.Shown(scale*v, unit)))
			}
			t.Add(row...)
		}
		if len(m.Groups) == 0 {
			add(m.Name, m.Count, m.Min, m.Mean, m.P50, m.Max)
		}
		for _, g := range m.Groups {
			add(m.Name+", "+g.At, g.Count, g.Min, g.Mean, g.P50, g.Max)
		}
	}
	return t
}
