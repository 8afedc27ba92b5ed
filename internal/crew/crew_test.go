package crew

import (
	"sync/atomic"
	"testing"
	"time"
)

// Every piece of work is done once, and before Each returns, however many workers there are and however long they have slept.
func TestEach(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		c := New(workers)
		for n := range 200 {
			if n%50 == 49 {
				time.Sleep(2 * time.Millisecond) // until they sleep
			}
			done := make([]atomic.Int32, n)
			c.Each(n, func(i int) { done[i].Add(1) })
			for i := range done {
				if got := done[i].Load(); got != 1 {
					t.Fatalf("%d workers: piece %d of %d was done %d times", workers, i, n, got)
				}
			}
		}
		c.Close()
	}
}

// Close ends workers that sleep and those that look.
func TestClose(t *testing.T) {
	c := New(4)
	time.Sleep(5 * time.Millisecond)
	c.Close()
	New(4).Close()
}

// What a round costs beside its work.
func BenchmarkEach(b *testing.B) {
	c := New(2)
	defer c.Close()
	for b.Loop() {
		c.Each(16, func(int) {})
	}
}
