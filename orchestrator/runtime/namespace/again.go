package namespace

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// Kill ends a node at once, with all that runs in it: its process is the init of its PID namespace.
func (c *Cluster) Kill(i int) error {
	p, err := c.alive(i)
	if err != nil {
		return err
	}
	if err := p.run.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	<-p.run.done
	return nil
}

// alive returns the process of a node that has not ended.
func (c *Cluster) alive(i int) (*proc, error) {
	c.mu.Lock()
	p, closing := c.nodes[i], c.closing
	c.mu.Unlock()
	select {
	case <-p.run.done:
		return nil, fmt.Errorf("%s: %w", p.Name, runtime.ErrNoNode)
	default:
	}
	if closing {
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

// Restart starts a node again that has ended. The other end of its new cable is Link.FD, the caller's; where switches are nodes
// it is -1.
func (c *Cluster) Restart(ctx context.Context, i int) (boot.Link, error) {
	if p, err := c.alive(i); err == nil {
		return boot.Link{}, fmt.Errorf("%s is running", p.Name)
	}
	p, err := c.start(c.spec.Nodes[i].Name, c.spec.NodeArgs, "node")
	if err != nil {
		return boot.Link{}, err
	}
	stop := context.AfterFunc(ctx, func() { p.Conn.Close() })
	defer stop()
	link, err := c.reboot(ctx, p, i)
	if err != nil {
		_ = p.run.cmd.Process.Kill() // what it could not become it need not be
		return boot.Link{}, c.failed(p, err)
	}
	c.mu.Lock()
	c.nodes[i] = p
	c.mu.Unlock()
	return link, nil
}

// reboot takes a node that was started again through its boot.
func (c *Cluster) reboot(ctx context.Context, p *proc, i int) (boot.Link, error) {
	if err := p.Conn.SendValue(boot.KindBoot, c.node(i, p)); err != nil {
		return boot.Link{}, err
	}
	fds, err := p.Conn.Expect(boot.KindLink, &p.Link)
	p.Link.Index = i
	if err == nil && c.spec.Switched() {
		return p.Link, c.replug(ctx, p)
	}
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("a cable came with %d descriptors", len(fds))
	}
	if err == nil {
		_, err = p.Conn.Expect(boot.KindUp, &p.Report)
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return boot.Link{}, err
	}
	link := p.Link
	link.FD = fds[0]
	return link, nil
}
