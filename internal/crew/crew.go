// Package crew is a pool of workers for many short rounds of parallel work. The simulator runs the
// partitions of a network on it, in rounds of some ten microseconds to milliseconds. Between rounds
// a worker spins for a moment before it sleeps, because waking it costs as much as a short round.
package crew

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Crew is a pool of workers. One goroutine at a time starts rounds.
type Crew struct {
	helpers int
	round   atomic.Pointer[round]
	asleep  sync.Mutex // guards wake
	wake    *sync.Cond
	stopped bool
	gone    sync.WaitGroup
}

// round is one call of Each.
type round struct {
	n    int
	work func(int)
	next atomic.Int64 // next index to do
	left atomic.Int64 // calls that have not finished
}

// patience is the number of times a worker polls for a round before it sleeps: about ten
// microseconds.
const patience = 200

// New returns a crew of this many workers, including the caller of Each. Close stops it.
func New(workers int) *Crew {
	c := &Crew{helpers: workers - 1}
	c.wake = sync.NewCond(&c.asleep)
	for range c.helpers {
		c.gone.Go(c.help)
	}
	return c
}

// Each calls work(i) for each i from 0 to n-1, spread over the workers, and returns after the last
// call.
func (c *Crew) Each(n int, work func(int)) {
	if n < 2 || c.helpers == 0 {
		for i := range n {
			work(i)
		}
		return
	}
	r := &round{n: n, work: work}
	r.left.Store(int64(n))
	c.asleep.Lock()
	c.round.Store(r)
	c.asleep.Unlock()
	c.wake.Broadcast()
	r.do()
	for r.left.Load() > 0 {
		runtime.Gosched()
	}
	c.round.CompareAndSwap(r, nil)
}

// do takes calls of a round until none is left.
func (r *round) do() {
	for {
		i := int(r.next.Add(1)) - 1
		if i >= r.n {
			return
		}
		r.work(i)
		r.left.Add(-1)
	}
}

// help is the loop of a worker.
func (c *Crew) help() {
	var done *round
	for looks := 0; ; looks++ {
		r := c.round.Load()
		if r != nil && r != done {
			r.do()
			done, looks = r, 0
			continue
		}
		if looks < patience {
			runtime.Gosched()
			continue
		}
		c.asleep.Lock()
		for !c.stopped {
			if r := c.round.Load(); r != nil && r != done {
				break
			}
			c.wake.Wait()
		}
		stopped := c.stopped
		c.asleep.Unlock()
		if stopped {
			return
		}
		looks = 0
	}
}

// Close stops the workers and waits for them. Each must not be called afterwards.
func (c *Crew) Close() {
	c.asleep.Lock()
	c.stopped = true
	c.asleep.Unlock()
	c.wake.Broadcast()
	c.gone.Wait()
}
