package fabric

import (
	"fmt"
	"math"

	"weft/timeline"
	"weft/units"
)

// Sink takes what leaves the network. Both methods may call Inject.
type Sink interface {
	// Deliver hands over a packet whose last bit has reached host p.Dst. The sink owns it and gives it back
	// with Put.
	Deliver(now units.Time, p *Packet)
	// Idle tells that the NIC of h has sent everything it had: the instant to pull the next packet.
	Idle(now units.Time, h HostID)
}

// Network is the machine: NICs, links and switches, and the packets in them. Not safe for concurrent use: one
// goroutine owns it, together with the timeline.
//
// A packet costs one event per hop, however full the queue. When a packet starts on a line its arrival at the
// far end is known: it is put on the link's list and the link's entity is armed for the first of the list.
// There is no event for the end of a transmission in a switch. The transmitter is brought up to date
// (advance) when somebody looks at it: a packet that joins its queue, the last packet known to be on its line
// arriving at the far end, a sample. That is early enough, since whatever starts after the last look arrives
// after the packets that were on the line then; and it is exact, since no packet can have joined in between.
//
// At one instant a transmitter that becomes free first takes the next of those that wait; who joins at that
// very instant queues behind it.
type Network struct {
	timeline *timeline.Queue
	sink     Sink
	first    timeline.ID // port i's entity is first+i, host h's NIC first+len(ports)+h
	ports    []port
	nics     []int32 // port of each host
	busy     []bool  // by host: a packet is on the line of its NIC, and the NIC's entity is armed for its end
	routing  routing
	pool     pool
	total    Counters
}

// New builds an idle network and adds its entities to q.
func New(cfg Config, q *timeline.Queue, sink Sink) (*Network, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	n := &Network{
		timeline: q,
		sink:     sink,
		first:    q.Grow(len(cfg.Ports) + cfg.Hosts),
		ports:    make([]port, len(cfg.Ports)),
		nics:     make([]int32, cfg.Hosts),
		busy:     make([]bool, cfg.Hosts),
		routing:  newRouting(&cfg),
	}
	for i := range cfg.Ports {
		n.ports[i] = newPort(&cfg, i)
		if from := cfg.Ports[i].From; cfg.isHost(from) {
			n.nics[from] = int32(i)
		}
	}
	return n, nil
}

// Owns tells whether an entity of the timeline is the network's: whether Fire takes it.
func (n *Network) Owns(id timeline.ID) bool {
	return id >= n.first && int(id-n.first) < len(n.ports)+len(n.nics)
}

// Inject hands p to the NIC of host p.Src, which sends it at once when it is free and otherwise after those
// that wait. It never refuses. The caller fills in Src, Dst, Size, FlowHash, ECN, Class, Payload and Header.
func (n *Network) Inject(now units.Time, p *Packet) {
	hosts := uint(len(n.nics))
	if p.Size <= 0 || p.Size > math.MaxInt32 || p.Class >= Classes || uint(p.Src) >= hosts || uint(p.Dst) >= hosts {
		panic(fmt.Sprintf("fabric: injected %d bytes of class %d from host %d to host %d of %d",
			p.Size, p.Class, p.Src, p.Dst, hosts))
	}
	n.total.Injected++
	n.total.InjectedBytes += p.Size
	nic := n.nics[p.Src]
	o := &n.ports[nic]
	if n.busy[p.Src] {
		o.wait(now, n.wrap(p))
		return
	}
	p.SentAt = now
	n.start(now, nic, o, n.wrap(p))
	n.busy[p.Src] = true
	n.timeline.Set(n.nicEntity(p.Src), o.freeAt)
}

// NICFree tells whether a packet injected now would leave at once. It is false until Idle is called.
func (n *Network) NICFree(h HostID) bool { return !n.busy[h] }

// NICQueued returns the bytes that wait in the NIC of h, besides the packet on the line.
func (n *Network) NICQueued(h HostID) units.Bytes { return n.ports[n.nics[h]].queued() }

func (n *Network) nicEntity(h HostID) timeline.ID {
	return n.first + timeline.ID(len(n.ports)) + timeline.ID(h)
}

// Fire does what is due at now for an entity that the timeline has popped and the network Owns.
func (n *Network) Fire(now units.Time, id timeline.ID) {
	i := int32(id - n.first)
	if int(i) >= len(n.ports) {
		n.nicDone(now, HostID(int(i)-len(n.ports)))
		return
	}
	o := &n.ports[i]
	if o.flight.n == 1 && o.waiting > 0 {
		o.advance(n, now) // the next packet on the line, if there is one, started after the last look
	}
	e := o.flight.pop()
	if o.flight.n > 0 {
		n.timeline.Set(id, o.flight.front().at)
	}
	n.arrive(now, e)
}

// nicDone is the end of a transmission of host h.
func (n *Network) nicDone(now units.Time, h HostID) {
	o := &n.ports[n.nics[h]]
	o.advance(n, now)
	if o.freeAt > now {
		n.timeline.Set(n.nicEntity(h), o.freeAt)
		return
	}
	n.busy[h] = false
	n.sink.Idle(now, h)
}

// arrive is the last bit of e reaching the far end of a line.
func (n *Network) arrive(now units.Time, e *parcel) {
	if e.next == atHost {
		n.total.Delivered++
		n.total.DeliveredBytes += units.Bytes(e.size)
		n.sink.Deliver(now, n.unwrap(e))
		return
	}
	e.hops++
	if e.next == noPort || e.hops > maxHops {
		n.drop(e)
		return
	}
	n.join(now, e.next, e)
}

// maxHops is the most switches a packet passes: the usual initial TTL. Routes that go round in circles end here.
const maxHops = 64

// join puts e into port i of a switch: on the line if it is free, otherwise into the queue, if it fits.
func (n *Network) join(now units.Time, i int32, e *parcel) {
	o := &n.ports[i]
	if o.waiting > 0 {
		o.advance(n, now)
	}
	if o.freeAt <= now {
		n.start(now, i, o, e)
		return
	}
	size := units.Bytes(e.size)
	if o.queued()+size > o.buffer {
		o.drops++
		o.dropBytes += size
		n.drop(e)
		return
	}
	if o.ecn.On && o.ecn.Ingress {
		o.mark(n, e)
	}
	o.wait(now, e)
}

// start puts e on the free line of port i.
func (n *Network) start(now units.Time, i int32, o *port, e *parcel) {
	arrival := o.transmit(n, now, e)
	if o.flight.n == 1 {
		n.timeline.Set(n.first+timeline.ID(i), arrival)
	}
}

// drop counts e as dropped and returns its packet to the pool.
func (n *Network) drop(e *parcel) {
	n.total.Dropped++
	n.total.DroppedBytes += units.Bytes(e.size)
	n.Put(n.pool.packet(e.packet))
}
