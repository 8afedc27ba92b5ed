package fabric

import (
	"fmt"
	"math"

	"weft/eventqueue"
	"weft/units"
)

// Sink takes what leaves the network. Both methods may call Network.Inject.
type Sink interface {
	// Deliver hands over a packet whose last bit has reached host p.Dst. The sink owns it and
	// returns it with Put.
	Deliver(now units.Time, p *Packet)
	// Idle reports that the NIC of h has sent every packet that it may send. The host may inject
	// the next one now if NICs.Free allows it. A NIC holds the packets of a paused class; Idle is
	// called again when the pause ends.
	Idle(now units.Time, h HostID)
}

// Network is the machine: NICs, links and switches, and the packets in them. It is not safe for
// concurrent use: one goroutine owns it, together with the event queue.
//
// A packet costs one event per hop, however full the queues are. When its transmission starts, its
// arrival at the far end is known: it joins the list of its link, and the link's entity is armed
// for the first packet of that list. The end of a transmission in a switch has no event. Instead
// the transmitter is brought up to date (advance) when something looks at it: a packet that joins
// its queue, the arrival of the last packet known to be on its link, or a sample. This is early
// enough, because a transmission that starts after the last look arrives after the packets that
// were on the link then. It is exact, because no packet can have joined in between.
//
// Ports of switches that account for their memory are the exception: see pfc.go.
//
// At one instant, a transmitter that becomes free first takes the next packet of its queue. A
// packet that joins at that same instant queues behind it.
type Network struct {
	ledger `state:"count"` // all packets, and counters of their fates

	surroundings `state:"-"`
	ports        []port
	NICs         NICs // what hosts ask about their NICs

	pfc       *flowControl  `state:",memory of switches"`            // nil: no switch accounts for its memory
	balancing *balancing    `state:",paths of switches"`             // nil: no switch chooses a port for each packet
	ccm       *coordination `state:"never,coordination of switches"` // nil: no CCM
	late      *late         `state:"never,late packets"`             // nil: no link delivers packets late or twice
	stations  *stations     // nil: no programs on switches

	// by port: its largest queue before the last call of RestartMaxQueue; nil: there was none
	earlier []units.Bytes
}

// surroundings is what a network works with and does not change.
type surroundings struct {
	events    *eventqueue.Queue
	sink      Sink
	entities  entities
	routing   *routing
	Observers Observers // callbacks
	names     []string  // of the switches
	exchange  exchange  // with other partitions
}

// New builds an idle network and adds its entities to q. It returns an error that lists everything
// that is wrong with cfg.
func New(cfg Config, q *eventqueue.Queue, sink Sink) (*Network, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	n := build(&cfg, q, sink)
	n.entities.first = q.Grow(n.entities.number())
	return n, nil
}

// build returns an idle network whose entities are in no event queue yet.
func build(cfg *Config, q *eventqueue.Queue, sink Sink) *Network {
	routes := newRouting(cfg.Hosts, cfg.Switches)
	n := &Network{
		ledger: ledger{
			pool:  pool{store: newStore(false)},
			cold:  make([]coldCounters, len(cfg.Ports)),
			downs: new([]int32),
		},
		surroundings: surroundings{events: q, sink: sink, routing: &routes},
		ports:        make([]port, len(cfg.Ports)),
		pfc:          newFlowControl(cfg),
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
		n.cold[i].from, n.cold[i].trimSize = from, cfg.Ports[i].Trim.Size
		if cfg.isHost(from) {
			n.NICs.of[from] = int32(i)
		} else {
			n.ports[i].set(accounted, accounting[int(from)-cfg.Hosts])
		}
	}
	return n
}

// Inject hands p to the NIC of host p.Src. A free NIC sends it at once, otherwise it queues. Inject
// never rejects a packet, and panics if Src, Dst, Size or Class are out of range. The caller fills
// in Src, Dst, Size, FlowHash, ECN, Class, Context and Header.
func (n *Network) Inject(now units.Time, p *Packet) {
	hosts := uint(n.hosts())
	if p.Size <= 0 || p.Size > math.MaxInt32 || p.Class >= Classes || uint(p.Src) >= hosts || uint(p.Dst) >= hosts {
		panic(fmt.Sprintf("fabric: injected %d bytes of class %d from host %d to host %d of %d",
			p.Size, p.Class, p.Src, p.Dst, hosts))
	}
	n.total.Injected++
	n.total.InjectedBytes += p.Size
	if p.INT {
		n.pool.record(p.number).n = 0 // no switch has added telemetry yet
	}
	nic := n.NICs.of[p.Src]
	o := &n.ports[nic]
	n.enter(p)
	if busy := n.NICs.busy[p.Src]; busy != 0 {
		switch {
		case busy&isDown != 0:
			n.cut(nic, p)
			return
		case busy&(linkBusy|1<<p.Class) != 0:
			o.wait(now, p)
			return
		}
	}
	p.SentAt = now
	n.start(now, nic, o, p)
	n.NICs.busy[p.Src] |= linkBusy
	n.events.Set(n.entities.of(nicFree, int(p.Src)), o.freeAt)
}

