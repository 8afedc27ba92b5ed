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

// listen begins to follow what becomes of the containers of this launch, until c.end.
func (c *Cluster) listen() error {
	what := filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)),
		filters.Arg("label", labelRun+"="+c.id),
		filters.Arg("event", string(events.ActionOOM)),
		filters.Arg("event", string(events.ActionDie)),
		filters.Arg("event", string(events.ActionDestroy)),
	)
	news, broken := c.engine.api.Events(c.life, events.ListOptions{Filters: what})
	select {
	case err := <-broken:
		return fmt.Errorf("follow the engine's events: %w", err)
	default:
	}
	c.watch.Go(func() {
		for {
			select {
			case m := <-news:
				c.note(m)
			case err := <-broken:
				c.lose(err)
				return
			}
		}
	})
	return nil
}

// note takes in one event.
func (c *Cluster) note(m events.Message) {
	all := c.Started()
	i := slices.IndexFunc(all, func(p *proc) bool { return p.container == m.Actor.ID })
	if i < 0 {
		return // a program's: Exec follows it
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
		p.state = state(m.Actor.Attributes["exitCode"], p.oom)
		close(p.died)
		c.watch.Go(func() {
			<-p.begun
			p.words()
			c.Tell(runtime.Exit{Name: p.Name, PID: p.PID, Err: p.Exit()})
		})
	case events.ActionDestroy:
		if !isClosed(p.gone) {
			close(p.gone)
		}
	}
}

// words waits until what a process that has ended wrote has been read. One that ended before it was told where to write says
// nothing.
func (p *proc) words() {
	select {
	case <-p.read:
	case <-time.After(readTime):
	}
}

// lose notes that the engine says nothing more. Unless that was asked for, the lab can no longer be trusted to be
// what it was: an engine that ends takes its containers with it, now or when it begins again.
func (c *Cluster) lose(why error) {
	if c.life.Err() != nil {
		return
	}
	if errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF) {
		why = errors.New("it closed the connection: was it stopped or restarted?")
	}
	c.mu.Lock()
	c.lost = why
	c.mu.Unlock()
	c.Tell(runtime.Exit{Name: "docker", Err: &runtime.ExitError{Name: "the Docker engine at " + c.engine.host, State: why.Error()}})
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
