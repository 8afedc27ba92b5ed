package fabric

import (
	"errors"
	"fmt"

	"weft/eventqueue"
	"weft/units"
)

// A network in parts, which run at the same time on several processors, or one after the other in a cache that is too
// small for the whole.
//
// Every node belongs to a part, and with it the ports that begin at it. A line within a part is as in a network in one
// piece. One that leads to another part is in two halves: the port of this part does everything up to the start of a
// transmission, and the other part keeps the packets on the line (a landing) and fires when they arrive. In between
// they are posted. What is posted at an instant happens one propagation delay later at the earliest, so all parts may
// work through that much time, the lookahead, without asking each other:
//
//	every part: Take; fire all that is due up to the horizon; Flush(horizon)
//	when all have: Turn
//
// Packets, the ports' own accounts, marks and draws are the same however the network is split, since the order of
// events at one instant is (eventqueue), and nothing that one part writes is read by another before the next turn.
//
// Methods that look at the network as a whole or change it (Counters, Sample, SetLink, Stuck, ...) may be called on any
// part while none is working, after every part has done Take.
type parts struct {
	all     []*Network
	part    []int32  // by node
	owner   []int32  // by port: the part of From, which does everything up to the start of a transmission
	landing []int32  // by port abroad: which landing of the part of To
	abroad  []uint64 // a bit by port: small enough to stay in the cache nearest to the processor
	turn    int      // which of the two boxes is written
}

// abroad tells whether the line of a port leads to another part.
type abroad uint8

const (
	no     abroad = iota
	yes           // it does
	listed        // and it is in the backlog
)

// side is what a part has for dealing with others.
type side struct {
	landings []list     // packets on lines from other parts
	boxes    [2][]box   // by turn and part: posted, not taken
	posted   [2][]int32 // by turn: parts with something in their box
	backlog  []int32    // ports abroad in which packets wait
}

// posted is a packet on the line of a port, and where that leads.
type posted struct {
	packet *Packet
	port   int32
	to     NodeID
}

// box is what one part has posted to another in one turn.
type box struct {
	packets []posted
	frames  []frame
	for_    []int32 // the port each is for
	first   units.Time
}

