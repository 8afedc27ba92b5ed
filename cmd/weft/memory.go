package main

import (
	"runtime"
	"runtime/debug"
)

// firstHeap is the size in bytes that the heap reaches before the first garbage collection. A
// simulation of a thousand hosts needs less, and all of it lives to the end: collecting on the way
// would take a twentieth of its time. Our choice.
const firstHeap = 256 << 20

// delayGC postpones the first garbage collection until the heap has firstHeap bytes. After that, or
// after a call of restore, GOGC applies as usual. A program whose heap is larger already, because
// it ran labs before, collects as usual.
func delayGC() (restore func()) {
	// The heap at the first collection with GOGC=100; it is proportional (debug.SetGCPercent).
	const firstAt100 = 4 << 20
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	if now.HeapAlloc > firstAt100 {
		return func() {}
	}
	before := debug.SetGCPercent(100 * firstHeap / firstAt100)
	restore = func() { debug.SetGCPercent(before) }
	if before < 0 { // GOGC=off
		restore()
	} else {
		runtime.SetFinalizer(new([16]byte), func(*[16]byte) { restore() })
	}
	return restore
}
