package docker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
)

// close ends every process and returns when all are gone with their containers.
func (c *Cluster) close() error {
	around := func(step string, f func()) { _ = c.spec.Around(step, func() error { f(); return nil }) }
	around("hang up", c.HangUp)
	around("end processes", c.endProcesses)
	gone := c.awaitRemoval()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), removeTime)
	defer cancel()
	var all cleanup.Errors
	if err := c.spec.Around("sweep", func() error { return c.sweep(ctx, gone) }); err != nil {
		all.Add(fmt.Errorf("%w; the rest is removed once the engine answers again, or by weft clean", err))
	} else if err := c.spec.Around("dismiss reaper", c.reaper.dismiss); err != nil {
		all.Add(err)
	}
	c.end()
	c.watch.Wait()
	c.CloseExits()
	for _, p := range c.Started() {
		if p.pidfd >= 0 {
			unix.Close(p.pidfd)
		}
	}
	all.Add(c.engine.api.Close())
	return all.Err()
}

// engineTime is the time limit for an engine that does not answer to return. Our own choice: a
// restart takes about two seconds.
const engineTime = 6 * time.Second

// sweep makes sure that no container of this launch is left. It waits for an engine that is
// restarting.
func (c *Cluster) sweep(ctx context.Context, gone bool) error {
	over := time.Now().Add(engineTime)
	for {
		err := c.engine.sweep(ctx, c.id, gone)
		if err == nil || ctx.Err() != nil || !client.IsErrConnectionFailed(err) && c.engine.alive(ctx) == nil ||
			time.Now().After(over) {
			return err
		}
		time.Sleep(sweepEvery)
	}
}

// endProcesses returns when no process of the lab runs any more. It does not need the engine.
func (c *Cluster) endProcesses() {
	var all []int
	started := c.Started()
	for _, p := range started {
		if p.pidfd >= 0 {
			all = append(all, p.pidfd)
		}
	}
	left := runtime.AwaitExit(all, c.spec.Grace)
	for _, p := range started {
		if slices.Contains(left, p.pidfd) {
			_ = runtime.Kill(p.PID, p.pidfd) // an error means that it has ended
		}
	}
	runtime.AwaitExit(left, removeTime)
}

// awaitRemoval waits until the engine has removed the ended containers, and reports whether it has.
func (c *Cluster) awaitRemoval() (gone bool) {
	over := time.After(removeTime)
	for _, p := range c.Started() {
		if p.pidfd < 0 || c.engineLost() {
			return false // the container was never started, or the engine reports nothing any more
		}
		select {
		case <-p.gone:
		case <-over:
			return false
		}
	}
	return true
}

func (c *Cluster) engineLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost != nil
}