// Fire handles an entity that the event queue has popped at now. The network must own it (Owns).
func (n *Network) Fire(now units.Time, id eventqueue.ID) {
	i := uint32(id - n.entities.first)
	p := n.exchange.all
	if p != nil {
		i = uint32(n.events.Key(id))
	}
	if int(i) >= len(n.ports) {
		n.fireOther(now, int32(i))
		return
	}
	if p != nil && p.remote[i>>6]>>(i&63)&1 != 0 {
		n.exchange.arrive(n, now, int32(i))
		return
	}
	o := &n.ports[i]
	if o.waiting > 0 && o.flight.first.behind == nil {
		o.advance(n, now) // the next packet on the link, if any, started after the last look
	}
	e := o.flight.pop()
	if !o.flight.empty() {
		if p != nil {
			o.flight.first.prefetch(n.isHost(o.to))
		}
		n.events.Set(id, e.behindAt)
	}
	n.arrive(now, int32(i), e)
}

// fireOther handles the entities that are not a port's arrival.
func (n *Network) fireOther(now units.Time, entity int32) {
	switch r, i := n.entities.what(entity); r {
	case nicFree:
		n.NICs.done(n, now, HostID(i))
	case portFree:
		n.ports[i].transmitted(n, now)
	case frameEnd:
		n.pfc.apply(n, now, i)
	case ccmTimer:
		n.ccm.checkIncast(n, now, int(i))
	case stationTimer:
		n.stations.programs.Advance(now, int(i))
		n.stations.serve(n, now, int(i))
	case lateArrival:
		n.late.deliver(n, now)
	}
}

// arrive handles e, whose last bit has reached the far end of the link of port from.
func (n *Network) arrive(now units.Time, from int32, e *Packet) {
	if e.next.kind() == joins && e.Hops < maxHops && e.flags&(passed|local) == 0 { // true of nearly all packets
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
		if e.flags&(passed|local) == 0 || n.stations.admit(n, now, from, e) {
			n.forward(now, from, e)
		}
	}
}

// forward handles e, which has reached the switch at the far end of the link of port from and does
// not simply join a port.
func (n *Network) forward(now units.Time, from int32, e *Packet) {
	if e.next == balanced && e.Hops <= maxHops {
		e.next = join(n.balancing.decide(n, now, n.switchAt(n.ports[from].to), from, e))
	}
	switch {
	case e.next == terminates:
		n.ccm.receive(n, now, n.switchAt(NodeID(e.Dst)), e)
	case e.next == unroutable:
		n.blameLastDown(n.ports[from].to)
		n.cut(from, e)
	case e.Hops > maxHops:
		n.drop(e)
	default:
		n.join(now, from, e)
	}
}

// maxHops is the largest number of switches that a packet passes: the usual initial TTL. It ends
// packets in routing loops.
const maxHops = 64

// join puts e, which arrived by port from, into the output port that its next step names: on the
// link if that is free, otherwise into the queue if it fits.
func (n *Network) join(now units.Time, from int32, e *Packet) {
	i := e.next.port()
	o := &n.ports[i]
	if o.waiting > 0 {
		o.advance(n, now)
	}
	if o.freeAt <= now && !o.paused(e.Class) {
		n.start(now, i, o, e)
		if i == n.Observers.watched {
			n.Observers.passed(now, o)
		}
		return
	}
	if o.is(accounted | trims) {
		if o.is(accounted) {
			n.pfc.admit(n, now, o, from, e)
			return
		}
		if e = n.fit(now, o, e); e == nil {
			return
		}
	} else if o.queued()+e.Size > o.buffer {
		n.refuse(o, e)
		return
	}
	if o.is(marksSoon) {
		o.mark(n, e)
	}
	o.wait(now, e)
	if o.farEnd != within {
		n.exchange.remember(o)
	}
	if i == n.Observers.watched {
		n.Observers.watch(now, o.queued())
	}
}

// start puts e on the free link of port i.
func (n *Network) start(now units.Time, i int32, o *port, e *Packet) {
	o.transmit(n, i, now, e)
	if o.flight.first == e {
		n.events.Set(n.PortEntity(int(i)), e.at)
	}
}
