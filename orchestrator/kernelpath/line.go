package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/fabric"
	"weft/orchestrator/runtime"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/transport/wire"
	"weft/units"
)

// line is one direction of a link under way.
type line struct {
	port  *fabric.PortConfig
	line  fabric.Line // as it is at present
	down  bool
	lossy bool // it loses packets by order, or did
	way   tcnl.Way
	tree  qdisc.Tree       // as it was applied
	base  qdisc.Statistics // when lab time began
}

// uncounted is what a packet occupies on the modelled wire beyond what the kernel counts: the frame check sequence.
const uncounted = wire.Overhead - qdisc.Ethernet - 20 - 8 // IPv4, UDP

// hostQueue is the limit of what waits in the NIC of a host, which in a lab has none: hosts hold back what their line cannot
// take. Ours: more than any of them is ever ahead.
const hostQueue = 256 * units.MiB

// Real is one direction of a link in real time, at a dilation. IPv4 packets have at most mtu bytes.
func Real(p *fabric.PortConfig, l *fabric.Line, dilation float64, mtu units.Bytes, host bool) qdisc.Direction {
	stretched := func(t units.Time) time.Duration {
		return time.Duration(float64(t) * dilation / float64(units.Nanosecond))
	}
	d := qdisc.Direction{
		Rate: units.Bandwidth(float64(l.Rate)/dilation) / 8 * 8, Overhead: uncounted, Limit: p.Buffer, MTU: mtu,
		Delay: stretched(l.Delay), Loss: l.Loss,
		Jitter: stretched(p.Disorder.Jitter), Duplicate: p.Disorder.Duplicate, Reorder: p.Disorder.Reorder, ReorderBy: stretched(p.Disorder.By),
	}
	if d.Rate > 0 {
		// One packet more or less makes no queue; a timer that is late by that much is common where labs are slow, and the
		// line spaces what leaves at once.
		one := float64(mtu+qdisc.Ethernet) * 8e9 / float64(d.Rate)
		d.Lateness = max(100*time.Microsecond, time.Duration(one))
	}
	if host {
		d.Limit = hostQueue
	}
	if e := p.ECN; e.On {
		d.RED = &qdisc.RED{Min: e.Kmin, Max: e.Kmax, Pmax: e.Pmax, ECN: true}
	}
	return d
}

// coarsest is the most that a rate may be off because the kernel counts in bytes per second.
const coarsest = 1e-3

// Check reports what the kernel cannot honour of a network at a dilation: the first port, by its number, and why.
func Check(cfg *fabric.Config, dilation float64, mtu units.Bytes, kernel qdisc.Capabilities) (port int, err error) {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		l := fabric.Line{Rate: p.Rate, Delay: p.Delay, Loss: p.Loss}
		if _, err := plan(p, &l, dilation, mtu, int(p.From) < cfg.Hosts, kernel); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// plan is what a direction is in the kernel.
func plan(p *fabric.PortConfig, l *fabric.Line, dilation float64, mtu units.Bytes, host bool, kernel qdisc.Capabilities) (qdisc.Tree, error) {
	d := Real(p, l, dilation, mtu, host)
	if exact := float64(l.Rate) / dilation; exact-float64(d.Rate) > coarsest*exact {
		return qdisc.Tree{}, fmt.Errorf("%w: a rate of %g bit/s, which it counts in whole bytes per second; expected a smaller dilation than %g", qdisc.ErrRefused, exact, dilation)
	}
	if host {
		return qdisc.Plan(d, kernel)
	}
	if short := mtu + qdisc.Ethernet; d.Limit < short {
		return qdisc.Tree{}, fmt.Errorf("%w: a buffer of %v, in which a packet of %v does not fit", qdisc.ErrRefused, d.Limit, short)
	}
	return qdisc.Plan(d, kernel)
}

// shape makes every direction of every link what the lab says.
func (c *carrier) shape() error {
	if err := c.open(); err != nil {
		return err
	}
	c.lines = make([]line, len(c.net.Ends))
	for p := range c.lines {
		cfg := &c.cfg.Network.Ports[p]
		c.lines[p].port, c.lines[p].line = cfg, fabric.Line{Rate: cfg.Rate, Delay: cfg.Delay, Loss: cfg.Loss}
		if err := c.shapeLine(p); err != nil {
			return err
		}
	}
	return nil
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
	near, err := c.end(c.net.Ends[p])
	if err != nil {
		return c.of(p, err)
	}
	far, err := c.end(c.net.Ends[p^1]) // where the way back begins
	if err != nil {
		return c.of(p, err)
	}
	if l.tree, err = c.tree(p); err == nil {
		l.way = tcnl.Way{Near: near, Far: far}
		err = l.way.Apply(l.tree)
	}
	return c.of(p, err)
}

// tree is what a direction should be in the kernel at present.
func (c *carrier) tree(p int) (qdisc.Tree, error) {
	l := &c.lines[p]
	now := l.line
	if l.down || c.deaf(p) {
		now.Loss = 1
	}
	l.lossy = l.lossy || now.Loss > 0
	return plan(l.port, &now, c.cfg.Dilation, c.mtu(), c.net.Ends[p].Host >= 0, c.kernel)
}

// deaf says that a port leads to a host that is halted.
func (c *carrier) deaf(p int) bool {
	h := c.net.Ends[p^1].Host
	return h >= 0 && c.halted[h]
}

// mtu is the largest IP packet.
func (c *carrier) mtu() units.Bytes { return units.Bytes(c.cfg.MaxFrame) - qdisc.Ethernet }

// apply changes a direction to what it should be at present. What waits stays, if that can be.
func (c *carrier) apply(p int) error {
	l := &c.lines[p]
	tree, err := c.tree(p)
	if err == nil {
		if err = l.way.Change(l.tree, tree); errors.Is(err, tcnl.ErrRebuild) {
			err = l.way.Apply(tree)
			l.base = qdisc.Statistics{}
		}
	}
	if err == nil {
		l.tree = tree
	}
	return c.of(p, err)
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
