// Package schedule compiles collectives into programs: for each rank, the messages it sends and
// receives, the buffer regions they read and write, and the order they must keep.
//
// The one idea is that a program is a dependency graph, not a script. Every Op lists the ops that
// must be complete before it may start; everything else may run at once. The transport decides what
// really overlaps. For example, rank 0 in a ring all-reduce of two ranks, a block each:
//
//	op   kind  peer  block             after
//	0    send  1     1
//	1    recv  1     0, reduce
//	2    send  1     0                 1: the reduced block must be there
//	3    recv  1     1, replace        0: the old block must have left
//
// In comes a Spec and a rank. Out come
//
//	Build    the rank's Program
//	Shape    the layout of its buffers, their initial content and the result
//	Volume   its traffic in closed form
//	Peers    the ranks it sends to and receives from
//	Inflow   the largest number of flows that it receives at once
//	Tags     an upper bound of all message tags
//
// All are functions of the Spec and the rank alone. No rank needs the program of another, so a run
// with thousands of ranks builds a program where and when it is needed.
//
// Invariants: each send has exactly one receive, with the same tag and length, at its peer. Volume,
// Peers and Tags agree with the program. Offsets and lengths are bytes, and multiples of an
// element. Executing the programs in any order that respects After yields the result that Shape
// states; package check proves that.
//
// Each algorithm has a file of its own; its type says where the algorithm comes from. Trees share
// tree.go, and ring, hierarchical, direct and halving-doubling programs find their dependencies by
// buffer region (builder.go) or by hand. catalog.go registers all of them. Start reading at Op in
// schedule.go, then Spec in spec.go, then ring.go.
package schedule
