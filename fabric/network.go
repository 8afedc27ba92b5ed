package fabric

import (
	"fmt"
	"math"

	"weft/eventqueue"
	"weft/units"
)

// Sink takes what leaves the network. Both methods may call Inject.
type Sink interface {
	// Deliver hands over a packet whose last bit has reached host p.Dst. The sink owns it and gives it back
	// with Put.
	Deliver(now units.Time, p *Packet)
	// Idle tells that the NIC of h has sent everything it may: the instant to pull the next packet, if NICFree.
	// A NIC that is paused sends no packets of that class; Idle is called again when the pause ends.
	Idle(now units.Time, h HostID)
}

// Network is the machine: NICs, links and switches, and the packets in them. Not safe for concurrent use: one
// goroutine owns it, together with the event queue.
//
// A packet costs one event per hop, however full the queue. When a packet starts on a line its arrival at the
// far end is known: it is put on the link's list and the link's entity is armed for the first of the list.
// There is no event for the end of a transmission in a switch. The transmitter is brought up to date
// (advance) when somebody looks at it: a packet that joins its queue, the last packet known to be on its line
// arriving at the far end, a sample. That is early enough, since whatever starts after the last look arrives
// after the packets that were on the line then; and it is exact, since no packet can have joined in between.
//
// A port whose switch accounts for its memory does not wait to be looked at: see pfc.go.
//
// At one instant a transmitter that becomes free first takes the next of those that wait; who joins at that
// very instant queues behind it.
type Network struct {
	ledger // packets, and what became of them

	events   *eventqueue.Queue
	sink     Sink
	entities entities
	ports    []port
	NICs     NICs
	routing  *routing

	pfc       *flowControl  // nil: no switch accounts for its memory
	balancing *balancing    // nil: no switch chooses by the packet
	ccm       *coordination // nil: no coordination
	late      *late         // nil: no link delivers packets late or twice
	stations  *stations     // nil: no programs run on switches

	Observers Observers
	names     []string // of the switches

	exchange exchange // with other partitions
}

// New builds an idle network and adds its entities to q.
func New(cfg Config, q *eventqueue.Queue, sink Sink) (*Network, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	n := build(&cfg, q, sink)
	n.entities.first = q.Grow(n.entities.number())
	return n, nil
}

// build returns an idle network whose entities no event queue knows yet.
func build(cfg *Config, q *eventqueue.Queue, sink Sink) *Network {
	routes := newRouting(cfg.Hosts, cfg.Switches)
	n := &Network{
		ledger:  ledger{pool: pool{store: newStore(false)}, cold: make([]coldCounters, len(cfg.Ports)), downs: new([]int32)},
		events:  q,
		sink:    sink,
		ports:   make([]port, len(cfg.Ports)),
		routing: &routes,
		pfc:     newFlowControl(cfg),
	}
	n.Observers.watched = noPort
	n.NICs = NICs{ports: n.ports, of: make([]int32, cfg.Hosts), busy: make([]uint8, cfg.Hosts)}
	for s := range cfg.Switches {
		n.names = append(n.names, cfg.Switches[s].Name)
	}
	n.balancing = newBalancing(cfg)
	n.ccm = newCoordination(cfg)
	n.pool.store.notes = n.ccm != nil
	n.stations = newStations(cfg)
	if cfg.disorderly() {
		n.late = &late{}
	}
	n.entities = newEntities(cfg, n.pfc != nil, n.stations != nil)
	accounting := cfg.accounting()
	for i := range cfg.Ports {
		n.ports[i] = newPort(cfg, i)
		from := cfg.Ports[i].From
		n.cold[i].from = from
		if cfg.isHost(from) {
			n.NICs.of[from] = int32(i)
		} else {
			n.ports[i].set(accounted, accounting[int(from)-cfg.Hosts])
		}
	}
	return n
}

// Inject hands p to the NIC of host p.Src, which sends it at once when it is free and otherwise after those
// that wait. It never refuses. The caller fills in Src, Dst, Size, FlowHash, ECN, Class, Context and Header.
func (n *Network) Inject(now units.Time, p *Packet) {
	hosts := uint(n.hosts())
	if p.Size <= 0 || p.Size > math.MaxInt32 || p.Class >= Classes || uint(p.Src) >= hosts || uint(p.Dst) >= hosts {
		panic(fmt.Sprintf("fabric: injected %d bytes of class %d from host %d to host %d of %d",
			p.Size, p.Class, p.Src, p.Dst, hosts))
	}
	n.total.Injected++
	n.total.InjectedBytes += p.Size
	if p.INT {
		n.pool.record(p.number).n = 0
	}
	nic := n.NICs.of[p.Src]
	o := &n.ports[nic]
	n.enter(p)
	if busy := n.NICs.busy[p.Src]; busy != 0 {
		switch {
		case busy&isDown != 0:
			n.cut(nic, p)
			return
		case busy&(lineBusy|1<<p.Class) != 0:
			o.wait(now, p)
			return
		}
	}
	p.SentAt = now
	n.start(now, nic, o, p)
	n.NICs.busy[p.Src] |= lineBusy
	n.events.Set(n.entities.of(nicFree, int(p.Src)), o.freeAt)
}

