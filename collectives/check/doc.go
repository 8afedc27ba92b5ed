// Package check proves schedules. It executes the programs of all ranks of a collective with a dumb
// scheduler that takes any legal step next, on symbolic buffers: every cell of a buffer holds the multiset of
// input cells that were reduced in it. The proof of a Spec is one order in which
//
//   - every send is received by exactly one receive of the same length and tag,
//   - no rank reads or writes a region that another of its ops is overwriting, and none overwrites a region
//     that is still being sent (a send reads its region until it is acknowledged),
//   - nothing is written to a region after the receive that calls itself final,
//   - no rank is left waiting, and
//   - each result holds every contribution that belongs in it exactly once, and nothing else.
//
// It holds for the order that was taken; tests take many, and unlikely ones (acknowledgements last, newest
// first). It is pure, slow, and meant for tests and small sizes.
package check
