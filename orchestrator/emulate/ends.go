package emulate

import (
	"context"
	"errors"
	"sync"
	"time"

	"weft/orchestrator/runtime"
)

// Times from a broken connection to the news of its cause. Ours.
const (
	// lastWords is from a broken connection to the news that a process of this machine ended, in
	// looks of this process, and lastRounds how often as long it waits for a process that has begun
	// to exit.
	lastWords  = 500 * time.Millisecond
	looks      = 50
	lastRounds = 20
	// farRounds is lastRounds for processes on other machines: the loss of a machine takes 3 s to
	// be noticed, and its connections may end before that.
	farRounds = 8
)

// ends are the processes of a cluster that have ended. They explain broken connections.
type ends struct {
	cluster runtime.Cluster
	out     chan runtime.Exit // each end; room for all

	mu   sync.Mutex
	all  []runtime.Exit
	over bool          // the cluster is closed, and no end follows
	news chan struct{} // closed, and replaced, with each end
}

// endsOf follows the ends of a cluster's processes, whose own Exits is not to be read any more.
func endsOf(cluster runtime.Cluster) *ends {
	e := &ends{cluster: cluster, news: make(chan struct{}), out: make(chan runtime.Exit, cap(cluster.Exits()))}
	go func() {
		defer close(e.out)
		for x := range cluster.Exits() {
			e.mu.Lock()
			e.all = append(e.all, x)
			close(e.news)
			e.news = make(chan struct{})
			e.mu.Unlock()
			e.out <- x
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
		close(e.news)
	}()
	return e
}

// first returns the first end that explains a broken connection, for which it waits; ok is false if
// there is none in time, or ctx ends. Time in which this process itself did not run does not count,
// and a process that has begun to exit has longer.
func (e *ends) first(ctx context.Context, explains func(*runtime.Exit) bool) (x runtime.Exit, ok bool) {
	seen := 0
	for round := range lastRounds {
		for range looks {
			e.mu.Lock()
			all, news, over := e.all[seen:], e.news, e.over
			e.mu.Unlock()
			for i := range all {
				if seen++; explains(&all[i]) {
					return all[i], true
				}
			}
			if over {
				return x, false
			}
			select {
			case <-news:
			case <-ctx.Done():
				return x, false
			case <-time.After(lastWords / looks):
			}
		}
		if !e.exiting() && (!far(e.cluster) || round >= farRounds) {
			break
		}
	}
	return x, false
}

// anyEnd is for ends.first: every end is a cause.
func anyEnd(*runtime.Exit) bool { return true }

// blame replaces err by its cause: the end of ctx, which explains everything, or else the death of
// a process, which explains a broken connection.
func (e *ends) blame(ctx context.Context, err error) error {
	if x, ok := e.first(ctx, anyEnd); ok {
		return Died(e.cluster, x)
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// exiting reports whether a process of the cluster on this machine has begun to exit.
func (e *ends) exiting() bool {
	c := e.cluster
	some := c.Fabric().Exiting()
	for i := range c.Agents() {
		some = some || c.Agent(i).Exiting()
	}
	for i := range c.Nodes() {
		some = some || c.Node(i).Exiting()
	}
	return some
}

// far reports whether a cluster is on other machines.
func far(cluster runtime.Cluster) bool {
	m, ok := cluster.(*machines)
	return ok && m.far
}
