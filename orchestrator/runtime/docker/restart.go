package docker

import (
	"context"
	"fmt"
	"time"

	"weft/nodeimg/boot"
)

// await waits for an event that the engine reports about p. otherwise says in an error what the
// engine has not done.
func (p *proc) await(event <-chan struct{}, otherwise string) error {
	select {
	case <-event:
		return nil
	case <-time.After(removeTime):
		return fmt.Errorf("the engine %s within %v", otherwise, removeTime)
	}
}

// Restart starts a node again that has ended, in a new container of the same name. The other end of
// its new cable is Link.FD, which the caller owns; it is -1 if switches are nodes.
func (c *Cluster) Restart(ctx context.Context, i int) (boot.Link, error) {
	old, err := c.Dead(i)
	if err != nil {
		return boot.Link{}, err
	}
	if err := old.await(old.gone, "has not removed its container"); err != nil {
		return boot.Link{}, fmt.Errorf("%s: %w", old.Name, err)
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