// Fire does what is due at now for an entity that the event queue has popped and the network Owns.
func (n *Network) Fire(now units.Time, id eventqueue.ID) {
	i := uint32(id - n.entities.first)
	if int(i) >= len(n.ports) {
		n.fireOther(now, int32(i))
		return
	}
	if p := n.exchange.all; p != nil && p.remote[i>>6]>>(i&63)&1 != 0 {
		n.exchange.arrive(n, now, int32(i))
		return
	}
	o := &n.ports[i]
	if o.waiting > 0 && o.flight.first.behind == nil {
		o.advance(n, now) // the next packet on the line, if there is one, started after the last look
	}
	e := o.flight.pop()
	if !o.flight.empty() {
		n.events.Set(id, e.then)
	}
	n.arrive(now, int32(i), e)
}

// fireOther is for the entities that are not a line's.
func (n *Network) fireOther(now units.Time, entity int32) {
	switch r, i := n.entities.what(entity); r {
	case nicFree:
		n.NICs.done(n, now, HostID(i))
	case portFree:
		n.ports[i].transmitted(n, now)
	case frameEnd:
		n.pfc.apply(n, now, i)
	case attendance:
		n.ccm.attend(n, now, int(i))
	case stationTurn:
		n.stations.programs.Advance(now, int(i))
		n.stations.serve(n, now, int(i))
	case lateArrival:
		n.late.deliver(n, now)
	}
}

// arrive is the last bit of e reaching the far end of the line of port from.
func (n *Network) arrive(now units.Time, from int32, e *Packet) {
	if e.next.kind() == joins && e.Hops < maxHops && e.flags&(passed|local) == 0 { // as nearly all do
		e.Hops++
		n.join(now, from, e)
		return
	}
	switch e.next {
	case arrives:
		n.total.Delivered++
		n.total.DeliveredBytes += e.Size
		n.sink.Deliver(now, e)
	case disordered:
		n.late.disturb(n, now, from, e)
	case corrupted:
		n.lose(from, e)
	default:
		e.Hops++
		if e.flags&(passed|local) == 0 || n.stations.attended(n, now, from, e) {
			n.forward(now, from, e)
		}
	}
}

// forward handles e, which has reached the switch at the far end of the link of port from.
func (n *Network) forward(now units.Time, from int32, e *Packet) {
	if e.next == balanced && e.Hops <= maxHops {
		e.next = join(n.balancing.decide(n, now, n.switchAt(n.ports[from].to), from, e))
	}
	switch {
	case e.next == terminates:
		n.ccm.receive(n, now, n.switchAt(NodeID(e.Dst)), e)
	case e.next == unroutable:
		n.unled(n.ports[from].to)
		n.cut(from, e)
	case e.Hops > maxHops:
		n.drop(e)
	default:
		n.join(now, from, e)
	}
}

// maxHops is the most switches a packet passes: the usual initial TTL. Routes that go round in circles end here.
const maxHops = 64

// join puts e, which came by port from, into the port of a switch that its next step names: on the line if it is free, otherwise into
// the queue, if it may.
func (n *Network) join(now units.Time, from int32, e *Packet) {
	i := e.next.port()
	o := &n.ports[i]
	if o.waiting > 0 {
		o.advance(n, now)
	}
	if o.freeAt <= now && (o.held == 0 || o.held>>e.Class&1 == 0) {
		n.start(now, i, o, e)
		if i == n.Observers.watched {
			n.Observers.passed(now, o)
		}
		return
	}
	if o.is(accounted) {
		n.pfc.admit(n, now, o, from, e)
		return
	}
	if o.queued()+e.Size > o.buffer {
		n.refuse(o, e)
		return
	}
	if o.is(marksSoon) {
		o.mark(n, e)
	}
	o.wait(now, e)
	if o.link != within {
		n.exchange.remember(o)
	}
	if i == n.Observers.watched {
		n.Observers.watch(now, o.queued())
	}
}

// start puts e on the free line of port i.
func (n *Network) start(now units.Time, i int32, o *port, e *Packet) {
	o.transmit(n, i, now, e)
	if o.flight.first == e {
		n.events.Set(n.PortEntity(int(i)), e.at)
	}
}
