package fabric

import (
	"math"

	"weft/internal/splitmix"
	"weft/units"
)

// port is one direction of a link: a queue for each class, the transmitter, and the packets on the line.
//
// While packets wait, freeAt lies after every instant the port has been looked at, so a packet is on the
// line and the link's entity is armed.
//
// A port may also be held: it was told to pause a class, whose packets then wait although the line is free. It is
// armed again when the class is resumed.
//
// A network of thousands of ports does not fit the caches nearest to a processor, and the time of a hop is
// mostly the lines it fetches. So what every hop touches is the first line, what packets that wait touch the second, and what
// decides about those the third.
type port struct {
	flight  list       // packets whose transmission has started, by their arrival at the far end
	freeAt  units.Time // when the transmitter has sent the last bit of the last packet
	delay   units.Time // propagation
	packets int64      // see PortCounters
	bytes   units.Bytes
	waiting int32  // packets that wait
	to      NodeID // far end
	perByte int32  // how long a byte takes in ps, or 0 when line has to be asked
	held    uint8  // classes that are paused, a bit each
	kind    kind
	link    link

	classes  [Classes]class
	maxQueue units.Bytes
	index    int32 // in Config.Ports

	buffer units.Bytes // most bytes that wait; unlimited for a NIC
	ecn    ECNConfig
	random uint64 // state of the marking draws
	marks  int64
	errors *lineErrors // nil: the line makes none

	line units.Line // the rate
	_    [5]uint64
}

// kind is what is special about a port, a bit each.
type kind uint8

const (
	nic       kind = 1 << iota
	accounted      // of a switch that accounts for its memory: see pfc.go
	marksLate      // marks packets that leave its queue
	marksSoon      // marks packets that join its queue
	faulty         // its line makes errors
)

func (o *port) is(k kind) bool { return o.kind&k != 0 }

// set changes what a port is.
func (o *port) set(k kind, on bool) {
	if o.kind &^= k; on {
		o.kind |= k
	}
}

// setLine makes l the port's line.
func (o *port) setLine(l units.Line) {
	o.line, o.perByte = l, 0
	if one := l.PerByte(); one <= math.MaxInt32 {
		o.perByte = int32(one)
	}
}

// setErrors makes the port's line corrupt packets: nil, it does not.
func (o *port) setErrors(e *lineErrors) {
	o.errors = e
	o.set(faulty, e != nil)
}

// unlimited is the buffer of a NIC, and of a port that only the memory of its switch bounds.
const unlimited units.Bytes = 1<<63 - 1

// class is the queue of one priority.
type class struct {
	list  // by the instant they joined
	bytes units.Bytes
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
	if o.is(nic) || o.buffer == 0 {
		o.buffer = unlimited
	}
	o.setErrors(newLineErrors(c.Loss, c.BitErrors, c.Disorder, o.random))
	return o
}

// host returns the host whose NIC the port is.
func (o *port) host(n *Network) HostID { return HostID(n.cold[o.index].from) }

// queued returns the bytes that wait.
func (o *port) queued() units.Bytes { return o.classes[0].bytes + o.classes[1].bytes }

// wait puts e at the end of its queue. The caller has checked that it fits.
func (o *port) wait(now units.Time, e *Packet) {
	c := &o.classes[e.Class]
	e.at = now
	c.push(e)
	c.bytes += e.Size
	o.waiting++
	o.maxQueue = max(o.maxQueue, o.queued())
}

// advance brings the transmitter up to now: every transmission that has started since the last look.
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

// pick returns the class whose first packet is sent next, or nil when all that wait are held.
func (o *port) pick() *class {
	for c := range o.classes {
		if !o.classes[c].empty() && o.held>>c&1 == 0 {
			return &o.classes[c]
		}
	}
	return nil
}

// transmit puts e on the line of o, which is port i, at start.
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
	if o.link != within { // the other partition looks up where it goes next
		n.exchange.post(i, o, e)
		return
	}
	o.flight.push(e)
	if e.next == undecided {
		e.next = n.routing.next(o.to, e)
	}
}

// mark sets congestion experienced on e, if it is ECN-capable and what waits in its class asks for it.
func (o *port) mark(n *Network, e *Packet) {
	q := o.classes[e.Class].bytes
	if q <= o.ecn.Kmin || e.ECN == NotECT {
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

// draw returns the next random number in [0, 1) of a splitmix generator.
func draw(state *uint64) float64 {
	return float64(splitmix.Step(state)>>11) * 0x1p-53
}

// transmitted is the end of a transmission of an accounted port.
func (o *port) transmitted(n *Network, now units.Time) {
	o.advance(n, now)
	o.armArrival(n)
	o.armTransmitter(n)
}

// catchUp brings the port up to now, a NIC's end of transmission included.
func (o *port) catchUp(n *Network, now units.Time) {
	if !o.is(nic) {
		o.advance(n, now)
		o.armArrival(n)
		return
	}
	h := o.host(n)
	if n.NICs.busy[h]&lineBusy != 0 && o.freeAt <= now {
		n.events.Clear(n.entities.of(nicFree, int(h)))
		n.NICs.done(n, now, h)
	}
}

// restart has a port go on whose line is free or whose classes may have been resumed.
func (o *port) restart(n *Network, now units.Time) {
	if o.is(nic) {
		h := o.host(n)
		if n.NICs.busy[h]&(lineBusy|isDown) == 0 {
			o.freeAt = now
			n.NICs.busy[h] |= lineBusy
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

// armTransmitter makes an accounted port's entity fire when its line falls free, if something may start then.
func (o *port) armTransmitter(n *Network) {
	if o.is(accounted) && o.waiting > 0 && o.pick() != nil {
		n.events.Set(n.entities.of(portFree, int(o.index)), o.freeAt)
	}
}

// armArrival makes the port's entity fire when the first packet on its line arrives.
func (o *port) armArrival(n *Network) {
	if !o.flight.empty() {
		n.events.Set(n.PortEntity(int(o.index)), o.flight.first.at)
	}
}

// inFlight returns the packets on the line of a port, and the part that fires when they arrive.
func (o *port) inFlight(n *Network) (*list, *Network) {
	if o.link == within {
		return &o.flight, n.of(o.index)
	}
	all := n.exchange.all
	far := all.all[all.partition[o.to]]
	return &far.exchange.arrivals[all.arrival[o.index]], far
}

// lastArrival returns when the last packet on the line of a port reaches its far end, and whether there is one.
func (o *port) lastArrival(n *Network) (at units.Time, ok bool) {
	flight, _ := o.inFlight(n)
	if !flight.empty() {
		at, ok = flight.last.at, true
	}
	if o.link != within { // one that has just started is not with the other partition yet
		if posted, started := n.exchange.lastPosted(o); started {
			at, ok = max(at, posted), true
		}
	}
	return at, ok
}
