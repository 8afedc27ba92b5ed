package main

import (
	"path"
	"strings"
	"testing"

	library "weft/labs"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/pages"
	"weft/orchestrator/paper"
)

// Every parameter in the labs of the PC4 paper's figures has a source, and so has every default.
func TestEveryParameterOfPC4HasASource(t *testing.T) {
	p, err := paper.Load(library.Files, "pc4")
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Figures {
		f := &p.Figures[i]
		var all []labfile.File
		for _, l := range f.Labs {
			one, err := embedded(path.Join("pc4", l), f.Set)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		var labs []*lab.Lab
		for i := range all {
			labs = append(labs, all[i].Labs...)
		}
		rows := pages.Parameters(p, f, labs).Rows
		if len(rows) < 30 {
			t.Errorf("%s: %d parameters", f.ID, len(rows))
		}
		for _, r := range rows {
			if r[1] == "" || r[2] == "" || strings.HasPrefix(r[2], "the lab file") {
				t.Errorf("%s: %s: %q from %q", f.ID, r[0], r[1], r[2])
			}
		}
	}
}
