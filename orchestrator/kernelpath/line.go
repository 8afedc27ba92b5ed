package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weft/fabric"
	"weft/fabric/realtime"
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
	deaf  bool // it leads to a host that is halted
	lossy bool // it loses packets by order, or did
	way   tcnl.Way
	tree  qdisc.Tree       // as it was applied
	base  qdisc.Statistics // when lab time began
	told  realtime.Sample  // the last of its queue

	maxQueue units.Bytes // the most that a sample found waiting
}

// uncounted is what a packet occupies on the modelled wire beyond what the kernel counts: the frame check sequence.
const uncounted = wire.Overhead - qdisc.Ethernet - 20 - 8 // IPv4, UDP

// hostQueue is the limit of what waits in the NIC of a host, which in a lab has none: hosts hold back what their line cannot
// take. Ours: more than any of them is ever ahead.
const hostQueue = 256 * units.MiB

// lineOf is the line of a port as the lab begins.
func lineOf(p *fabric.PortConfig) fabric.Line {
	return fabric.Line{Rate: p.Rate, Delay: p.Delay, Loss: p.Loss, BitErrors: p.BitErrors, Disorder: &p.Disorder}
}

// become is what a change makes of a line.
func become(was fabric.Line, change *fabric.Line) fabric.Line {
	now := *change
	if now.Disorder == nil {
		now.Disorder = was.Disorder
	}
	return now
}

// Real is one direction of a link in real time, at a dilation: the queue of a port and a line, which says all (its Disorder is not nil).
// IPv4 packets have at most mtu bytes.
func Real(p *fabric.PortConfig, l *fabric.Line, dilation float64, mtu units.Bytes, host bool) qdisc.Direction {
	stretched := func(t units.Time) time.Duration {
		return time.Duration(float64(t) * dilation / float64(units.Nanosecond))
	}
	d := qdisc.Direction{
		Rate: units.Bandwidth(float64(l.Rate)/dilation) / 8 * 8, Overhead: uncounted, Limit: p.Buffer, MTU: mtu,
		Wire: true, Delay: stretched(l.Delay), Loss: l.Loss,
		Jitter: stretched(l.Disorder.Jitter), Duplicate: l.Disorder.Duplicate, Reorder: l.Disorder.Reorder,
	}
	if d.Reorder > 0 { // else nothing comes late, whatever the lab says of how late
		d.ReorderBy = stretched(l.Disorder.By)
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

// Shape returns what each direction of a network is in the kernel at a dilation, by port, as long as nothing changes it. Of an error
// the port is the last that was tried.
func Shape(cfg *fabric.Config, dilation float64, mtu units.Bytes, kernel qdisc.Capabilities) (trees []qdisc.Tree, port int, err error) {
	trees = make([]qdisc.Tree, len(cfg.Ports))
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		l := lineOf(p)
		if trees[i], err = plan(p, &l, dilation, mtu, int(p.From) < cfg.Hosts, kernel); err != nil {
			return nil, i, err
		}
	}
	return trees, 0, nil
}

// Check reports what the kernel cannot honour of a network, and of what becomes of it, at a dilation: the first port, by its number, and why.
func Check(cfg *fabric.Config, changes []fabric.Change, dilation float64, mtu units.Bytes, kernel qdisc.Capabilities) (port int, err error) {
	if _, port, err = Shape(cfg, dilation, mtu, kernel); err != nil {
		return port, err
	}
	for i := range changes {
		change := &changes[i]
		if change.Line == nil {
			continue
		}
		for _, port := range change.Ports {
			p := &cfg.Ports[port]
			l := become(lineOf(p), change.Line)
			if _, err := plan(p, &l, dilation, mtu, int(p.From) < cfg.Hosts, kernel); err != nil {
				return port, fmt.Errorf("from %v on: %w", change.At.Duration(), err)
			}
		}
	}
	return 0, nil
}

// plan is what a direction is in the kernel.
func plan(p *fabric.PortConfig, l *fabric.Line, dilation float64, mtu units.Bytes, host bool, kernel qdisc.Capabilities) (qdisc.Tree, error) {
	if l.BitErrors > 0 {
		return qdisc.Tree{}, fmt.Errorf("%w: bit errors, of which it would deliver packets with wrong bits; expected loss", qdisc.ErrRefused)
	}
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
		c.lines[p].port, c.lines[p].line = cfg, lineOf(cfg)
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
func (c *carrier) planned(p int, l *line, now fabric.Line) (qdisc.Tree, error) {
	return plan(l.port, &now, c.cfg.Dilation, c.mtu(), c.net.Ends[p].Host >= 0, c.kernel)
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
