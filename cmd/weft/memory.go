package main

import (
	"runtime"
	"runtime/debug"
)

// firstHeap is how large the heap may be before it is searched for garbage the first time. A simulation of a thousand hosts is
// smaller, and all of it lives to the end: to search it on its way there is a twentieth of its time. Ours.
const firstHeap = 256 << 20

// collectLate puts off the first garbage collection until the heap has firstHeap bytes. From then on, or after usual was called,
// collections are as they were set, by GOGC or by default.
func collectLate() (usual func()) {
	const leastHeap = 4 << 20 // when the first is due with GOGC=100, and in proportion: runtime/debug, SetGCPercent
	before := debug.SetGCPercent(100 * firstHeap / leastHeap)
	usual = func() { debug.SetGCPercent(before) }
	if before < 0 { // there are none at all
		usual()
	} else {
		runtime.SetFinalizer(new([16]byte), func(*[16]byte) { usual() })
	}
	return usual
}
