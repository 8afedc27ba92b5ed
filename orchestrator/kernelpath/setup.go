package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"

	"weft/fabric"
	"weft/realtime"
	"weft/results/record"
	"weft/tc-shaping/bpf"
	"weft/tc-shaping/qdisc"
)

// atOnce is the number of namespaces that are set up concurrently. Our own value: the kernel
// serialises most of the work.
const atOnce = 4

// setUp builds the configured network.
func (c *carrier) setUp(ctx context.Context) error {
	if _, err := c.conn.Expect(realtime.KindConfigure, &c.cfg); err != nil {
		return err
	}
	err := c.steps.Around("make bridges and routes", c.forward)
	if err == nil {
		err = c.open()
	}
	if err == nil {
		err = c.shapeAtDilation(ctx)
	}
	if err == nil {
		err = c.begin()
	}
	return err
}

// shapeAtDilation shapes the links at the lab's dilation, or at the first of the alternatives at
// which they have the requested properties.
func (c *carrier) shapeAtDilation(ctx context.Context) error {
	for {
		err := c.steps.Around("shape links", c.shape)
		if err == nil {
			err = c.steps.Around("measure links", func() error { return c.verify(ctx) })
		}
		if !errors.Is(err, errMissed) || len(c.cfg.Slower) == 0 {
			return err
		}
		c.tried = append(c.tried, realtime.Tried{Dilation: c.cfg.Dilation, Links: Table(c.findings)})
		c.findings, c.checked = nil, record.LinkCheck{}
		c.cfg.Dilation, c.cfg.Slower = c.cfg.Slower[0], c.cfg.Slower[1:]
	}
}

// forward sets up switches that forward, over links without delay.
func (c *carrier) forward() error {
	c.halted, c.bySwitch = make([]bool, len(c.net.Hosts)), make([][]int, len(c.net.Switches))
	for p, end := range c.net.Ends {
		if end.Switch >= 0 {
			c.bySwitch[end.Switch] = append(c.bySwitch[end.Switch], p)
		}
	}
	if c.kernel.Lacks(qdisc.PartBPF) == nil {
		if err := c.program(); err != nil {
			return err
		}
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for s := range c.net.Switches {
		group.Go(func() error {
			return c.nodes.Switch(s).Do(func() (err error) {
				c.routes[s], err = prepare(c.net, s, c.choices != nil)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for s := range c.routes {
		group.Go(func() error {
			err := c.nodes.Switch(s).Do(func() error {
				if err := allUp(); err != nil || c.choices == nil {
					return err
				}
				return c.routes[s].byMark()
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.net.Switches[s].Name, err)
			}
			return c.install(s)
		})
	}
	return group.Wait()
}

// widest returns the largest number of equal paths that any switch may have. ports.Check bounds it
// for switches that look at queues.
func (c *carrier) widest() (widest int) {
	balanced := c.net.Switches[0].Balance.PerPacket() && !c.net.Switches[0].Balance.Random()
	of := func(tables []fabric.SwitchConfig) {
		for s := range tables {
			for _, group := range tables[s].Groups {
				widest = max(widest, len(group))
			}
		}
	}
	of(c.cfg.Network.Switches)
	for i := range c.cfg.Changes {
		of(c.cfg.Changes[i].Tables)
	}
	for s := range c.net.Switches {
		if !balanced { // whatever the routes that a user's change leads to
			widest = max(widest, len(c.net.Switches[s].Ports))
		}
	}
	return widest
}

// program makes the memory of BPF programs.
func (c *carrier) program() (err error) {
	if c.gates, err = bpf.NewTable(len(c.net.Ends)); err != nil {
		return err
	}
	widest, addrs := c.widest(), make([]netip.Addr, len(c.net.Hosts))
	for h := range addrs {
		addrs[h] = c.net.Hosts[h].Addr
	}
	detours := slices.ContainsFunc(c.net.Switches, func(sw Switch) bool { return len(sw.Detours) > 0 })
	if c.choices, err = bpf.NewRoutes(len(c.net.Switches), widest, detours, addrs); err != nil {
		return err
	}
	if b := c.net.Switches[0].Balance; b.ByLight() || b.Coordinated() {
		c.flows, err = bpf.NewFlows(len(c.net.Switches), b.Coordinated())
	}
	return err
}

// close closes the connections. The network stays until its nodes end.
func (c *carrier) close() {
	if c.ccm != nil {
		_ = c.ccm.close() // it only read
	}
	for _, r := range c.routes {
		if r != nil {
			r.Close()
		}
	}
	if c.gates != nil {
		_ = c.gates.Close() // the programs end with the nodes' namespaces
	}
	if c.choices != nil {
		_ = c.choices.Close()
	}
	if c.flows != nil {
		_ = c.flows.Close()
	}
	for _, conn := range slices.Concat(c.hosts, c.switches) {
		if conn != nil {
			conn.Close()
		}
	}
}
