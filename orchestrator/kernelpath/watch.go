package kernelpath

import (
	"fmt"

	"weft/fabric"
	"weft/realtime"
	"weft/tc-shaping/qdisc"
)

// sample reports the queue lengths of switch ports, and their marks and drops.
func (c *carrier) sample() error {
	var all []realtime.Sample
	for s, conn := range c.switches {
		queues, err := conn.Queues()
		if err != nil {
			return fmt.Errorf("%s: %w", c.net.Switches[s].Name, err)
		}
		now := c.labNow()
		for _, p := range c.bySwitch[s] {
			l := &c.lines[p]
			q := queues[l.dir.Near.Device]
			longest := q.Backlog
			if l.tree.Gate != nil {
				g := l.dir.Gate.Counters()
				q.Backlog, q.Drops, longest = g.Queue(), q.Drops+g.Drops, g.MaxQueue
				if l.tree.Gate.RED != nil {
					q.Marks = g.Marks
				}
			}
			is := realtime.Sample{At: now, Port: p, Queued: q.Backlog, Marks: int64(q.Marks - l.base.Marks),
				Drops: int64(q.Drops - l.base.Drops)}
			if is.Queued > 0 || is.Marks != l.lastSample.Marks || is.Drops != l.lastSample.Drops {
				l.lastSample = is
				all = append(all, is)
			}
			l.maxQueue = max(l.maxQueue, longest)
			c.maxQueue = max(c.maxQueue, longest)
		}
	}
	if len(all) == 0 || c.cfg.Sample == 0 {
		return nil
	}
	return c.conn.SendValue(realtime.KindSamples, all)
}

// statistics returns the counters of a direction since the start of lab time.
func (c *carrier) statistics(p int) (qdisc.Statistics, error) {
	l := &c.lines[p]
	s, err := l.dir.Statistics(l.tree)
	if err != nil {
		return s, c.of(p, err)
	}
	b := &l.base
	s.Sent -= b.Sent
	s.Packets -= b.Packets
	s.Drops -= b.Drops
	s.Marks -= b.Marks
	s.MarksAtMost -= b.MarksAtMost
	s.Arrived -= b.Arrived
	s.Lost -= b.Lost
	s.Spoofed -= b.Spoofed
	s.NotRouted -= b.NotRouted
	return s, nil
}

// begin resets all counters.
func (c *carrier) begin() error {
	if c.gates != nil {
		c.gates.Dilate(c.cfg.Dilation)
	}
	for p := range c.lines {
		if c.lines[p].tree.Gate != nil {
			c.lines[p].dir.Gate.Forget()
		}
		s, err := c.statistics(p)
		if err != nil {
			return err
		}
		b := &c.lines[p].base
		b.Sent += s.Sent
		b.Packets += s.Packets
		b.Drops += s.Drops
		b.Marks += s.Marks
		b.MarksAtMost += s.MarksAtMost
		b.Arrived += s.Arrived
		b.Lost += s.Lost
		b.Spoofed += s.Spoofed
		b.NotRouted += s.NotRouted
	}
	var err error
	c.lost, err = c.interfaceDrops()
	return err
}

// totals are the counters of all directions together.
type totals struct {
	network   fabric.Counters
	ports     []realtime.PortState
	refusals  []realtime.Refusals // by host
	unordered int64               // lost packets beyond the requested loss
	waiting   []string            // ports with a queue, in words
}

// count reads all counters.
func (c *carrier) count() (*totals, error) {
	t := &totals{ports: make([]realtime.PortState, len(c.lines)), refusals: make([]realtime.Refusals, len(c.net.Hosts))}
	for p := range c.lines {
		s, err := c.statistics(p)
		if err != nil {
			return nil, err
		}
		c.add(t, p, &s)
	}
	t.network.MaxQueue = c.maxQueue
	if c.ccm != nil {
		var moved int64
		t.network.CCM, moved = c.ccm.counters()
		t.network.PathSwitches += moved
	}
	lost, err := c.interfaceDrops()
	t.unordered += lost - c.lost
	return t, err
}

