package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing wrong with a lab, and where.
type Problem struct {
	File         string // as given to Parse
	Line, Column int    // from 1; 0 when the value did not come from the file
	Flag         string // the command-line flag that the value came from, such as "--set seed=x"; "" for the file
	Path         string // workload.0.ranks; "" when the file as a whole is meant
	Message      string // the offending value, what was expected, and the nearest valid name where there is one
}

// Error writes the problem as file:line:column: path: message, or flag: path: message.
func (p Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Flag != "":
		b.WriteString(p.Flag)
	case p.Line != 0:
		fmt.Fprintf(&b, "%s:%d:%d", p.File, p.Line, p.Column)
	default:
		b.WriteString(p.File)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	return b.String() + ": " + p.Message
}

// Problems is everything wrong with a lab: at least one Problem, in the order of the file, those of the
// command line last. It is the error Parse returns.
type Problems []Problem

// Error writes one problem per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort puts the problems of one file in the order of the file, those of the command line last.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Flag, b.Flag), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// maxProblems is how many problems are shown; who has more has another kind of file.
const maxProblems = 100

// report gathers problems. The points of a sweep share most of their values, so it keeps each problem once.
type report struct {
	file  string
	found Problems
	seen  map[Problem]bool
	told  map[place]bool // where problems are not added
	total int            // with repetitions
	more  bool
}

// place is where a problem is reported.
type place struct {
	line, column int
	flag         string
}

func (p Problem) place() place { return place{p.Line, p.Column, p.Flag} }

func (o origin) place() place { return place{o.line, o.column, o.flag} }

// places are those of problems.
func places(ps Problems) map[place]bool {
	all := make(map[place]bool)
	for _, p := range ps {
		all[p.place()] = true
	}
	return all
}

func newReport(file string) *report {
	return &report{file: file, seen: make(map[Problem]bool)}
}

// has says that a problem was reported at a place.
func (r *report) has(at place) bool { return places(r.found)[at] }

func (r *report) add(at origin, path, format string, args ...any) {
	if r.told[at.place()] {
		return
	}
	r.total++
	p := Problem{File: r.file, Line: at.line, Column: at.column, Flag: at.flag, Path: path, Message: fmt.Sprintf(format, args...)}
	switch {
	case r.seen[p]:
	case len(r.found) == maxProblems:
		r.more = true
	default:
		r.seen[p] = true
		r.found = append(r.found, p)
	}
}

// copy adds those of other problems that are at some places.
func (r *report) copy(ps Problems, at map[place]bool) {
	for _, p := range ps {
		if at[p.place()] {
			r.add(origin{line: p.Line, column: p.Column, flag: p.Flag}, p.Path, "%s", p.Message)
		}
	}
}

// full says that looking for more problems is no use.
func (r *report) full() bool { return r.more || r.total > 10*maxProblems }

// err returns the problems as an error, nil if there are none.
func (r *report) err() error {
	if len(r.found) == 0 {
		return nil
	}
	found := slices.Clone(r.found)
	found.Sort()
	if r.more {
		found = append(found, Problem{File: r.file, Message: fmt.Sprintf("more than %d problems: the rest is not shown", maxProblems)})
	}
	return found
}
