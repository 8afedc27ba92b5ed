package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	library "weft/labs"
	"weft/orchestrator/catalogue"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/expect"
	"weft/results/table"
)

// labFlags are the flags of every command that reads lab files and may change them.
type labFlags struct {
	set     []string
	engine  lab.EngineOptions
	builtIn bool // labs are those inside the program
}

func (f *labFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "replace a value of the lab, as in --set topology.k=8 (repeatable)")
	flags.StringVar(&f.engine.Kind, "engine", "", "auto, sim, emu or both; the lab says otherwise (default auto)")
}

// labsCommand is weft labs: the labs inside the program.
func (a *app) labsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "labs [WORD]", Short: "list the labs inside the program, which need no file",
		Long: "List the labs that come with Weft: what to call each, and what it is about. They are inside the program, so that\n" +
			"weft run pc4/incast works without a checkout. With a word, list only those that have it in their path, name or description.",
		Example: "  weft labs\n  weft labs incast\n  weft run pc4/incast --engine sim",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all := catalogue.List(library.Files)
			word := strings.ToLower(first(args))
			all = slices.DeleteFunc(all, func(e catalogue.Entry) bool {
				return !strings.Contains(strings.ToLower(e.Lab+"\n"+e.Name+"\n"+e.About), word)
			})
			if len(all) == 0 {
				return usagef("no lab has %q in its path, name or description; weft labs lists all", args[0])
			}
			if asJSON {
				return writeJSON(a.stdout, all)
			}
			var paths, about table.Column
			paths.Name, about.Name = "lab", "about"
			for _, e := range all {
				paths.Cells, about.Cells = append(paths.Cells, e.Lab), append(about.Cells, e.About)
			}
			return a.paged(func(w io.Writer) error {
				return table.Columns(w, []table.Column{paths, about}, "--json has all", style(a.stdout))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// file is a lab that was read: its text, and a lab for each point of its sweep.
type file struct {
	source
	labs []*lab.Lab
}

// load reads and checks lab files. Everything wrong in any of them is one lab.Problems.
func (f *labFlags) load(names []string) ([]file, error) {
	var files []file
	var problems lab.Problems
	for _, name := range names {
		one, err := f.loadOne(name)
		var ps lab.Problems
		switch {
		case errors.As(err, &ps):
			problems = append(problems, ps...)
		case err != nil:
			return nil, err
		default:
			files = append(files, one)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return files, nil
}

func (f *labFlags) loadOne(name string) (file, error) {
	src, err := openLab(name, f.builtIn)
	if err != nil {
		return file{}, usageError{err}
	}
	opts := lab.Options{Set: f.set, Engine: f.engine, Read: src.read}
	labs, err := lab.Parse(src.name, src.text, opts)
	var problems lab.Problems
	switch {
	case err == nil:
		problems = append(experiment.Check(labs), checkExpectations(src.text, &lab.Rest{Labs: labs, Network: true}, len(f.set) == 0)...)
	case errors.As(err, &problems):
		problems = slices.Concat(problems, checkRest(&src, opts, problems))
	default:
		return file{}, err
	}
	if len(problems) > 0 {
		problems.Sort()
		return file{}, problems
	}
	return file{source: src, labs: labs}, nil
}

// checkRest reports what is wrong with a lab's network and expectations beside the problems of its text, and does not follow from them.
func checkRest(src *source, opts lab.Options, found lab.Problems) lab.Problems {
	rest := lab.RestOf(src.name, src.text, opts, found)
	var network lab.Problems
	if rest.Network {
		network = experiment.Check(rest.Labs)
	}
	network = slices.DeleteFunc(network, func(p lab.Problem) bool { return !rest.Sound(p) })
	return append(network, checkExpectations(src.text, &rest, false)...)
}

// checkExpectations reports expectations that do not parse, or that name or compare what this lab does not
// have. The points of a sweep share their expectations, so each problem is reported once. Whether the points exist that
// are compared is known only when no command line takes some of them away: when the sweep is whole.
func checkExpectations(text []byte, rest *lab.Rest, whole bool) lab.Problems {
	lines, labs := strings.Split(string(text), "\n"), rest.Labs
	points := make([]expect.Point, len(labs))
	for i, l := range labs {
		points[i].At = expect.At(l.Point)
	}
	seen := map[lab.Problem]bool{}
	compared := map[string]bool{} // expectations whose points exist
	var out lab.Problems
	for _, l := range labs {
		scope, unknown := l.Scope(), false
		setting := scope.Setting
		scope.Setting = func(path string) (string, bool) {
			unknown = unknown || !rest.Has(path) || !rest.Network && strings.HasPrefix(path, "workload.")
			return setting(path)
		}
		if !rest.Network || !rest.Has("workload") {
			scope.Items = 0
		}
		for _, e := range l.Expect {
			unknown = false
			expr, err := expect.Parse(e.Text)
			if err == nil {
				err = expr.Check(scope)
			}
			if err == nil && whole && expr.Cross() && !compared[e.Text] {
				err = expr.CheckSweep(points)
				compared[e.Text] = err == nil
			}
			var at *expect.Error
			if !errors.As(err, &at) || unknown {
				continue
			}
			p := lab.Problem{
				File: l.File, Line: e.Line, Column: column(lines, e, at.Offset),
				Path: fmt.Sprintf("expect.%d", e.Index), Message: at.Msg,
			}
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// column is where in the file a byte of an expectation stands: to the right of where the expectation begins if
// it is written there as it is, else (it is folded, or has escapes) the beginning itself.
func column(lines []string, e lab.Expectation, offset int) int {
	if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len(lines[e.Line-1]) {
		return e.Column
	}
	rest := lines[e.Line-1][e.Column-1:]
	if rest != "" && strings.ContainsAny(rest[:1], `'"`) {
		rest, offset = rest[1:], offset+1
	}
	if !strings.HasPrefix(rest, e.Text) {
		return e.Column
	}
	return e.Column + offset
}
