package labfile

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weft/inputs"
	"weft/internal/clip"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/expect"
	"weft/results/store"
)

// File is a lab as read: its text, and one lab per point of its sweep.
type File struct {
	Source
	Labs []*lab.Lab // nil for points that Options.Only leaves out

	opts lab.Options
}

// Inputs returns the files that the lab names, for the directories of its runs.
func (f *File) Inputs() store.Inputs { return f.recorder.inputs(f.Name) }

// Slower reads a point of the sweep again, at another dilation.
func (f *File) Slower(point int, dilation float64) (*lab.Lab, error) {
	opts := f.opts
	opts.Retry = strconv.FormatFloat(dilation, 'f', -1, 64)
	labs, err := lab.Parse(f.Name, f.Text, opts)
	if err != nil {
		return nil, err
	}
	return labs[point], nil
}

// Load parses a lab with the command line's settings and checks it. It returns everything that is
// wrong as one lab.Problems.
func Load(src Source, opts lab.Options) (File, error) {
	if src.recorder == nil {
		src = newRecorder().Record(src)
	}
	opts.Read, opts.Files = src.Read, src.Files
	labs, err := lab.Parse(src.Name, src.Text, opts)
	var problems lab.Problems
	switch {
	case err == nil:
		read := slices.DeleteFunc(slices.Clone(labs), func(l *lab.Lab) bool { return l == nil })
		problems = append(experiment.Check(read), checkExpectations(src.Text, &lab.Rest{Labs: read, Network: true},
			wholeSweep(&src, opts, read))...)
	case errors.As(err, &problems):
		if other := noLabBut(&src); other != nil {
			return File{}, other
		}
		problems = slices.Concat(problems, checkRest(&src, opts, problems))
	default:
		return File{}, err
	}
	if len(problems) > 0 {
		problems.Sort()
		return File{}, problems
	}
	return File{src, labs, opts}, nil
}

// noLabBut returns the error for a file that is no lab, but a job or a network in a format that
// labs can name; nil: it is neither.
func noLabBut(src *Source) error {
	if src.Files == nil || src.Name == StdinName || bytes.HasPrefix(src.Text, []byte("weft:")) ||
		bytes.Contains(src.Text, []byte("\nweft:")) {
		return nil
	}
	name := path.Base(src.Name)
	format, err := inputs.Detect(src.Files, name)
	lines := "workload: [{trace: " + name + "}]; weft trace shows what is in it"
	containerlab := format == "" && bytes.Contains(src.Text, []byte("endpoints:")) // labs write between
	switch {
	case errors.Is(err, inputs.ErrNetwork) || containerlab:
		format, lines = "", "topology: {import: "+name+"}"
	case err != nil || format == "":
		return nil
	case format == inputs.MSCCL:
		lines = "workload: [{trace: " + name + ", size: 64MB}]"
	case format == inputs.Flows:
		lines = "workload: [{flows: " + name + "}]"
	}
	what := "a network"
	if format != "" {
		what = "a job in the format " + format
	}
	return lab.Problems{{File: src.Name, Line: 1, Column: 1, Message: what + ", not a lab; a lab beside it reads it: " +
		lines}}
}

// checkRest returns the problems of a lab's network and expectations that do not follow from those
// of its text.
func checkRest(src *Source, opts lab.Options, found lab.Problems) lab.Problems {
	rest := lab.RestOf(src.Name, src.Text, opts, found)
	var network lab.Problems
	if rest.Network {
		network = experiment.Check(rest.Labs)
	}
	network = slices.DeleteFunc(network, func(p lab.Problem) bool { return !rest.Sound(p) })
	return append(network, checkExpectations(src.Text, &rest, nil)...)
}

// wholeSweep returns what reads the points of a lab without the settings of the command line, which
// may take some away; labs if there are none, or if the file is no lab without them. It is nil if
// the command line reads some points alone.
func wholeSweep(src *Source, opts lab.Options, labs []*lab.Lab) func() []*lab.Lab {
	if opts.Only != nil {
		return nil
	}
	return sync.OnceValue(func() []*lab.Lab {
		if len(opts.Set) == 0 {
			return labs
		}
		opts.Set = nil
		whole, err := lab.Parse(src.Name, src.Text, opts)
		if err != nil {
			return labs
		}
		return whole
	})
}

// pointsOf returns the points of a sweep.
func pointsOf(labs []*lab.Lab) []expect.Point {
	points := make([]expect.Point, len(labs))
	for i, l := range labs {
		points[i].At = expect.At(l.Point)
	}
	return points
}

// checkExpectations reports expectations that do not parse, or that name or compare what this lab
// does not have. The points of a sweep share their expectations, so each problem is reported once.
// The points that are compared must exist in this lab, or in the whole sweep, which is nil if that
// is not known.
func checkExpectations(text []byte, rest *lab.Rest, whole func() []*lab.Lab) lab.Problems {
	lines, labs := strings.Split(string(text), "\n"), rest.Labs
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
		if rest.Network {
			scope.NoStep = experiment.StepsOf(l)
		}
		for _, e := range l.Expect {
			unknown = false
			crossed := false // it compares points, of those that a condition leaves
			expr, err := expect.Parse(e.Text)
			if err == nil {
				err = expr.Check(scope)
			}
			if err == nil && whole != nil && expr.Cross() && !compared[e.That()] {
				if err = expr.CheckSweep(pointsOf(lab.Meeting(labs, e))); err != nil && e.Flag == "" {
					err = expr.CheckSweep(pointsOf(lab.Meeting(whole(), e)))
				}
				compared[e.That()] = err == nil
				crossed = e.When != ""
			}
			var at *expect.Error
			if !errors.As(err, &at) || unknown {
				continue
			}
			if crossed {
				at.Msg += fmt.Sprintf(" (of the points that meet the condition %q)", clip.Text(e.When))
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

// column returns the column of a byte within an expectation. If the file does not contain the
// expectation literally (it is folded, or has escapes), it is the column where the expectation
// starts.
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
