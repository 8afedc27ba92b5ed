package fabric

import (
	"math"

	"weft/internal/splitmix"
	"weft/units"
)

// port is one direction of a link: a queue for each class, the transmitter, and the packets on the
// link.
//
// While packets wait, freeAt lies after every instant at which the port was looked at. So a packet
// is on the link and the link's entity is armed.
//
// A port may also hold classes, because it was told to pause them. Packets of such a class wait
// although the link is free, and the port is armed again when the class is resumed.
//
// A network of thousands of ports does not fit the caches nearest to a processor, and the time of a
// hop is mostly the cache lines that it loads. So the fields are in three cache lines: what every
// hop touches, what waiting packets touch, and what decides about waiting packets.
type port struct {
	flight  list       // packets whose transmission has started, by arrival at the far end
	freeAt  units.Time `state:"-"`    // end of the last transmission that has started
	delay   units.Time `state:"span"` // propagation delay
	begun   `state:"count"`
	waiting int32  // packets in the queues
	to      NodeID // node at the far end
	// transmission time of a byte in ps; 0: not a whole number or too large, ask line
	perByte int32
	held    uint8  // bit mask of paused classes
	traits  traits // bit mask of properties
	farEnd  farEnd // which partition the far end is in

	classes  [Classes]class
	maxQueue units.Bytes `state:"-"` // largest number of bytes that waited
	index    int32       // in Config.Ports

	buffer units.Bytes // largest number of bytes that may wait; unlimited for a NIC
	ecn    ECNConfig
	random uint64 `state:",random draws of switches"` // state of the draws for marking
	marks  int64  `state:"count"`                     // packets marked CE here
	// nil: the link delivers every packet once, intact and in order
	errors *linkErrors `state:",random draws of links"`

	line units.Line `state:"span"` // rate of the link
	_    [5]uint64
}

// begun counts the packets whose transmission has started.
type begun struct {
	packets int64
	bytes   units.Bytes // sum of their sizes
}

// paused reports whether the far end has paused a class.
func (o *port) paused(class uint8) bool { return o.held>>class&1 != 0 }

// traits is a bit mask of the properties of a port.
type traits uint8

const (
	nic       traits = 1 << iota
	accounted        // of a switch that accounts for its memory; see pfc.go
	marksLate        // marks packets that leave its queue
	marksSoon        // marks packets that join its queue
	faulty           // its link corrupts, delays or duplicates packets
	trims            // cuts packets that do not fit to their headers
	trimsFair        // sometimes cuts the last that waits in their place
)

func (o *port) is(t traits) bool { return o.traits&t != 0 }

// set sets or clears a property of the port.
func (o *port) set(t traits, on bool) {
	if o.traits &^= t; on {
		o.traits |= t
	}
}

// setLine makes l the rate of the port's link.
func (o *port) setLine(l units.Line) {
	o.line, o.perByte = l, 0
	if one := l.PerByte(); one <= math.MaxInt32 {
		o.perByte = int32(one)
	}
}

// setErrors sets the errors of the port's link; nil: none.
func (o *port) setErrors(e *linkErrors) {
	o.errors = e
	o.set(faulty, e != nil)
}

// unlimited is the buffer of a NIC, and of a port that is bounded only by the memory of its switch.
const unlimited units.Bytes = 1<<63 - 1

// class is the queue of one priority.
type class struct {
	list              // in the order they joined
	bytes units.Bytes // sum of their sizes
}

func newPort(cfg *Config, i int) port {
	c := &cfg.Ports[i]
	o := port{
		to:     c.To,
		index:  int32(i),
		delay:  c.Delay,
		buffer: c.Buffer,
		ecn:    c.ECN,
		random: splitmix.Mix(cfg.Seed ^ splitmix.Mix(uint64(i)+1)),
	}
	o.setLine(units.NewLine(c.Rate))
	o.set(nic, cfg.isHost(c.From))
	o.set(marksSoon, c.ECN.On && c.ECN.Ingress)
	o.set(marksLate, c.ECN.On && !c.ECN.Ingress)
	o.set(trims, c.Trim.On && !o.is(nic))
	o.set(trimsFair, c.Trim.Fair)
	if o.is(nic) || o.buffer == 0 {
		o.buffer = unlimited
	}
	o.setErrors(newLinkErrors(c.Link, o.random))
	return o
}

// host returns the host whose NIC the port is.
func (o *port) host(n *Network) HostID { return HostID(n.cold[o.index].from) }

// queued returns the bytes that wait.
func (o *port) queued() units.Bytes { return o.classes[0].bytes + o.classes[1].bytes }

// wait appends e to the queue of its class. The caller has checked that it fits.
func (o *port) wait(now units.Time, e *Packet) {
	c := &o.classes[e.Class]
	e.at = now
	c.push(e)
	c.bytes += e.Size
	o.waiting++
	o.maxQueue = max(o.maxQueue, o.queued())
}