// add adds the counters of a direction.
func (c *carrier) add(t *totals, p int, s *qdisc.Statistics) {
	l, n := &c.lines[p], &t.network
	from, to := c.net.Ends[p], c.net.Ends[p^1]
	state := &t.ports[p]
	*state = realtime.PortState{Up: !l.down, Link: l.line, Queued: s.Backlog}
	k := &state.Counters
	k.Packets, k.Bytes, k.Marks, k.Drops = int64(s.Packets), s.Sent, int64(s.Marks), int64(s.Drops)
	k.Lost = int64(s.Lost)
	if l.dir.Gate != nil {
		unrouted := int64(l.dir.Gate.Counters().Unrouted)
		k.Lost += unrouted
		n.Lost += unrouted
		moved, untold := l.dir.Gate.Moved()
		n.PathSwitches += int64(moved)
		t.unordered += int64(untold)
	}
	if from.Host >= 0 {
		n.Injected += int64(s.Packets)
		n.InjectedBytes += s.Sent
		t.unordered += int64(s.Drops) // a NIC's queue is unlimited in the lab
		t.refusals[from.Host] = realtime.Refusals{Spoofed: int64(s.Spoofed), NotRouted: int64(s.NotRouted)}
	} else {
		n.Marks += int64(s.Marks)
		n.Dropped += int64(s.Drops)
	}
	if to.Host >= 0 {
		n.Delivered += int64(s.Arrived)
	}
	if l.lossy {
		n.Lost += int64(s.Lost)
	} else {
		t.unordered += int64(s.Lost)
	}
	if s.Waiting > 0 {
		t.waiting = append(t.waiting, fmt.Sprintf("the port of %s to %s holds %d packets, %v", c.name(from),
			c.name(to), s.Waiting, s.Backlog))
	}
	l.maxQueue = max(l.maxQueue, s.Backlog, s.MaxQueue)
	if from.Switch >= 0 {
		c.maxQueue = max(c.maxQueue, l.maxQueue)
	}
	k.MaxQueue = l.maxQueue
}

// interfaceDrops returns the number of packets that interfaces of the lab dropped outside their
// queues: between interfaces, and in the receive backlog.
func (c *carrier) interfaceDrops() (int64, error) {
	var all int64
	for s, conn := range c.switches {
		n, err := conn.Dropped()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.net.Switches[s].Name, err)
		}
		all += n
	}
	for h, conn := range c.hosts {
		if conn == nil {
			continue
		}
		n, err := conn.Dropped()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.net.Hosts[h].Name, err)
		}
		all += n
	}
	return all, nil
}

// report returns the report at the end of the lab.
func (c *carrier) report() (*realtime.Report, error) {
	t, err := c.count()
	if err != nil {
		return nil, err
	}
	r := &realtime.Report{Elapsed: c.labNow(), Network: t.network, Refused: t.unordered, Refusals: t.refusals,
		Sampled: c.gates == nil, Scheduler: "the kernel's", Links: Table(c.findings)}
	if c.ccm != nil {
		r.Decisions = c.ccm.lateness()
	}
	if c.checked.Measured > 0 {
		r.Checked = &c.checked
	}
	for i := range t.ports {
		r.Ports = append(r.Ports, t.ports[i].Counters)
	}
	return r, nil
}

// state returns the network's present state.
func (c *carrier) state() (*realtime.State, error) {
	t, err := c.count()
	if err != nil {
		return nil, err
	}
	s := &realtime.State{At: c.labNow(), Network: t.network, Ports: t.ports, Waiting: t.waiting, Refused: t.unordered}
	s.Hosts = make([]realtime.HostState, len(c.halted))
	for h := range s.Hosts {
		s.Hosts[h].Refusals = t.refusals[h]
	}
	return s, nil
}
