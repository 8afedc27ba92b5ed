package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/params"
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

// Error formats one problem per line. A mistake in three or more items of a list is on one line,
// with the places of the others.
func (ps Problems) Error() string {
	alike := map[Problem][]string{} // places
	for _, p := range ps {
		alike[p.alike()] = append(alike[p.alike()], fmt.Sprintf("%d:%d", p.Line, p.Column))
	}
	var lines []string
	told := map[Problem]bool{}
	for _, p := range ps {
		const few = 3
		like := p.alike()
		line, others := p.Error(), alike[like][1:]
		switch n := len(others); {
		case n < 2 || p.Flag != "":
		case told[like]:
			continue
		case n > few:
			line += fmt.Sprintf("; also at %s and %d other places", strings.Join(others[:few], ", "), n-few)
		default:
			line += "; also at " + strings.Join(others, ", ")
		}
		told[like] = true
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// alike returns the problem without its place, and with * for each index in its path.
func (p Problem) alike() Problem {
	names := strings.Split(p.Path, ".")
	for i, name := range names {
		if params.Digits(name) {
			names[i] = "*"
		}
	}
	return Problem{File: p.File, Flag: p.Flag, Path: strings.Join(names, "."), Message: p.Message}
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
	p := Problem{File: r.file, Line: at.line, Column: at.column, Flag: at.flag, Path: at.pathOf(path),
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

// again adds a problem that was found elsewhere.
func (r *report) again(p Problem) {
	r.add(origin{line: p.Line, column: p.Column, flag: p.Flag}, p.Path, "%s", p.Message)
}

// missing begins the message of a problem with a key that is not there.
const missing = "missing; "

// explained drops the problem that the key at path is missing: it is there, misspelt.
func (r *report) explained(path string) {
	r.found = slices.DeleteFunc(r.found, func(p Problem) bool {
		return p.Path == path && strings.HasPrefix(p.Message, missing)
	})
}

// copy adds those problems of ps that are at the given places.
func (r *report) copy(ps Problems, at map[place]bool) {
	for _, p := range ps {
		if at[p.place()] {
			r.again(p)
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
