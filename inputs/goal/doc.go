// Package goal reads GOAL schedules, in the text form and in the binary form of LogGOPSim and
// ATLAHS, and writes the text form.
//
//	num_ranks 2
//	rank 0 {
//	l1: calc 1000
//	l2: send 4096b to 1 tag 7
//	l2 requires l1
//	}
//	rank 1 {
//	l1: recv 4096b from 0 tag 7 cpu 1
//	}
//
// In comes a text with a statement on each line, read as a stream; out comes a graph.Graph. A calc
// computes for its nanoseconds on its cpu; a rank has the cpus that its statements name. "a
// requires b" makes a wait for b. "a irequires b" makes it wait for what b waits for, since an
// operation begins as soon as it may.
//
// The binary form (binary.go) has the same operations, of all ranks in order, each with the
// operations that wait for it. It is a stream, too: what its tables say is checked on the way.
//
// Start reading at Parse. Write is its inverse, for what GOAL can say.
package goal
