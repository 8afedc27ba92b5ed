// Package lab reads the lab file: strict YAML in, checked labs out, one for each point of its sweep, or every
// error at once with its line and column. It opens no file; callers hand it bytes.
//
// The text becomes a small tree of nodes that know where they came from. The sweep and the command line are
// edits of that tree, and defaults are text like any other, so that one decoder reads them all and every value
// of a Lab can say whether it is from a line, the sweep, a flag or a default (Lab.Sources). Most keys are declared beside the code that they are about (package params); declared.go reads them.
//
// Quantities carry their unit in the text and are typed afterwards: lab time in picoseconds, bytes, bits per
// second. What the format knows but no code honours yet is an error, never ignored.
package lab