// advance starts every transmission that has become due since the port was last looked at, up to
// now.
func (o *port) advance(n *Network, now units.Time) {
	for o.waiting > 0 && o.freeAt <= now {
		c := &o.classes[0]
		if c.empty() {
			c = &o.classes[1]
		}
		if o.held != 0 {
			if c = o.pick(); c == nil {
				return
			}
		}
		e, start := c.pop(), o.freeAt
		c.bytes -= e.Size
		o.waiting--
		if o.is(nic) {
			e.SentAt = start
		} else {
			e.Queued += start - e.at
			if o.is(accounted) {
				n.pfc.release(n, start, e)
			}
		}
		if o.is(marksLate) {
			o.mark(n, e)
		}
		if o.index == n.Observers.watched {
			n.Observers.watch(start, o.queued())
		}
		o.transmit(n, o.index, start, e)
	}
}

// pick returns the class whose first packet is sent next, or nil if every class that waits is
// paused.
func (o *port) pick() *class {
	for c := range o.classes {
		if !o.classes[c].empty() && !o.paused(uint8(c)) {
			return &o.classes[c]
		}
	}
	return nil
}

// transmit puts e on the link of o, which is port i, at start.
func (o *port) transmit(n *Network, i int32, start units.Time, e *Packet) {
	took := units.Time(o.perByte) * units.Time(e.Size)
	if o.perByte == 0 {
		took = o.line.Transmit(e.Size)
	}
	o.freeAt = start + took
	if e.flags&asksINT != 0 && !o.is(nic) {
		o.stamp(n, start, e)
	}
	if n.Observers.trace != nil {
		n.Observers.trace(start, int(i), e, e.ECN)
	}
	o.packets++
	o.bytes += e.Size
	e.at = o.freeAt + o.delay
	e.next = undecided
	if o.is(faulty) {
		e.next = o.errors.step(e.Size)
	}
	if o.farEnd != within { // the far partition looks up the next step
		n.exchange.post(i, o, e)
		return
	}
	o.flight.push(e)
	if e.next == undecided {
		e.next = n.routing.next(o.to, e)
	}
}

// mark sets CE on e if it is ECN-capable and the queue of its class demands it: see ECNConfig.
func (o *port) mark(n *Network, e *Packet) {
	q := o.classes[e.Class].bytes
	if q <= o.ecn.Kmin || e.ECN == NotECT || e.flags&trimmed != 0 {
		return
	}
	if n.ccm != nil && e.Tag.On && !e.Tag.mark {
		return
	}
	if q <= o.ecn.Kmax {
		probability := o.ecn.Pmax * float64(q-o.ecn.Kmin) / float64(o.ecn.Kmax-o.ecn.Kmin)
		if draw(&o.random) >= probability {
			return
		}
	}
	e.ECN = CE
	o.marks++
	n.total.Marks++
}

// draw returns the next random number in [0, 1) of a SplitMix64 generator.
func draw(state *uint64) float64 {
	return float64(splitmix.Step(state)>>11) * 0x1p-53
}

// transmitted handles the end of a transmission of an accounted port.
func (o *port) transmitted(n *Network, now units.Time) {
	o.advance(n, now)
	o.armArrival(n)
	o.armTransmitter(n)
}

// catchUp brings the port up to now. For a NIC this includes the end of its transmission.
func (o *port) catchUp(n *Network, now units.Time) {
	if !o.is(nic) {
		o.advance(n, now)
		o.armArrival(n)
		return
	}
	h := o.host(n)
	if n.NICs.busy[h]&linkBusy != 0 && o.freeAt <= now {
		n.events.Clear(n.entities.of(nicFree, int(h)))
		n.NICs.done(n, now, h)
	}
}

// restart makes a port send again after its link became free or a class was resumed.
func (o *port) restart(n *Network, now units.Time) {
	if o.is(nic) {
		h := o.host(n)
		if n.NICs.busy[h]&(linkBusy|isDown) == 0 {
			o.freeAt = now
			n.NICs.busy[h] |= linkBusy
			n.NICs.done(n, now, h)
			o.armArrival(n)
		}
		return
	}
	o.freeAt = max(o.freeAt, now)
	o.advance(n, now)
	o.armArrival(n)
	o.armTransmitter(n)
}

// armTransmitter arms an accounted port for the instant its link becomes free, if a packet may
// start then.
func (o *port) armTransmitter(n *Network) {
	if o.is(accounted) && o.waiting > 0 && o.pick() != nil {
		n.events.Set(n.entities.of(portFree, int(o.index)), o.freeAt)
	}
}

// armArrival arms the port's entity for the first arrival at the far end of its link.
func (o *port) armArrival(n *Network) {
	if !o.flight.empty() {
		n.events.Set(n.PortEntity(int(o.index)), o.flight.first.at)
	}
}

// inFlight returns the packets on the link of a port, and the network of the partition that fires
// when they arrive.
func (o *port) inFlight(n *Network) (*list, *Network) {
	if o.farEnd == within {
		return &o.flight, n.of(o.index)
	}
	all := n.exchange.all
	far := all.all[all.partition[o.to]]
	return &far.exchange.arrivals[all.arrival[o.index]], far
}

// lastArrival returns when the last packet on the link of a port reaches the far end. ok is false
// if the link is empty.
func (o *port) lastArrival(n *Network) (at units.Time, ok bool) {
	flight, _ := o.inFlight(n)
	if !flight.empty() {
		at, ok = flight.last.at, true
	}
	if o.farEnd != within { // a packet that has just started is not with the far partition yet
		if posted, started := n.exchange.lastPosted(o); started {
			at, ok = max(at, posted), true
		}
	}
	return at, ok
}
