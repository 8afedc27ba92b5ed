package flows

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"weft/collectives/graph"
	"weft/internal/clip"
	"weft/units"
)

// Looks reports whether a file that begins with head is a list of flows.
func Looks(head []byte) bool {
	for line := range strings.Lines(string(head)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		_, err := strconv.Atoi(fields[0])
		return fields[0] == "Nodes" || fields[0] == "Connections" || len(fields) == 1 && err == nil
	}
	return false
}

// Parse reads a list of flows.
func Parse(file string, r io.Reader) (*List, error) {
	s := &scanner{file: file, lines: bufio.NewScanner(r)}
	s.lines.Buffer(make([]byte, 0, 1<<12), maxLine)
	if !s.next() {
		return nil, s.end(errors.New("an empty file"))
	}
	if len(s.fields) == 1 {
		return parseFlowTxt(s)
	}
	return parseMatrix(s)
}

// maxLine is the maximum length of a line in bytes.
const maxLine = 1 << 12

// scanner reads the lines of a file that are neither empty nor comments.
type scanner struct {
	file   string
	lines  *bufio.Scanner
	line   int
	fields []string
}

func (s *scanner) next() bool {
	for s.lines.Scan() {
		s.line++
		s.fields = strings.Fields(s.lines.Text())
		if len(s.fields) > 0 && s.fields[0][0] != '#' {
			return true
		}
	}
	return false
}

// end returns the error of reading, or err.
func (s *scanner) end(err error) error {
	if bad := s.lines.Err(); bad != nil {
		return &graph.Error{At: fmt.Sprintf("%s:%d", s.file, s.line+1), Err: bad}
	}
	if err != nil {
		return &graph.Error{At: fmt.Sprintf("%s:%d", s.file, max(1, s.line)), Err: err}
	}
	return nil
}

func (s *scanner) errorf(format string, args ...any) error {
	return graph.Errorf(s.file, s.line, format, args...)
}

// number parses a whole number from 0.
func (s *scanner) number(what, text string, most int64) (int, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, s.errorf("%s is %q; expected a whole number from 0 to %d", what, clip.Text(text), most)
	}
	return int(n), nil
}

// time parses a number of units of time.
func (s *scanner) time(what, text string, unit units.Time) (units.Time, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0) || x*float64(unit) > float64(graph.MaxTime) {
		return 0, s.errorf("%s is %q; expected a number from 0", what, clip.Text(text))
	}
	return units.Time(math.Round(x * float64(unit))), nil
}

// parseFlowTxt reads the flow list of an ns-3 simulation: the number of flows, and then for each
// its source, destination, priority group, destination port, bytes, and start in seconds.
func parseFlowTxt(s *scanner) (*List, error) {
	const columns = 6
	l := &List{File: s.file}
	count, err := s.number("the number of flows", s.fields[0], maxFlows)
	if err != nil {
		return nil, err
	}
	group := ""
	for len(l.Flows) < count && s.next() { // simulators do not read what follows: there are comments
		if len(s.fields) != columns {
			return nil, s.errorf("%d fields; expected source, destination, priority group, port, bytes and start in "+
				"seconds", len(s.fields))
		}
		f := Flow{Line: s.line}
		var size int
		for i, to := range []*int{&f.From, &f.To} {
			if *to, err = s.number([]string{"source", "destination"}[i], s.fields[i], graph.MaxRanks-1); err != nil {
				return nil, err
			}
		}
		if group == "" {
			group = s.fields[2]
		}
		if s.fields[2] != group {
			return nil, s.errorf("priority group %s after flows of group %s: all flows here have one priority",
				clip.Text(s.fields[2]), clip.Text(group))
		}
		if size, err = s.number("the size", s.fields[4], int64(graph.MaxSize)); err != nil {
			return nil, err
		}
		if f.At, err = s.time("the start", s.fields[5], units.Second); err != nil {
			return nil, err
		}
		f.Size = units.Bytes(size)
		l.Nodes = max(l.Nodes, f.From+1, f.To+1)
		l.Flows = append(l.Flows, f)
	}
	if err := s.end(nil); err != nil {
		return nil, err
	}
	if len(l.Flows) != count {
		return nil, s.end(fmt.Errorf("%d flows; the first line says %d", len(l.Flows), count))
	}
	return l, nil
}
