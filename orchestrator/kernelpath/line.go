package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"

	"weft/fabric"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/units"
)

// line is one direction of a link under way.
type line struct {
	port  *fabric.PortConfig
	line  fabric.Link // as it is at present
	down  bool
	deaf  bool // it leads to a host that is halted
	lossy bool // it loses packets by order, or did
	way   tcnl.Direction
	tree  qdisc.Tree       // as it was applied
	base  qdisc.Statistics // when lab time began
	told  realtime.Sample  // the last of its queue

	maxQueue units.Bytes // the most that a sample found waiting
}

// shape makes every direction of every link what the lab says, at the dilation of the configuration.
func (c *carrier) shape() error {
	c.begins()
	for p := range c.lines {
		if err := c.shapeLine(p); err != nil {
			return err
		}
	}
	return nil
}

// begins has lines as the lab begins.
func (c *carrier) begins() {
	c.lines = make([]line, len(c.net.Ends))
	for p := range c.lines {
		cfg := &c.cfg.Network.Ports[p]
		c.lines[p].port, c.lines[p].line = cfg, ports.LineOf(cfg)
	}
}

// open connects to the networks of all nodes.
func (c *carrier) open() error {
	c.hosts, c.switches = make([]*tcnl.Conn, len(c.net.Hosts)), make([]*tcnl.Conn, len(c.net.Switches))
	for h := range c.hosts {
		if err := c.openHost(h); err != nil {
			return err
		}
	}
	for s := range c.switches {
		err := c.nodes.Switch(s).Do(func() (err error) {
			c.switches[s], err = tcnl.Open()
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.net.Switches[s].Name, err)
		}
	}
	return nil
}

// openHost connects to the network of a host, which may be another than before.
func (c *carrier) openHost(h int) error {
	if c.hosts[h] != nil {
		c.hosts[h].Close()
		c.hosts[h] = nil
	}
	err := c.nodes.Node(h).Do(func() (err error) {
		c.hosts[h], err = tcnl.Open()
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.net.Hosts[h].Name, err)
	}
	return nil
}

// end finds the device of an end.
func (c *carrier) end(e End) (tcnl.End, error) {
	if e.Host >= 0 {
		return c.hosts[e.Host].End(e.Interface)
	}
	return c.switches[e.Switch].End(e.Interface)
}

// shapeLine makes one direction what it should be at present, anew.
func (c *carrier) shapeLine(p int) error {
	l := &c.lines[p]
	err := c.reach(p)
	if err == nil {
		err = c.plan(p, l)
	}
	if err == nil {
		err = l.way.Apply(l.tree)
		l.base = qdisc.Statistics{} // counters begin anew
	}
	return c.of(p, err)
}

// reach finds the devices of a direction.
func (c *carrier) reach(p int) (err error) {
	way := &c.lines[p].way
	if way.Near, err = c.end(c.net.Ends[p]); err == nil {
		way.Far, err = c.end(c.net.Ends[p^1]) // where the way back begins
	}
	return err
}

// plan has l, which port p is or is to be, say what that is in the kernel.
func (c *carrier) plan(p int, l *line) (err error) {
	l.lossy = l.lossy || l.line.Loss > 0
	l.tree, err = c.planned(p, l, l.line)
	if err == nil && (l.down || l.deaf) {
		lost := l.line
		lost.Loss, l.lossy = 1, true
		l.tree, err = c.planned(p, l, lost)
	}
	return err
}

// planned is a direction with a line that is now so.
func (c *carrier) planned(p int, l *line, now fabric.Link) (qdisc.Tree, error) {
	return ports.Plan(l.port, &now, c.cfg.Dilation, c.mtu(), c.net.source(p), c.kernel)
}

// mtu is the largest IP packet.
func (c *carrier) mtu() units.Bytes { return units.Bytes(c.cfg.MaxFrame) - qdisc.Ethernet }

// change makes directions what become makes of them. What waits there goes on waiting. On an error all are as they were.
func (c *carrier) change(ports []int, become func(*line)) error {
	next := make([]line, len(ports))
	for i, p := range ports {
		next[i] = c.lines[p]
		become(&next[i])
		if err := c.plan(p, &next[i]); err != nil {
			return c.of(p, err)
		}
	}
	for i, p := range ports {
		l := &c.lines[p]
		err := l.way.Change(l.tree, next[i].tree)
		if err == nil {
			continue
		}
		err = c.of(p, err)
		for k, p := range ports[:i+1] { // the last may be half changed
			err = errors.Join(err, c.of(p, c.lines[p].way.Change(next[k].tree, c.lines[p].tree)))
		}
		return err
	}
	for i, p := range ports {
		c.lines[p] = next[i]
	}
	return nil
}

// of says which port an error is about.
func (c *carrier) of(p int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("link from %s to %s: %w", c.name(c.net.Ends[p]), c.name(c.net.Ends[p^1]), err)
}

// proc is the process of the node that an end belongs to, addr its address.
func (c *carrier) proc(e End) *runtime.Proc {
	if e.Host >= 0 {
		return c.nodes.Node(e.Host)
	}
	return c.nodes.Switch(e.Switch)
}

func (c *carrier) addr(e End) netip.Addr {
	if e.Host >= 0 {
		return c.net.Hosts[e.Host].Addr
	}
	return c.net.Switches[e.Switch].Addr
}

// name is that of the node that an end belongs to.
func (c *carrier) name(e End) string {
	if e.Host >= 0 {
		return c.net.Hosts[e.Host].Name
	}
	return c.net.Switches[e.Switch].Name
}
