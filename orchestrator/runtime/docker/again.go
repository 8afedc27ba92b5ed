package docker

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// Kill ends a node at once, with all that runs in it, and returns when the engine has noticed.
func (c *Cluster) Kill(i int) error {
	p, err := c.alive(i)
	if err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return p.await(p.died, "has not noticed its end")
}

// await waits for something that the engine says of p.
func (p *proc) await(event <-chan struct{}, otherwise string) error {
	select {
	case <-event:
		return nil
	case <-time.After(removeTime):
		return fmt.Errorf("%s: the engine %s, %v later", p.Name, otherwise, removeTime)
	}
}

// alive returns the process of a node that has not ended.
func (c *Cluster) alive(i int) (*proc, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.nodes[i]
	if c.closing || isClosed(p.died) {
		return nil, fmt.Errorf("%s: %w", p.Name, runtime.ErrNoNode)
	}
	return p, nil
}

// Freeze stops every process of a node, or lets them go on.
func (c *Cluster) Freeze(i int, frozen bool) error {
	p, err := c.alive(i)
	if err != nil {
		return err
	}
	return p.Freeze(frozen)
}

// Restart starts a node again that has ended, in a new container of the same name. The other end of its new cable is
// Link.FD, the caller's; where switches are nodes it is -1.
func (c *Cluster) Restart(ctx context.Context, i int) (boot.Link, error) {
	if p, err := c.alive(i); err == nil {
		return boot.Link{}, fmt.Errorf("%s is running", p.Name)
	}
	c.mu.Lock()
	old := c.nodes[i]
	c.mu.Unlock()
	if err := old.await(old.gone, "has not removed its container"); err != nil {
		return boot.Link{}, err
	}
	if ctx.Err() != nil {
		return boot.Link{}, ctx.Err()
	}
	if c.spec.Switched() {
		return c.restartWired(i)
	}
	p, cable, err := c.startNode(i)
	if err != nil {
		return boot.Link{}, err
	}
	link := p.Link
	link.FD = cable
	return link, nil
}
