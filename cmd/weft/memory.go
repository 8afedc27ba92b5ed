package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"golang.org/x/sys/unix"
)

// firstHeap is the size in bytes that the heap reaches before the first garbage collection. A
// simulation of a thousand hosts needs less, and all of it lives to the end: collecting on the way
// would take a twentieth of its time. Our choice.
const firstHeap = 256 << 20

// firstAt100 is the heap in bytes at the first collection with GOGC=100; it is proportional
// (debug.SetGCPercent).
const firstAt100 = 4 << 20

// delayGC postpones the first garbage collection until the heap has firstHeap bytes. After that, or
// after a call of restore, GOGC applies as usual. A program whose heap is larger already, because
// it ran labs before, collects as usual.
func delayGC() (restore func()) {
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

// steadyGC is delayGC for a process that runs short simulations one after the other, without end:
// the heap has firstHeap bytes at each collection, or twice what lives. Otherwise a third of the
// processor time of points of 50 ms goes to collecting. GOMEMLIMIT applies, and so does GOGC.
func steadyGC() {
	if before := debug.SetGCPercent(100 * firstHeap / firstAt100); before != 100 {
		debug.SetGCPercent(before) // the user's
		return
	}
	var tune func(*[16]byte) // is called after each collection
	tune = func(*[16]byte) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetGCPercent(int(max(100, 100*firstHeap/max(1, live[0].Value.Uint64()))))
		runtime.SetFinalizer(new([16]byte), tune)
	}
	runtime.SetFinalizer(new([16]byte), tune)
}

// manyHosts is the size of a network from which large pages are worth the 20 ms that they cost a
// simulation: 9 % of its processor time with 1,024 hosts, 16 % with 8,192.
const manyHosts = 512

// largePages is how many bytes of the heap, at most, are in pages of 2 MB. Our choice: 8,192 hosts
// take 700 MB.
const largePages = 1 << 30

// useLargePages has the heap grow in pages of 2 MB, where the kernel allows it. A simulation of a
// thousand hosts touches more pages of 4 KB than the processor holds addresses for. The memory is
// taken only when it is used.
func useLargePages() {
	var info unix.Sysinfo_t
	for _, resource := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
		var limit unix.Rlimit
		if unix.Getrlimit(resource, &limit) != nil || limit.Cur != unix.RLIM_INFINITY {
			return
		}
	}
	if unix.Sysinfo(&info) != nil {
		return
	}
	// The runtime clears a block that begins in memory used before: of small ones, only the first.
	heap := make([][]byte, min(largePages, info.Totalram*uint64(info.Unit)/8)>>22)
	for i := range heap {
		heap[i] = make([]byte, 1<<22)
		_ = unix.Madvise(heap[i], unix.MADV_HUGEPAGE)
	}
	clear(heap)
	runtime.GC() // whatever is allocated next takes their place
}
