package fabric

import "weft/units"

// port is one direction of a link: a queue for each class, the transmitter, and the packets on the line.
//
// While packets wait, freeAt lies after every instant the port has been looked at, so a packet is on the
// line and the link's entity is armed.
//
// A port may also be held: it was told to pause a class, whose packets then wait although the line is free. It is
// armed again when the class is resumed.
//
// A network of thousands of ports does not fit the caches nearest to a processor, and the time of a hop is
// mostly the lines it fetches. So what every hop touches comes first, then what packets that wait touch, and
// the size is a multiple of a line.
type port struct {
	flight  ring       // packets whose transmission has started, by their arrival at the far end
	freeAt  units.Time // when the transmitter has sent the last bit of the last packet
	delay   units.Time // propagation
	waiting int32      // packets that wait
	to      NodeID     // far end

	index    int32 // in Config.Ports
	held     uint8 // classes that are paused, a bit each
	punctual bool  // of a switch that accounts for its memory: see pfc.go
	nic      bool
	abroad   abroad

	line     units.Line // the rate
	packets  int64      // see PortCounters
	bytes    units.Bytes
	maxQueue units.Bytes
	random   uint64      // state of the marking draws
	errors   *lineErrors // nil: the line makes none

	classes [Classes]class
	buffer  units.Bytes // most bytes that wait; unlimited for a NIC
	ecn     ECNConfig
	marks   int64
}

// unlimited is the buffer of a NIC, and of a port that only the memory of its switch bounds.
const unlimited units.Bytes = 1<<63 - 1

// class is the queue of one priority.
type class struct {
	ring  // by the instant they joined
	bytes units.Bytes
}

func newPort(cfg *Config, i int) port {
	c := &cfg.Ports[i]
	o := port{
		to:     c.To,
		index:  int32(i),
		nic:    cfg.isHost(c.From),
		line:   units.NewLine(c.Rate),
		delay:  c.Delay,
		buffer: c.Buffer,
		ecn:    c.ECN,
		random: mix(cfg.Seed ^ mix(uint64(i)+1)),
	}
	if o.nic || o.buffer == 0 {
		o.buffer = unlimited
	}
	o.errors = newLineErrors(c.Loss, c.BitErrors, c.Disorder, o.random)
	return o
}

// host returns the host whose NIC the port is.
func (o *port) host(n *Network) HostID { return HostID(n.tallies[o.index].from) }

// queued returns the bytes that wait.
func (o *port) queued() units.Bytes { return o.classes[0].bytes + o.classes[1].bytes }

// wait puts e at the end of its queue. The caller has checked that it fits.
func (o *port) wait(now units.Time, e *parcel) {
	c := &o.classes[e.class]
	c.push(e).at = now
	c.bytes += units.Bytes(e.size)
	o.waiting++
	o.maxQueue = max(o.maxQueue, o.queued())
}

// advance brings the transmitter up to now: every transmission that has started since the last look.
func (o *port) advance(n *Network, now units.Time) {
	for o.waiting > 0 && o.freeAt <= now {
		c := &o.classes[0]
		if c.n == 0 {
			c = &o.classes[1]
		}
		if o.held != 0 {
			if c = o.pick(); c == nil {
				return
			}
		}
		e, start := c.pop(), o.freeAt
		c.bytes -= units.Bytes(e.size)
		o.waiting--
		if o.nic {
			n.pool.packet(e.packet).SentAt = start
		} else {
			*n.pool.queued(e.packet) += start - e.at
			if o.punctual {
				n.release(start, e)
			}
		}
		if o.ecn.On && !o.ecn.Ingress {
			o.mark(n, e)
		}
		if o.index == n.watched {
			n.watch(start, o.queued())
		}
		o.transmit(n, start, e)
	}
}

// pick returns the class whose first packet is sent next, or nil when all that wait are held.
func (o *port) pick() *class {
	for c := range o.classes {
		if o.classes[c].n > 0 && o.held>>c&1 == 0 {
			return &o.classes[c]
		}
	}
	return nil
}

// transmit puts e on the line at start and returns when its last bit reaches the far end.
func (o *port) transmit(n *Network, start units.Time, e *parcel) (arrival units.Time) {
	size := units.Bytes(e.size)
	o.freeAt = start + o.line.Transmit(size)
	if e.flags&noted != 0 && !o.nic {
		o.stamp(n, start, e)
	}
	if n.trace != nil {
		n.trace(start, int(o.index), n.pool.packet(e.packet), e.ecn)
	}
	o.packets++
	o.bytes += size
	arrival = o.freeAt + o.delay
	if o.abroad != no {
		e = n.post(o, e)
	} else {
		e = o.flight.push(e)
	}
	e.at = arrival
	if o.errors != nil {
		if e.next = o.errors.becomes(size); e.next != noPort {
			return arrival
		}
	}
	if o.abroad == no { // the other part looks it up in tables of its own
		e.next = n.routing.next(o.to, e)
	}
	return arrival
}

// mark sets congestion experienced on e, if it is ECN-capable and what waits in its class asks for it.
func (o *port) mark(n *Network, e *parcel) {
	q := o.classes[e.class].bytes
	if q <= o.ecn.Kmin || e.ecn == NotECT {
		return
	}
	if n.ccm != nil {
		if t := n.pool.tag(e.packet); t.On && !t.mark {
			return
		}
	}
	if q <= o.ecn.Kmax {
		probability := o.ecn.Pmax * float64(q-o.ecn.Kmin) / float64(o.ecn.Kmax-o.ecn.Kmin)
		if draw(&o.random) >= probability {
			return
		}
	}
	e.ecn = CE
	o.marks++
	n.total.Marks++
}

// draw returns the next random number in [0, 1) of a generator (splitmix64).
func draw(state *uint64) float64 {
	*state += 0x9e3779b97f4a7c15
	return float64(mix(*state)>>11) * 0x1p-53
}
