package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/results/expect"
)

// maxLab is how much of a lab file is read: enough for the parser to see that it is too large, and no more,
// whatever the path names.
const maxLab = 12 << 20

// errIrregular is why a pipe, a socket or a device is not read.
var errIrregular = errors.New("it is not a regular file, and a lab is one")

// labFlags are the flags of every command that reads lab files and may change them.
type labFlags struct {
	set    []string
	engine lab.EngineOptions
}

func (f *labFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "replace a value of the lab, as in --set topology.k=8 (repeatable)")
	flags.StringVar(&f.engine.Kind, "engine", "", "auto, sim, emu or both; the lab says otherwise (default auto)")
}

// file is a lab file that was read: its text, and a lab for each point of its sweep.
type file struct {
	name string
	text []byte
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
	text, err := readLab(name)
	if err != nil {
		return file{}, usageError{err}
	}
	labs, err := lab.Parse(name, text, lab.Options{Set: f.set, Engine: f.engine, Read: beside(name)})
	if err != nil {
		return file{}, err
	}
	if problems := append(orchestrate.Check(labs), checkExpectations(text, labs, len(f.set) == 0)...); len(problems) > 0 {
		return file{}, problems
	}
	return file{name: name, text: text, labs: labs}, nil
}

// maxTrace is how much of a file that a lab names is read.
const maxTrace = 4 << 20

// beside reads the files that a lab names: those below its folder, wherever links of the file system lead.
func beside(labFile string) func(string) ([]byte, error) {
	return func(name string) (_ []byte, err error) {
		folder, err := os.OpenRoot(filepath.Dir(labFile))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, folder.Close()) }()
		info, err := folder.Stat(name)
		if err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a regular file")}
		}
		if err == nil && info.Size() > maxTrace {
			err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxTrace)}
		}
		if err != nil {
			return nil, err
		}
		f, err := folder.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		return io.ReadAll(io.LimitReader(f, maxTrace))
	}
}

// readLab reads a regular file: others, such as a pipe that nobody writes to, could keep weft waiting for ever.
func readLab(name string) (_ []byte, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); !mode.IsRegular() && !mode.IsDir() { // reading a directory is an error that says so
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIrregular}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxLab))
}

// checkExpectations reports expectations that do not parse, or that name or compare what this lab does not
// have. The points of a sweep share their expectations, so each problem is reported once. Whether the points exist that
// are compared is known only when no command line takes some of them away: when the sweep is whole.
func checkExpectations(text []byte, labs []*lab.Lab, whole bool) lab.Problems {
	lines := strings.Split(string(text), "\n")
	points := make([]expect.Point, len(labs))
	for i, l := range labs {
		points[i].At = expect.At(l.Point)
	}
	seen := map[lab.Problem]bool{}
	var out lab.Problems
	for _, l := range labs {
		scope := orchestrate.Scope(l)
		for i, e := range l.Expect {
			expr, err := expect.Parse(e.Text)
			if err == nil {
				err = expr.Check(scope)
			}
			if err == nil && whole && expr.Cross() {
				err = expr.CheckSweep(points)
			}
			var at *expect.Error
			if !errors.As(err, &at) {
				continue
			}
			p := lab.Problem{
				File: l.File, Line: e.Line, Column: column(lines, e, at.Offset),
				Path: fmt.Sprintf("expect.%d", i), Message: at.Msg,
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
