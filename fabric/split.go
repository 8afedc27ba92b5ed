package fabric

import (
	"errors"
	"fmt"

	"weft/eventqueue"
	"weft/units"
)

// Partitions is a network in partitions, which run concurrently on several processors, or one after
// the other in a cache that is too small for the whole network.
//
// Every node belongs to a partition, and with it the ports that start at it. A link within a
// partition works as in a network in one piece. A remote link, which leads to another partition, is
// in two halves: the partition of its port does everything up to the start of a transmission, and
// the partition of its far end keeps the packets on the link and fires when they arrive. In
// between, packets are posted. What is posted at an instant takes effect at least one propagation
// delay later. So all partitions may work through that span, the lookahead, without communicating:
//
//	every partition: Take; fire all that is due up to the horizon; Flush(horizon)
//	when all have: Turn
//
// Packets, ports' counters, marks and draws are the same however the network is split: the order of
// events at one instant does not depend on it (package eventqueue), and no partition reads what
// another writes before the next turn.
//
// Methods that look at the network as a whole or change it (Counters, Sample, Links, Stuck, ...)
// may be called on the network of any partition while none is working, after every partition has
// called Take.
type Partitions struct {
	all       []*Network
	partition []int32  // by node
	owner     []int32  // by port: the partition of From
	arrival   []int32  // by port of a remote link: its index in exchange.arrivals of the partition of To
	remote    []uint64 // bit mask of ports with remote links: small enough to stay in the first-level cache
	turn      int      // index of the boxes that are written in this turn
}

// Network returns the network as partition k sees it: it owns the nodes of k and shares the rest.
func (p *Partitions) Network(k int) *Network { return p.all[k] }

// Entities returns the number of entities of the network in the event queues of all partitions.
// Their keys are the numbers from 0.
func (p *Partitions) Entities() int { return p.all[0].entities.number() }

// Split builds an idle network in partitions. partition has the partition of each node, counted
// from 0. Each partition has a sink and an event queue of its own; the queues must be empty. A host
// must be in the partition of its switch, and remote links must have a delay. Split returns an
// error otherwise, or if cfg is invalid.
func Split(cfg Config, partition []int32, queues []*eventqueue.Queue, sinks []Sink) (*Partitions, error) {
	if len(queues) == 1 {
		n, err := New(cfg, queues[0], sinks[0])
		return &Partitions{all: []*Network{n}}, err
	}
	if cfg.disorderly() {
		return nil, errors.New("fabric: a network whose links deliver packets late or twice must have one partition")
	}
	return split(cfg, partition, queues, sinks, newStore(true))
}

// split builds a network in several partitions, which share a store of packets.
func split(
	cfg Config, partition []int32, queues []*eventqueue.Queue, sinks []Sink, shared *store,
) (*Partitions, error) {
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
	own := make([][]int32, len(queues))
	for i := range cfg.Ports {
		to := partition[cfg.Ports[i].To]
		p.owner[i] = partition[cfg.Ports[i].From]
		own[p.owner[i]] = append(own[p.owner[i]], int32(i))
		if to != p.owner[i] {
			p.arrival[i] = arrivals[to]
			p.remote[i/64] |= 1 << (i % 64)
			arrivals[to]++
			whole.ports[i].farEnd = remote
		}
	}
	shared.notes = cfg.CCM != nil
	var keys [][]int32
	if shared.shared {
		keys = whole.entities.divide(p, cfg.Hosts, whole.ports)
	}
	for k := range p.all {
		n := *whole
		n.events, n.sink = queues[k], sinks[k]
		n.exchange = newExchange(p, k, int(arrivals[k]))
		n.exchange.own = own[k]
		if n.late != nil {
			n.late = &late{}
		}
		n.pool = pool{store: shared, slabs: shared.slabs[:cap(shared.slabs)]}
		first := eventqueue.ID(0)
		if keys != nil {
			first = queues[k].GrowAs(keys[k])
		} else {
			first = queues[k].Grow(n.entities.number())
		}
		if first != 0 {
			return nil, errors.New("fabric: the event queue of a partition has entities")
		}
		p.all[k] = &n
	}
	return p, nil
}

// checkSplit returns an error if the network cannot be split like this.
func (c *Config) checkSplit(partition []int32, count int) error {
	if len(partition) != c.Hosts+len(c.Switches) || count == 0 {
		return fmt.Errorf("partitions of %d nodes, of %d; %d event queues",
			len(partition), c.Hosts+len(c.Switches), count)
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
			return fmt.Errorf("port %d (node %d to node %d) leads to another partition: it has a delay of %d ps; "+
				"expected two switches and a delay above 0", i, p.From, p.To, p.Delay)
		}
	}
	return nil
}

// Lookahead returns how long the partitions may work without communicating: the minimum delay of a
// remote link, at least 1 ps; units.Never if there is no remote link. Links.SetRate may change it.
func (p *Partitions) Lookahead() units.Time {
	least := units.Never
	ports := p.all[0].ports
	for i := range ports {
		if o := &ports[i]; o.farEnd != within {
			least = min(least, o.delay)
		}
	}
	return max(1, least)
}

// Take receives what other partitions posted to partition k in the previous turn.
func (p *Partitions) Take(k int) { p.all[k].exchange.take(p.all[k]) }

// Flush posts the packets that have left ports of remote links up to the horizon, after partition k
// has fired everything due until then. It returns the earliest departure among the packets that
// still wait; units.Never if there are none.
func (p *Partitions) Flush(k int, horizon units.Time) (next units.Time) {
	return p.all[k].exchange.flush(p.all[k], horizon)
}

// Turn ends a turn, after the Flush of every partition that had work: what was posted can now be
// taken. It calls f for each partition that something was posted to, with the earliest instant at
// which it takes effect; f may be called several times for one partition. These partitions must
// Take in the turn that follows.
func (p *Partitions) Turn(f func(partition int, first units.Time)) {
	turn := p.turn
	p.turn = 1 - turn
	for _, from := range p.all {
		x := &from.exchange
		for _, to := range x.posted[turn] {
			f(int(to), x.boxes[turn][to].first)
			y := &p.all[to].exchange
			y.senders = append(y.senders, from)
		}
		x.posted[turn] = x.posted[turn][:0]
	}
}
