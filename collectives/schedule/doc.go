// Package schedule turns a collective into the programs of its ranks: which messages each rank sends and
// receives, in which regions of its buffers, and in which order. One algorithm, one file; catalog.go lists
// them. It is pure.
//
// In comes a Spec and a rank; out come that rank's Program (Build), and without building it what its buffers
// hold before and after (Shape), the closed forms of its traffic (Volume), whom it exchanges with (Peers) and
// how many flows come to it at once (Inflow). A rank's answers never need another rank's program, so a run of
// thousands of ranks holds only what each of them needs, when it needs it. Sizes are bytes; every size and
// offset is a multiple of an element. Package check proves what the programs compute.
package schedule
