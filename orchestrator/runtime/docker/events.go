package docker

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"weft/orchestrator/runtime"
)

// listen follows the engine's events about this launch's containers until c.end.
func (c *Cluster) listen() error {
	what := filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)),
		filters.Arg("label", labelRun+"="+c.id),
		filters.Arg("event", string(events.ActionOOM)),
		filters.Arg("event", string(events.ActionDie)),
		filters.Arg("event", string(events.ActionDestroy)),
	)
	messages, broken := c.engine.api.Events(c.life, events.ListOptions{Filters: what})
	select {
	case err := <-broken:
		return fmt.Errorf("follow the engine's events: %w", err)
	default:
	}
	c.watch.Go(func() {
		for {
			select {
			case m := <-messages:
				c.handle(m)
			case err := <-broken:
				c.recordLost(err)
				return
			}
		}
	})
	return nil
}

// handle handles one event.
func (c *Cluster) handle(m events.Message) {
	all := c.Started()
	i := slices.IndexFunc(all, func(p *proc) bool { return p.container == m.Actor.ID })
	if i < 0 {
		return // a program's container: Exec follows it
	}
	p := all[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Action {
	case events.ActionOOM:
		p.oom = true
	case events.ActionDie:
		if isClosed(p.died) {
			return
		}
		p.state = exitState(m.Actor.Attributes["exitCode"], p.oom)
		close(p.died)
		c.watch.Go(func() {
			<-p.begun
			p.awaitOutput()
			c.Report(runtime.Exit{Name: p.Name, PID: p.PID, Err: p.Exit()})
		})
	case events.ActionDestroy:
		if !isClosed(p.gone) {
			close(p.gone)
		}
	}
}

// awaitOutput waits until the output of an ended process has been read. A process that ended before
// it got its output pipe has none.
func (p *proc) awaitOutput() {
	select {
	case <-p.read:
	case <-time.After(readTime):
	}
}

// recordLost reports the lab as broken because the engine's events have ended: an engine that stops
// takes its containers with it, now or when it starts again.
func (c *Cluster) recordLost(why error) {
	if c.life.Err() != nil {
		return
	}
	if errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF) {
		why = errors.New("it closed the connection: was it stopped or restarted?")
	}
	c.mu.Lock()
	c.lost = why
	c.mu.Unlock()
	c.Report(runtime.Exit{Name: "docker", Err: &runtime.ExitError{Name: "the Docker engine at " + c.engine.host,
		State: why.Error()}})
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
