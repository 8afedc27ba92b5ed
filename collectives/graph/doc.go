// Package graph is the form in which jobs come in: for each rank, operations with dependencies. An
// operation computes for a time, sends or receives a message, or takes part in a collective.
// Packages below inputs read files of many formats into a Graph; Compile turns one into what hosts
// execute.
//
//	rank 0                            rank 1
//	0 compute 10us                    0 receive 1MB from 0, tag 7
//	1 send 1MB to 1, tag 7, after 0   1 all-reduce 25MB, after 0
//	2 all-reduce 25MB, after 1
//
// The one idea is that a graph says what a file says and no more: which operations there are, and
// what waits for what. How long a message takes, and by which algorithm a collective works, is the
// business of the run.
//
// Compile matches messages: the sends from one rank to another with the same tag and the receives
// there belong together in the order of the file. It gives each its place in the buffers, so that
// every message is verified, and returns an error with the place in the file for a message without
// its other end, for different sizes, and for operations that wait for each other in a cycle.
//
// Invariants of what Compile returns: an operation waits for earlier ones of its rank only; streams
// and flows are numbered from 0 without gaps; a collective has the same members at all of them.
//
// Start reading at Op and Graph, then Compile in compile.go. Facts in facts.go is what a graph
// amounts to, for people.
package graph
