package namespace

import (
	"context"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// bootSwitched brings up a lab whose switches are nodes: all processes, then their cables, and then what hosts do with theirs. do
// does something beside what was begun before, and wait waits for all of that; well says that nothing has failed.
func (c *Cluster) bootSwitched(do func(func() error), wait func(), well func() bool) {
	for i := range c.switches {
		do(func() error { return c.bootSwitch(i) })
	}
	for i := range c.nodes {
		do(func() error {
			_, err := c.startNode(i)
			return err
		})
	}
	if wait(); !well() {
		return
	}
	do(func() error {
		op := runtime.Op{Do: "plug cables", Kind: runtime.Process, Name: c.spec.Switches[0].Name} // they end with their nodes
		return c.spec.Do(op, func() error { return runtime.Plug(c.spec.Cables, c.known) })
	})
	if wait(); !well() {
		return
	}
	for i := range c.nodes {
		do(func() error { return c.plugged(c.nodes[i]) })
	}
	wait()
}

// bootSwitch takes one switch through its boot.
func (c *Cluster) bootSwitch(i int) error {
	spec := &c.spec.Switches[i]
	p, err := c.start(spec.Name, c.spec.NodeArgs, "node")
	if err != nil {
		return err
	}
	c.switches[i] = p
	if err = p.Conn.SendValue(boot.KindBoot, spec); err == nil {
		_, err = p.Conn.Expect(boot.KindUp, &p.Report)
	}
	return c.failed(p, err)
}

// plugged tells a node that its cable is there, and waits until it is up.
func (c *Cluster) plugged(p *proc) error {
	err := p.Conn.SendValue(boot.KindPlugged, nil)
	if err == nil {
		_, err = p.Conn.Expect(boot.KindUp, &p.Report)
	}
	return c.failed(p, err)
}

// replug makes the cables of a node again that was started again, and waits until it is up.
func (c *Cluster) replug(ctx context.Context, p *proc) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := runtime.Plug(c.spec.CablesOf(p.Name), c.known); err != nil {
		return err
	}
	return c.plugged(p)
}

// known is the process of a node by its name; nil if there is none.
func (c *Cluster) known(node string) *runtime.Proc {
	if p := c.find(node); p != nil {
		return &p.Proc
	}
	return nil
}
