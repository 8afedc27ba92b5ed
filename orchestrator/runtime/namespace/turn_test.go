package namespace

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weft/orchestrator/runtime"
)

// However many nodes a lab has, few are brought up at once, and all are.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{slots: make(chan struct{}, runtime.AtOnce())}
		var all sync.WaitGroup
		var mu sync.Mutex
		now, most, done := 0, 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			now += n
			most = max(most, now)
			if n < 0 {
				done++
			}
		}
		nodes := 3 * runtime.AtOnce()
		for range nodes {
			all.Go(func() {
				_ = c.inTurn(func() error {
					count(1)
					time.Sleep(time.Second) // of the bubble
					count(-1)
					return nil
				})
			})
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); most > runtime.AtOnce() || done != nodes || took != 3*time.Second {
			t.Errorf("%d at once, %d done, in %v", most, done, took)
		}
	})
}
