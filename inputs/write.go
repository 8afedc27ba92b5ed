package inputs

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"weft/collectives/graph"
	"weft/inputs/chakra"
	"weft/inputs/goal"
	"weft/units"
)

// Written returns the names of the formats that jobs can be written in.
func Written() []string { return []string{GOAL, Chakra} }

// FormatOf returns the format that the name of a new file stands for: x.goal, or the folder x/ for
// Chakra. "": none.
func FormatOf(name string) string {
	switch {
	case strings.HasSuffix(name, "/"):
		return Chakra
	case path.Ext(name) == ".goal":
		return GOAL
	}
	return ""
}

// Round makes the times of a job's computations such that a format can say them, and notes it.
func Round(g *graph.Graph, format string) {
	switch format {
	case GOAL:
		g.Round(units.Nanosecond)
	case Chakra:
		g.Round(units.Microsecond)
	}
}

// Write writes a job in a format. create opens one of its files: "" for a format with one, or for
// Chakra rank.0.et and so on. It returns an error if the format cannot say what the job says; files
// may then be incomplete.
func Write(g *graph.Graph, format string, create func(name string) (io.WriteCloser, error)) error {
	one := func(name string, write func(io.Writer) error) error {
		f, err := create(name)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	switch format {
	case GOAL:
		return one("", func(w io.Writer) error { return goal.Write(w, g) })
	case Chakra:
		for rank := range g.Ranks {
			file := fmt.Sprintf("rank.%d.et", rank)
			if err := one(file, func(w io.Writer) error { return chakra.Write(w, g, rank) }); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("jobs cannot be written as %q; expected one of %s", format, strings.Join(Written(), ", "))
}
