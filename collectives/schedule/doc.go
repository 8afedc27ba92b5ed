// Package schedule turns a collective into the programs of its ranks: which messages each rank sends and
// receives, in which regions of its buffers, and in which order. One algorithm, one file. It is pure.
//
// In comes a Spec and a rank; out come that rank's Program (Build), what its buffers hold before and after
// (Shape), and the closed forms of its traffic (Volume). A rank's answers never need another rank's program,
// so a run of thousands of ranks holds only what each of them needs. Sizes are bytes; buffers hold float32
// elements, so every size and offset is a multiple of 4. Package check proves what the programs compute.
package schedule
