package namespace

import (
	"context"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// bootSwitched brings up a lab whose switches are nodes.
func (c *Cluster) bootSwitched(b *runtime.Boot) error {
	return b.Switched(&c.spec, runtime.Switched{
		Switch: func(i int) error { return c.inTurn(func() error { return c.bootSwitch(i) }) },
		Host: func(i int) error {
			return c.inTurn(func() error {
				_, _, err := c.startNode(i)
				return err
			})
		},
		WireUp: func(i int) error { return c.bootPlugged(c.Of(runtime.Host, i)) },
		Plug:   c.Plug,
	})
}

// bootSwitch boots one switch.
func (c *Cluster) bootSwitch(i int) error {
	spec := &c.spec.Switches[i]
	p, err := c.start(spec.Name, c.spec.NodeArgs, "node")
	if err != nil {
		return err
	}
	c.Set(runtime.Switch, i, p)
	return c.Boot(p, spec)
}

// bootPlugged continues the boot of a node whose cable is plugged in, and waits until it is up.
func (c *Cluster) bootPlugged(p *proc) error {
	if err := p.Conn.SendValue(boot.KindPlugged, nil); err != nil {
		return c.Failed(p, err)
	}
	return c.Up(p)
}

// replug creates the cables of a restarted node and waits until it is up.
func (c *Cluster) replug(ctx context.Context, p *proc) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Plug(c.spec.CablesOf(p.Name)); err != nil {
		return err
	}
	return c.bootPlugged(p)
}
