package fabric

import (
	"sync"
	"testing"
)

// Partitions that ask at the same time for the telemetry of packets of one slab, for the first
// time, are given the same memory: what one writes the others keep.
func TestRecordsOfASharedSlab(t *testing.T) {
	const parts = 4
	for range 200 {
		l := pool{store: newStore(true)}
		l.fill()
		var all sync.WaitGroup
		for part := range uint32(parts) {
			all.Go(func() { l.record(part).n++ })
		}
		all.Wait()
		for part := range uint32(parts) {
			if n := l.record(part).n; n != 1 {
				t.Fatalf("packet %d has %d hops", part, n)
			}
		}
	}
}
