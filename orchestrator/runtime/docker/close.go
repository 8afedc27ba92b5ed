package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/docker/docker/client"
	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime"
)

// Close ends every process and returns when all are gone, and their containers with them. Connections are closed first,
// at which processes end by themselves; whichever has not within the grace period is killed. It may be called at any
// time, and again, with the same result. An error means that something could not be ended or removed.
func (c *Cluster) Close() error {
	c.once.Do(func() { c.err = c.close() })
	return c.err
}

func (c *Cluster) close() error {
	around := func(step string, f func()) { _ = c.spec.Around(step, func() error { f(); return nil }) }
	around("hang up", c.hangUp)
	around("end processes", c.endProcesses)
	gone := c.awaitRemoval()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), removeTime)
	defer cancel()
	var all *multierror.Error
	if err := c.spec.Around("sweep", func() error { return c.sweep(ctx, gone) }); err != nil {
		all = multierror.Append(all, fmt.Errorf("%w; what is left is removed when the engine answers again, or by weft clean", err))
	} else if err := c.spec.Around("dismiss reaper", c.reaper.dismiss); err != nil {
		all = multierror.Append(all, err)
	}
	c.end()
	c.watch.Wait()
	close(c.exits)
	for _, p := range c.started {
		if p.pidfd >= 0 {
			unix.Close(p.pidfd)
		}
	}
	if err := c.engine.api.Close(); err != nil {
		all = multierror.Append(all, err)
	}
	return runtime.Plain(all)
}

// engineTime is how long an engine that does not answer is given to be back. Ours: a restart takes about two seconds.
const engineTime = 6 * time.Second

// sweep makes sure that no container of this launch is left. An engine that is being restarted is waited for.
func (c *Cluster) sweep(ctx context.Context, gone bool) error {
	over := time.Now().Add(engineTime)
	for {
		err := c.engine.sweep(ctx, c.id, gone)
		if err == nil || ctx.Err() != nil || !client.IsErrConnectionFailed(err) && c.engine.alive(ctx) == nil || time.Now().After(over) {
			return err
		}
		time.Sleep(sweepEvery)
	}
}

// endProcesses returns when no process of the lab runs any more. The engine is not needed for that.
func (c *Cluster) endProcesses() {
	var all []int
	for _, p := range c.started { // nothing is started after hangUp
		if p.pidfd >= 0 {
			all = append(all, p.pidfd)
		}
	}
	left := running(all, c.spec.Grace)
	for _, fd := range left {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may just have ended
	}
	running(left, removeTime)
}

// awaitRemoval waits for the engine to have removed what ended, and says whether it has.
func (c *Cluster) awaitRemoval() (gone bool) {
	over := time.After(removeTime)
	for _, p := range c.started {
		if p.pidfd < 0 || c.isLost() {
			return false // it has not been started, and must be removed by hand; or nobody tells
		}
		select {
		case <-p.gone:
		case <-over:
			return false
		}
	}
	return true
}

func (c *Cluster) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost != nil
}
