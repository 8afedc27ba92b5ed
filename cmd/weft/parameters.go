package main

import (
	"slices"
	"strings"

	"weft/orchestrator/lab"
	"weft/orchestrator/paper"
	"weft/results/report"
)

// parameters is the table of everything that the labs of a figure set: the values over all its runs, and where they come from: the paper, as
// paper.yml has it, or the source of the default.
func parameters(p *paper.Paper, f *paper.Figure, jobs []job) report.Table {
	t := report.Table{Head: []string{"parameter", "value", "source"}}
	row := map[string]int{}
	for i := range jobs {
		for _, s := range jobs[i].lab.Sources {
			if about(s.Path) {
				continue
			}
			n, ok := row[s.Path]
			if !ok {
				n = len(t.Rows)
				row[s.Path] = n
				t.Rows = append(t.Rows, []string{s.Path, "", sourceOf(p, f, s)})
			}
			if values := strings.Split(t.Rows[n][1], "; "); t.Rows[n][1] == "" {
				t.Rows[n][1] = s.Value
			} else if !slices.Contains(values, s.Value) {
				t.Rows[n][1] += "; " + s.Value
			}
		}
	}
	return t
}

// about says that a setting is of the lab file and not of what happens in its network.
func about(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	return slices.Contains([]string{"name", "about", "expect", "measure", "engine"}, first)
}

// sourceOf is where a value comes from. What nothing says anything about is written in the lab.
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
