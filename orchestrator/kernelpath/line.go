package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/fabric"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/tc-shaping/bpf"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/units"
)

// line is the state of one direction of a link.
type line struct {
	port       *fabric.PortConfig
	line       fabric.Link // present settings
	down       bool
	toHalted   bool // the host at its end is halted
	lossy      bool // its settings include loss, now or earlier
	dir        tcnl.Direction
	tree       qdisc.Tree       // as applied
	base       qdisc.Statistics // at the start of lab time
	lastSample realtime.Sample  // last reported sample of its queue

	maxQueue units.Bytes // longest queue that a sample saw
}

// shape applies the lab's initial settings to every direction of every link, at the configured
// dilation.
func (c *carrier) shape() error {
	c.resetLinks()
	for p := range c.lines {
		if err := c.shapeLine(p); err != nil {
			return err
		}
	}
	return nil
}

// resetLinks sets all directions to the lab's initial settings.
func (c *carrier) resetLinks() {
	c.lines = make([]line, len(c.net.Ends))
	var unit uint
	if !c.kernel.Delays() {
		longest := ports.TransitOf(&c.cfg.Network, c.cfg.Changes, c.mtu()).Longest
		unit = bpf.UnitFor(time.Duration(float64(longest) * c.cfg.Dilation / float64(units.Nanosecond)))
	}
	for p := range c.lines {
		cfg, l := &c.cfg.Network.Ports[p], &c.lines[p]
		l.port, l.line = cfg, cfg.Link
		if c.gates != nil {
			l.dir.Gate = c.gates.Port(p)
			l.dir.Gate.Stamps = c.net.Ends[p].Switch >= 0
			l.dir.Gate.Unit, l.dir.Gate.Tags = unit, c.cfg.Network.CCM != nil
			l.dir.Gate.FromHost, l.dir.Gate.NoDetours = c.net.Ends[p].Host >= 0, cfg.Aside
			l.dir.Gate.Light(cfg.Light, cfg.Congested)
			if s := c.net.Ends[p^1].Switch; s >= 0 {
				sw := &c.net.Switches[s]
				l.dir.Gate.At = &bpf.Switch{Routes: c.choices, Index: s, Seed: sw.Seed, Balance: sw.Balance,
					Flows: c.flows}
			}
		}
	}
}

// open connects to the network namespaces of all nodes.
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

// openHost connects to the network namespace of a host, which is a new one after a restart.
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

// end returns the device of an end.
func (c *carrier) end(e End) (tcnl.End, error) {
	if e.Host >= 0 {
		return c.hosts[e.Host].End(e.Interface)
	}
	return c.switches[e.Switch].End(e.Interface)
}

// shapeLine applies the present settings of one direction from scratch.
func (c *carrier) shapeLine(p int) error {
	l := &c.lines[p]
	err := c.reach(p)
	if err == nil {
		err = c.plan(p, l)
	}
	if err == nil {
		err = l.dir.Apply(l.tree)
		l.base = qdisc.Statistics{} // the counters restart
	}
	return c.of(p, err)
}

// reach looks up the devices of a direction.
func (c *carrier) reach(p int) (err error) {
	dir := &c.lines[p].dir
	if dir.Near, err = c.end(c.net.Ends[p]); err == nil {
		dir.Far, err = c.end(c.net.Ends[p^1]) // the end where the opposite direction starts
	}
	return err
}

// plan computes the qdisc tree of l, the state that port p has or will have.
func (c *carrier) plan(p int, l *line) (err error) {
	l.lossy = l.lossy || l.line.Loss > 0
	l.tree, err = c.treeOf(p, l, l.line)
	if err == nil && (l.down || l.toHalted) {
		lost := l.line
		lost.Loss, l.lossy = 1, true
		l.tree, err = c.treeOf(p, l, lost)
	}
	return err
}

// treeOf returns the qdisc tree of port p with the link settings now.
func (c *carrier) treeOf(p int, l *line, now fabric.Link) (qdisc.Tree, error) {
	return ports.Plan(l.port, &now, c.cfg.Dilation, c.mtu(), c.net.source(p), c.kernel)
}

// mtu returns the size of the largest IP packet.
func (c *carrier) mtu() units.Bytes { return units.Bytes(c.cfg.MaxFrame) - qdisc.Ethernet }

// change applies become to the directions of some ports. Queued packets stay queued. On error all
// directions keep their old settings.
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
		err := l.dir.Change(l.tree, next[i].tree)
		if err == nil {
			continue
		}
		err = c.of(p, err)
		for k, p := range ports[:i+1] { // the last one may be half changed
			err = errors.Join(err, c.of(p, c.lines[p].dir.Change(next[k].tree, c.lines[p].tree)))
		}
		return err
	}
	for i, p := range ports {
		c.lines[p] = next[i]
	}
	return nil
}

// of adds the port to an error.
func (c *carrier) of(p int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("link from %s to %s: %w", c.name(c.net.Ends[p]), c.name(c.net.Ends[p^1]), err)
}

// proc returns the process of the end's node; addr returns its address.
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

// name returns the name of the end's node.
func (c *carrier) name(e End) string {
	if e.Host >= 0 {
		return c.net.Hosts[e.Host].Name
	}
	return c.net.Switches[e.Switch].Name
}
