package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one error in a lab, and its position.
type Problem struct {
	File         string // as given to Parse
	Line, Column int    // from 1; 0 when the value did not come from the file
	Flag         string // the command-line flag that the value came from, such as "--set seed=x"; "" for the file
	Path         string // workload.0.ranks; "" when the file as a whole is meant
	Message      string // the wrong value, what was expected, and the nearest valid name if there is one
}

// Error formats the problem as file:line:column: path: message, or flag: path: message.
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

// Problems is everything that is wrong with a lab: at least one Problem, in the order of the file,
// with those of the command line last. It is the error that Parse returns.
type Problems []Problem

// Error formats one problem per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort sorts the problems of one file by position, those of the command line last.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Flag, b.Flag), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// maxProblems is the maximum number of problems shown. A file with more is probably no lab.
const maxProblems = 100

// report collects problems. The points of a sweep share most of their values, so it keeps each
// problem once.
type report struct {
	file  string
	found Problems
	seen  map[Problem]bool // those in found
	mute  map[place]bool   // places at which problems are dropped
	total int              // the number of problems, with repetitions
	more  bool             // there are more than found can hold
}

// place is the position at which a problem is reported.
type place struct {
	line, column int
	flag         string
}

func (p Problem) place() place { return place{p.Line, p.Column, p.Flag} }

func (o origin) place() place { return place{o.line, o.column, o.flag} }

// places returns the set of places of some problems.
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

// has reports whether a problem was found at a place.
func (r *report) has(at place) bool { return places(r.found)[at] }

// add adds a problem, unless it is known or there are too many.
func (r *report) add(at origin, path, format string, args ...any) {
	if r.mute[at.place()] {
		return
	}
	r.total++
	p := Problem{File: r.file, Line: at.line, Column: at.column, Flag: at.flag, Path: path,
		Message: fmt.Sprintf(format, args...)}
	switch {
	case r.seen[p]:
	case len(r.found) == maxProblems:
		r.more = true
	default:
		r.seen[p] = true
		r.found = append(r.found, p)
	}
}

// copy adds those problems of ps that are at the given places.
func (r *report) copy(ps Problems, at map[place]bool) {
	for _, p := range ps {
		if at[p.place()] {
			r.add(origin{line: p.Line, column: p.Column, flag: p.Flag}, p.Path, "%s", p.Message)
		}
	}
}

// full reports whether searching for more problems is pointless.
func (r *report) full() bool { return r.more || r.total > 10*maxProblems }

// err returns the problems as an error, nil if there are none.
func (r *report) err() error {
	if len(r.found) == 0 {
		return nil
	}
	found := slices.Clone(r.found)
	found.Sort()
	if r.more {
		found = append(found, Problem{File: r.file,
			Message: fmt.Sprintf("more than %d problems: the rest is not shown", maxProblems)})
	}
	return found
}
