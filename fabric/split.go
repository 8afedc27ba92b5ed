package fabric

import (
	"errors"
	"fmt"

	"weft/eventqueue"
	"weft/units"
)

// Partitions is a network in partitions, which run at the same time on several processors, or one
// after the other in a cache that is too small for the whole.
//
// Every node belongs to a partition, and with it the ports that begin at it. A link within a partition
// is as in a network in one piece. A remote link, which leads to another partition, is in two halves:
// the port of this partition does everything up to the start of a transmission, and the other partition
// keeps the packets on the link and fires when they arrive. In between they are posted. What is posted
// at an instant happens one propagation delay later at the earliest, so all partitions may work through
// that much time, the lookahead, without asking each other:
//
//	every partition: Take; fire all that is due up to the horizon; Flush(horizon)
//	when all have: Turn
//
// Packets, the ports' own accounts, marks and draws are the same however the network is split, since the
// order of events at one instant is (package eventqueue), and nothing that one partition writes is read
// by another before the next turn.
//
// Methods that look at the network as a whole or change it (Counters, Sample, Links, Stuck, ...) may be
// called on the network of any partition while none is working, after every partition has done Take.
type Partitions struct {
	all       []*Network
	partition []int32  // by node
	owner     []int32  // by port: the partition of From, which does everything up to the start of a transmission
	arrival   []int32  // by port of a remote link: which of the arrivals of the partition of To
	remote    []uint64 // a bit by port: small enough to stay in the cache nearest to the processor
	turn      int      // which of the two boxes is written
}

// Network returns the network as partition k sees it: it owns the nodes of k, and shares the rest.
func (p *Partitions) Network(k int) *Network { return p.all[k] }

// Split builds an idle network in partitions, given that of each node, from 0. Each partition has an
// event queue, without entities so far, and a sink of its own. A host is in the partition of its switch,
// and remote links have a delay.
func Split(cfg Config, partition []int32, queues []*eventqueue.Queue, sinks []Sink) (*Partitions, error) {
	if len(queues) == 1 {
		n, err := New(cfg, queues[0], sinks[0])
		return &Partitions{all: []*Network{n}}, err
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	if err := cfg.checkSplit(partition, len(queues)); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	whole := build(&cfg, queues[0], sinks[0])
	p := &Partitions{
		all: make([]*Network, len(queues)), partition: partition,
		owner: make([]int32, len(cfg.Ports)), arrival: make([]int32, len(cfg.Ports)),
		remote: make([]uint64, len(cfg.Ports)/64+1),
	}
	arrivals := make([]int32, len(queues))
	for i := range cfg.Ports {
		to := partition[cfg.Ports[i].To]
		p.owner[i] = partition[cfg.Ports[i].From]
		if to != p.owner[i] {
			p.arrival[i] = arrivals[to]
			p.remote[i/64] |= 1 << (i % 64)
			arrivals[to]++
			whole.ports[i].link = remote
		}
	}
	shared := newStore(true)
	shared.notes = cfg.CCM != nil
	for k := range p.all {
		n := *whole
		n.events, n.sink = queues[k], sinks[k]
		n.exchange = newExchange(p, k, int(arrivals[k]))
		n.pool = pool{store: shared, slabs: shared.slabs[:cap(shared.slabs)]}
		if first := queues[k].Grow(n.entities.number()); first != 0 {
			return nil, errors.New("fabric: the event queue of a partition has entities")
		}
		p.all[k] = &n
	}
	return p, nil
}

// checkSplit returns what is wrong with the partitions of the nodes.
func (c *Config) checkSplit(partition []int32, count int) error {
	if count > 1 && c.disorderly() {
		return errors.New("a network whose lines deliver packets late or twice has one partition")
	}
	if len(partition) != c.Hosts+len(c.Switches) || count == 0 {
		return fmt.Errorf("partitions of %d nodes, of %d; %d event queues", len(partition), c.Hosts+len(c.Switches), count)
	}
	for n, k := range partition {
		if k < 0 || int(k) >= count {
			return fmt.Errorf("node %d in partition %d of %d", n, k, count)
		}
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		if partition[p.From] == partition[p.To] {
			continue
		}
		if c.isHost(p.From) || c.isHost(p.To) || p.Delay <= 0 {
			return fmt.Errorf("port %d (node %d to node %d), with a delay of %d ps, leads to another partition", i, p.From, p.To, p.Delay)
		}
	}
	return nil
}

// Lookahead returns how long the partitions may work without asking each other: the least delay of a
// remote link, at least 1 ps. Links.SetRate may change it.
func (p *Partitions) Lookahead() units.Time {
	least := units.Never
	ports := p.all[0].ports
	for i := range ports {
		if o := &ports[i]; o.link != within {
			least = min(least, o.delay)
		}
	}
	return max(1, least)
}

// Take takes what other partitions have posted to partition k in the turn before.
func (p *Partitions) Take(k int) { p.all[k].exchange.take(p.all[k]) }

// Flush posts the packets that have left ports of remote links up to the horizon, when partition k has
// fired all that is due up to then. It returns when the next one leaves, of those that wait; units.Never
// when none does.
func (p *Partitions) Flush(k int, horizon units.Time) (next units.Time) {
	return p.all[k].exchange.flush(p.all[k], horizon)
}

// Turn follows the Flush of every partition that had something to do: it makes what they have posted
// ready to be taken. It calls f for each partition that something was posted to, with the earliest
// instant at which it happens. These partitions must Take in the turn that follows.
func (p *Partitions) Turn(f func(partition int, first units.Time)) {
	turn := p.turn
	p.turn = 1 - turn
	for _, from := range p.all {
		x := &from.exchange
		for _, to := range x.posted[turn] {
			f(int(to), x.boxes[turn][to].first)
		}
		x.posted[turn] = x.posted[turn][:0]
	}
}
