package flows

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
	"weft/units"
)

// Looks reports whether a file that begins with head is a list of flows.
func Looks(head []byte) bool {
	fields := source.FirstFields(head)
	if fields == nil {
		return false
	}
	_, err := strconv.Atoi(fields[0])
	return fields[0] == "Nodes" || fields[0] == "Connections" || len(fields) == 1 && err == nil
}

// Parse reads a list of flows.
func Parse(file string, r io.Reader) (*List, error) {
	s := &scanner{Lines: source.NewLines(file, r)}
	if !s.next() {
		return nil, s.end(errors.New("an empty file"))
	}
	if len(s.fields) == 1 {
		return parseFlowTxt(s)
	}
	return parseMatrix(s)
}

// scanner reads the lines of a file that are neither empty nor comments.
type scanner struct {
	*source.Lines
	fields []string
}

func (s *scanner) next() bool {
	s.fields = s.Fields()
	return s.fields != nil
}

// end returns the error of reading, or err at the last line.
func (s *scanner) end(err error) error {
	if bad := s.Err(); bad != nil || err == nil {
		return bad
	}
	return s.Errorf("%w", err)
}

// number parses a whole number from 0.
func (s *scanner) number(what, text string, most int64) (int, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, s.Errorf("%s is %q; expected a whole number from 0 to %d", what, clip.Text(text), most)
	}
	return int(n), nil
}

// time parses a number of units of time.
func (s *scanner) time(what, text string, unit units.Time) (units.Time, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0) || x*float64(unit) > float64(graph.MaxTime) {
		return 0, s.Errorf("%s is %q; expected a number from 0", what, clip.Text(text))
	}
	return units.Time(math.Round(x * float64(unit))), nil
}

// parseFlowTxt reads the flow list of an ns-3 simulation: the number of flows, and then for each
// its source, destination, priority group, destination port, bytes, and start in seconds.
func parseFlowTxt(s *scanner) (*List, error) {
	const columns = 6
	l := &List{File: s.File}
	count, err := s.number("the number of flows", s.fields[0], maxFlows)
	if err != nil {
		return nil, err
	}
	group := ""
	for len(l.Flows) < count && s.next() { // simulators do not read what follows: there are comments
		if len(s.fields) != columns {
			return nil, s.Errorf("%d fields; expected source, destination, priority group, port, bytes and start in "+
				"seconds", len(s.fields))
		}
		f := Flow{Line: s.Number}
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
			return nil, s.Errorf("priority group %s after flows of group %s: all flows here have one priority",
				clip.Text(s.fields[2]), clip.Text(group))
		}
		if port, err := s.number("the port", s.fields[3], 1<<16-1); err != nil {
			return nil, err
		} else if port != 0 {
			l.Notes.Add(s.File, s.Number, "the port of flows, which have connections of their own,")
		}
		if size, err = s.number("the size", s.fields[4], int64(graph.MaxSize)); err != nil {
			return nil, err
		}
		if f.At, err = s.time("the start", s.fields[5], units.Second); err != nil {
			return nil, err
		}
		if size == 0 {
			return nil, s.Errorf("a flow of 0 bytes; expected at least 1")
		}
		f.Size = units.Bytes(size)
		l.Nodes = max(l.Nodes, f.From+1, f.To+1)
		l.Flows = append(l.Flows, f)
	}
	if err := s.end(nil); err != nil {
		return nil, err
	}
	for len(l.Flows) == count && s.next() {
		if len(s.fields) != columns {
			l.Notes.Add(s.File, s.Number, "text after the last flow")
		} else {
			l.Notes.Add(s.File, s.Number, "a flow beyond the number of flows in the first line")
		}
	}
	if len(l.Flows) != count {
		return nil, s.end(fmt.Errorf("%d flows; the first line says %d", len(l.Flows), count))
	}
	return l, nil
}
