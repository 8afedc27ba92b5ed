// Package lab reads the lab file. The text of the file goes in, with the options of the command
// line; out come checked labs, one for each point of the file's sweep, or all errors at once, each
// with its line and column.
//
//	text ── load ──► tree of nodes ── sweep, --set ──► one tree per point ── decoder ──► Lab
//
// The one idea is that every value is text with an origin until it is decoded. The sweep and the
// command line are edits of the tree, and a default is text like any other. So one decoder reads
// them all, and every value of a Lab can say whether it is from a line, the sweep, a flag or a
// default (Lab.Sources). Keys are declared beside the code that they are about (package params);
// declared.go reads what is declared, and the JSON Schema, the reference and completion come from
// the same declarations.
//
// These must hold. Parsing is strict: what the format does not know, and what no code honours yet,
// is an error and never ignored. A Lab that Parse returned is complete and in range: a later stage
// never rejects it for a reason that its text alone could show. Nothing changes a Lab after Parse,
// and nothing changes a node once it is built, because sweep points share nodes. The package opens
// no file: callers pass the bytes, and Options.Read for files that a lab names. Hostile text costs
// no more than a large lab.
//
// Quantities carry their unit in the text and are typed afterwards: times in picoseconds, sizes in
// bytes, rates in bits per second.
//
// Start reading at Parse and decoder.lab in parse.go. tree.go is the tree, field.go a section and a
// value while they are read, declared.go the reader of declared keys, problem.go the errors. Each
// section of the file has a file here, except those that are declared elsewhere: the topology, the
// queues and the transports.
package lab