// Split builds an idle network in parts: part is that of each node, from 0, and each has an event queue, without entities
// so far, and a sink of its own. A host's part is that of the switch it is attached to, and lines between parts have a
// delay.
func Split(cfg Config, part []int32, queues []*eventqueue.Queue, sinks []Sink) ([]*Network, error) {
	if len(queues) == 1 {
		n, err := New(cfg, queues[0], sinks[0])
		return []*Network{n}, err
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	if err := cfg.checkSplit(part, len(queues)); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	whole := build(&cfg, queues[0], sinks[0])
	p := &parts{
		all: make([]*Network, len(queues)), part: part,
		owner: make([]int32, len(cfg.Ports)), landing: make([]int32, len(cfg.Ports)),
		abroad: make([]uint64, len(cfg.Ports)/64+1),
	}
	landings := make([]int32, len(queues))
	for i := range cfg.Ports {
		to := part[cfg.Ports[i].To]
		p.owner[i] = part[cfg.Ports[i].From]
		if to != p.owner[i] {
			p.landing[i] = landings[to]
			p.abroad[i/64] |= 1 << (i % 64)
			landings[to]++
			whole.ports[i].abroad = yes
		}
	}
	shared := newStore(true)
	shared.notes = cfg.CCM != nil
	for k := range p.all {
		n := *whole
		n.events, n.sink, n.parts, n.me = queues[k], sinks[k], p, int32(k)
		n.pool = pool{store: shared, slabs: shared.slabs[:cap(shared.slabs)]}
		n.side.landings = make([]list, landings[k])
		for turn := range n.side.boxes {
			n.side.boxes[turn] = make([]box, len(queues))
			for i := range n.side.boxes[turn] {
				n.side.boxes[turn][i].first = units.Never
			}
		}
		if first := queues[k].Grow(n.entities.number()); first != 0 {
			return nil, errors.New("fabric: the event queue of a part has entities")
		}
		p.all[k] = &n
	}
	return p.all, nil
}

// checkSplit returns what is wrong with the parts of the nodes.
func (c *Config) checkSplit(part []int32, parts int) error {
	if parts > 1 && c.disorderly() {
		return errors.New("a network whose lines deliver packets late or twice has one part")
	}
	if len(part) != c.Hosts+len(c.Switches) || parts == 0 {
		return fmt.Errorf("parts of %d nodes, of %d; %d event queues", len(part), c.Hosts+len(c.Switches), parts)
	}
	for n, k := range part {
		if k < 0 || int(k) >= parts {
			return fmt.Errorf("node %d in part %d of %d", n, k, parts)
		}
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		if part[p.From] == part[p.To] {
			continue
		}
		if c.isHost(p.From) || c.isHost(p.To) || p.Delay <= 0 {
			return fmt.Errorf("port %d (node %d to node %d), with a delay of %d ps, leads to another part", i, p.From, p.To, p.Delay)
		}
	}
	return nil
}

// Lookahead returns how long the parts may work without asking each other: the least delay of a line between two, at
// least 1 ps. SetLine may change it.
func (n *Network) Lookahead() units.Time {
	least := units.Never
	for i := range n.ports {
		if o := &n.ports[i]; o.abroad != no {
			least = min(least, o.delay)
		}
	}
	return max(1, least)
}

// whole returns all parts.
func (n *Network) whole() []*Network {
	if n.parts == nil {
		return []*Network{n}
	}
	return n.parts.all
}

// of returns the part that owns a port.
func (n *Network) of(port int32) *Network {
	if n.parts == nil {
		return n
	}
	return n.parts.all[n.parts.owner[port]]
}

// last returns the instant that was fired last.
func (n *Network) last() units.Time {
	var last units.Time
	for _, k := range n.whole() {
		last = max(last, k.events.Last())
	}
	return last
}

// sum returns the totals of all parts.
func (n *Network) sum() Counters {
	var c Counters
	for _, k := range n.whole() {
		c.add(&k.total)
	}
	return c
}

func (c *Counters) add(k *Counters) {
	c.Injected += k.Injected
	c.Delivered += k.Delivered
	c.Dropped += k.Dropped
	c.InjectedBytes += k.InjectedBytes
	c.DeliveredBytes += k.DeliveredBytes
	c.DroppedBytes += k.DroppedBytes
	c.Marks += k.Marks
	c.Lost += k.Lost
	c.LostBytes += k.LostBytes
	c.Cut += k.Cut
	c.CutBytes += k.CutBytes
	c.Overflows += k.Overflows
	c.Pauses += k.Pauses
	c.Late += k.Late
	c.PathSwitches += k.PathSwitches
	c.CCM.add(&k.CCM)
	c.Duplicated += k.Duplicated
	c.DuplicatedBytes += k.DuplicatedBytes
}

// box returns where this part posts to another in this turn.
func (n *Network) box(to int32) *box {
	b := &n.side.boxes[n.parts.turn][to]
	if len(b.packets)+len(b.for_) == 0 {
		n.side.posted[n.parts.turn] = append(n.side.posted[n.parts.turn], to)
	}
	return b
}

// post puts e, which has started on the line of o, port i, into the box of the part at its far end.
func (n *Network) post(i int32, o *port, e *Packet) {
	b := n.box(n.parts.part[o.to])
	b.packets = append(b.packets, posted{e, i, o.to})
	b.first = min(b.first, e.at)
}

// postFrame posts a pause or resume to the part that owns port i.
func (n *Network) postFrame(i int32, f frame) {
	b := n.box(n.parts.owner[i])
	b.frames, b.for_ = append(b.frames, f), append(b.for_, i)
	b.first = min(b.first, f.at)
}

// list notes that packets wait in a port abroad: nothing arrives in this part that would have it looked at.
func (n *Network) list(o *port) {
	if o.abroad == yes {
		o.abroad = listed
		n.side.backlog = append(n.side.backlog, o.index)
	}
}

// land is the arrival of a packet from another part.
func (n *Network) land(now units.Time, i int32) {
	r := &n.side.landings[n.parts.landing[i]]
	e := r.pop()
	if !r.empty() {
		n.events.Set(n.PortEntity(int(i)), e.then)
	}
	n.arrive(now, i, e)
}

// Take takes what other parts have posted to this one in the turn before.
func (n *Network) Take() {
	for _, from := range n.parts.all {
		b := &from.side.boxes[1-n.parts.turn][n.me]
		for _, k := range b.packets {
			e, r := k.packet, &n.side.landings[n.parts.landing[k.port]]
			if e.next == undecided {
				e.next = n.routing.next(k.to, e)
			}
			if r.push(e); r.first == e {
				n.events.Set(n.PortEntity(int(k.port)), e.at)
			}
		}
		for k, i := range b.for_ {
			n.pfc.expect(n, i, b.frames[k])
		}
		*b = box{b.packets[:0], b.frames[:0], b.for_[:0], units.Never}
	}
}

// Flush posts the packets that have left ports for other parts up to the horizon, when this part has fired all that is
// due up to then. It returns when the next does, of those that wait by now; units.Never when none does.
func (n *Network) Flush(horizon units.Time) (next units.Time) {
	next = units.Never
	rest := n.side.backlog[:0]
	for _, i := range n.side.backlog {
		o := &n.ports[i]
		if o.waiting > 0 {
			o.advance(n, horizon)
		}
		if o.waiting == 0 {
			o.abroad = yes
			continue
		}
		rest = append(rest, i)
		if o.pick() != nil {
			next = min(next, o.freeAt)
		}
	}
	n.side.backlog = rest
	return next
}

// unpost cuts off what has been posted in this turn on the line of o, and the frames to it.
func (n *Network) unpost(o *port) {
	b := &n.side.boxes[n.parts.turn][n.parts.part[o.to]]
	kept := 0
	for _, k := range b.packets {
		if k.port == o.index {
			n.cut(o.index, k.packet)
			continue
		}
		b.packets[kept] = k
		kept++
	}
	b.packets = b.packets[:kept]
	far := n.parts.all[n.parts.part[o.to]]
	b, kept = &far.side.boxes[n.parts.turn][n.me], 0
	for k := range b.frames {
		if b.for_[k] != o.index {
			b.frames[kept], b.for_[kept] = b.frames[k], b.for_[k]
			kept++
		}
	}
	b.frames, b.for_ = b.frames[:kept], b.for_[:kept]
}

// Turn follows the Flush of every part that had something to do: it makes what they have posted ready to be taken, and
// tells for each part that something was posted to the earliest instant at which it happens. The parts it names
// must Take in the turn that follows.
func (n *Network) Turn(f func(part int, first units.Time)) {
	turn := n.parts.turn
	n.parts.turn = 1 - turn
	for _, from := range n.parts.all {
		for _, to := range from.side.posted[turn] {
			f(int(to), from.side.boxes[turn][to].first)
		}
		from.side.posted[turn] = from.side.posted[turn][:0]
	}
}
