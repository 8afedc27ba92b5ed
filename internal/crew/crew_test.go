package crew

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestEach checks that every piece of work is done once, before Each returns, by workers that look
// for the round and by workers that sleep.
func TestEach(t *testing.T) { synctest.Test(t, testEach) }

func testEach(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		c := New(workers)
		for n := range 200 {
			if n%50 == 49 {
				synctest.Wait() // all workers sleep
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

// TestClose checks that Close ends workers that sleep and workers that look for a round.
func TestClose(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		c := New(4)
		synctest.Wait() // all workers sleep
		c.Close()
		New(4).Close()
	})
}

// BenchmarkEach measures the cost of a round without work.
func BenchmarkEach(b *testing.B) {
	c := New(2)
	defer c.Close()
	for b.Loop() {
		c.Each(16, func(int) {})
	}
}
