package namespace

import (
	"context"
	"fmt"

	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// Restart starts a node again that has ended. The other end of its new cable is Link.FD, which the
// caller owns; it is -1 if switches are nodes.
func (c *Cluster) Restart(ctx context.Context, i int) (boot.Link, error) {
	if _, err := c.Dead(i); err != nil {
		return boot.Link{}, err
	}
	p, err := c.start(c.spec.Nodes[i].Name, c.spec.NodeArgs, "node")
	if err != nil {
		return boot.Link{}, err
	}
	stop := context.AfterFunc(ctx, func() { p.Conn.Close() })
	defer stop()
	link, err := c.reboot(ctx, p, i)
	if err != nil {
		_ = p.kill()
		return boot.Link{}, c.Failed(p, err)
	}
	c.Set(runtime.Host, i, p)
	return link, nil
}

// reboot boots a node that was started again.
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
		control.CloseAll(fds)
		return boot.Link{}, err
	}
	link := p.Link
	link.FD = fds[0]
	return link, nil
}
