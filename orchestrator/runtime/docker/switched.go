package docker

import (
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// bootSwitched brings up a lab whose switches are nodes. A switch is a container like a host, with
// the same image and without capabilities: its namespace is configured from outside, and its
// process only waits.
func (c *Cluster) bootSwitched(b *runtime.Boot) error {
	return b.Switched(&c.spec, runtime.Switched{
		Switch: c.bootSwitch,
		Host: func(i int) error {
			p, err := c.startWired(i)
			if err == nil {
				c.Set(runtime.Host, i, p)
			}
			return err
		},
		WireUp: func(i int) error { return c.wireUp(i, c.Of(runtime.Host, i)) },
		Plug:   c.Plug,
	})
}

// bootSwitch boots one switch.
func (c *Cluster) bootSwitch(i int) error {
	spec := &c.spec.Switches[i]
	p, err := c.start(spec.Name, spec)
	if err != nil {
		return err
	}
	c.Set(runtime.Switch, i, p)
	if err := c.takeControl(p, spec, spec.Nice); err != nil {
		return c.Failed(p, err)
	}
	return c.Up(p)
}

// startWired starts a host whose link will be a cable to its switch, and connects to its control
// socket. The host then waits for the cable. On an error the process, if not nil, still runs.
func (c *Cluster) startWired(i int) (*proc, error) {
	spec := &c.spec.Nodes[i]
	p, err := c.start(spec.Name, spec)
	if err != nil {
		return nil, err
	}
	err = p.Do(func() error { return c.dial(p) })
	return p, c.Failed(p, p.orEnded(err))
}

// wireUp continues the boot of a host after its cable was plugged in.
func (c *Cluster) wireUp(i int, p *proc) error {
	spec := &c.spec.Nodes[i]
	if err := c.takeControl(p, spec, spec.Nice); err != nil {
		return c.Failed(p, err)
	}
	p.Link.Index = i
	return c.Up(p)
}

// restartWired starts a host again, with a new cable to its switch.
func (c *Cluster) restartWired(i int) (boot.Link, error) {
	p, err := c.startWired(i)
	if err != nil {
		if p != nil {
			p.discard()
		}
		return boot.Link{}, err
	}
	if err = c.Plug(c.spec.CablesOf(p.Name)); err == nil {
		err = c.wireUp(i, p)
	}
	if err != nil {
		p.discard()
		return boot.Link{}, err
	}
	c.Set(runtime.Host, i, p)
	return p.Link, nil
}

// discard kills a process whose boot failed.
func (p *proc) discard() { _ = runtime.Kill(p.PID, p.pidfd) }
