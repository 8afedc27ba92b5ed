// Package check proves schedules of collectives. It executes the programs of all ranks on symbolic
// buffers: each cell of a buffer holds the multiset of the input cells that were reduced into it.
//
// The scheduler is arbitrary: whenever several steps are legal, an Order chooses the next one. The
// proof of a Spec is an execution in which
//
//   - every send has exactly one receive with the same length and tag,
//   - no rank reads or writes a region that another of its ops is overwriting, and none overwrites
//     a region that is still being sent (a send reads its region until it is acknowledged),
//   - nothing is written to a region after its final receive,
//   - no rank waits for ever, and
//   - each result holds every contribution that belongs in it exactly once, and nothing else.
//
// In come a Spec, or programs and layouts, and orders; out comes the first error. A proof holds for
// the orders that were tried; tests try many, and unlikely ones (acknowledgements last, newest
// first). The package is pure, slow, and meant for tests with small sizes. Start reading at
// Execute, then execution.take.
package check
