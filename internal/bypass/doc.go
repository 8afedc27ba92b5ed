// Package bypass makes the shared memory of bypass NICs, which holds the rings of package rings,
// and their bells, which wake a side that sleeps.
//
//	orchestrator: Create, NewBell ──► descriptors ──► node: Map, OpenBell
//	                                                └──► fabric: the same
//
// A node's NIC is one region, a memfd whose size is sealed, so that a process that has it cannot
// make another's access fail. A node gets its own and no other. A bell belongs to a process that
// drives nodes and the fabric process: a page in which each side says until when it sleeps by
// itself, and two eventfds. A side rings only for what is due before the other wakes by itself, so
// that nothing is woken while both are busy.
//
// Everything lives in descriptors and mappings: when both processes are gone, however they ended,
// so is the memory.
//
// Invariants. What the other side writes into a bell's page can make this side ring in vain, and
// nothing else. Instants are CLOCK_MONOTONIC in nanoseconds.
package bypass
