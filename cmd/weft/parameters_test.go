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
	"weft/results/expect"
)

// Every claim of a paper selects runs that its labs have, in every combination of settings that it
// leaves open. Labs that --quick replaces are too large to be loaded for this.
func TestClaimsSelectRuns(t *testing.T) {
	names, err := paper.Names(library.Files)
	if err != nil || len(names) < 5 {
		t.Fatalf("%v: %q", err, names)
	}
	for _, name := range names {
		p, err := paper.Load(library.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Figures {
			f := &p.Figures[i]
			if len(f.Claims) == 0 {
				continue
			}
			for _, quick := range []bool{false, true} {
				if !quick && len(f.Quick.Labs) > 0 || quick && len(f.Quick.Labs)+len(f.Quick.Set) == 0 {
					continue
				}
				files, set := f.Work(quick)
				var points []expect.Point
				for _, l := range files {
					one, err := embedded(path.Join(name, l), set)
					if err != nil {
						t.Fatal(err)
					}
					for _, l := range one.Labs {
						at := expect.At(l.Point)
						if len(files) > 1 {
							at["lab"] = strings.TrimSuffix(l.Name, quickSuffix)
						}
						points = append(points, expect.Point{At: at})
					}
				}
				for _, c := range f.Claims {
					if quick && (c.Quick == "skip" || f.Quick.Skip) {
						continue
					}
					for _, text := range []string{c.Ours, c.Holds} {
						e, err := expect.ParseValue(text)
						if text == c.Holds {
							e, err = expect.Parse(text)
						}
						if text == "" || err != nil || !e.Cross() {
							continue // paper.Load has checked the syntax
						}
						if err := e.CheckSweep(points); err != nil {
							t.Errorf("%s, %s, quick %t: %s: %v", name, f.ID, quick, text, err)
						}
					}
				}
			}
		}
	}
}

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
			if r[1].Text == "" || r[2].Text == "" || strings.HasPrefix(r[2].Text, "the lab file") {
				t.Errorf("%s: %s: %q from %q", f.ID, r[0], r[1], r[2])
			}
		}
	}
}
