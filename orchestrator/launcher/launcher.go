// Package launcher knows how the programs of several hosts learn of each other.
//
// In goes a program and its hosts, in the order of their ranks. Out comes what each host runs, and
// with which environment: a Kind is torchrun's environment, or the launcher of an MPI library.
//
// The one idea: a launcher of MPI runs on the first host and asks for a program on each other host,
// as it would ask ssh. Kind.Ask has it ask in lines of text, and Weft starts what it asks for
// inside those hosts. So the library's own protocols run over the lab's network, unchanged.
//
// The package is pure. Start reading at Kind; kinds.go has all of them.
package launcher

import (
	"path/filepath"
	"slices"
)

// A Kind is a way to launch programs that belong together.
type Kind struct {
	name string

	// Environment returns variables for the program with the given rank, besides those of the lab;
	// nil: none.
	Environment func(rank int, hosts []string) []string

	// Leader returns the launcher to run on the first host instead of a program on each; nil: there
	// is none.
	Leader func(program, hosts []string) []string
	// Ask reads a line of the launcher's output. ok reports that the line asks for a program on a
	// host, and is no output.
	Ask func(line string, hosts []string) (a Asked, ok bool)
	// Talk reports that a line is part of the launcher's protocol and is no output; nil: none is.
	Talk func(line string) bool

	// Late is what may keep its programs from ending; "": nothing is known.
	Late string

	// Replaces are the programs that users of the kind know for starting their processes.
	Replaces []string

	// Program is what the machine needs, and Package the package that has it; "": nothing.
	Program, Package string
}

// Asked is a program that a launcher asks for.
type Asked struct {
	Rank int // of the host; outside of its hosts: it asks for one that it was not given
	Args []string
}

// Default returns the name of the kind that tells programs nothing.
func Default() string { return kinds[0].name }

// Names lists the kinds, that of Default first.
func Names() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	return names
}

// Of returns a kind by its name, or nil.
func Of(name string) *Kind {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// Replacing returns the names of the kinds that stand for a program, such as mpirun, or nil.
func Replacing(program string) (names []string) {
	for i := range kinds {
		if slices.Contains(kinds[i].Replaces, filepath.Base(program)) {
			names = append(names, kinds[i].name)
		}
	}
	return names
}

// Name returns the name of the kind.
func (k *Kind) Name() string { return k.name }
