package fabric

import "weft/units"

// port is one direction of a link: a queue for each class, the transmitter, and the packets on the line.
//
// While packets wait, freeAt lies after every instant the port has been looked at, so a packet is on the
// line and the link's entity is armed.
//
// A network of thousands of ports does not fit the caches nearest to a processor, and the time of a hop is
// mostly the lines it fetches. So what every hop touches comes first, then what packets that wait touch, and
// the size is a multiple of a line.
type port struct {
	flight  ring        // packets whose transmission has started, by their arrival at the far end
	freeAt  units.Time  // when the transmitter has sent the last bit of the last packet
	delay   units.Time  // propagation
	waiting int32       // packets that wait
	to      NodeID      // far end
	buffer  units.Bytes // most bytes that wait; unlimited for a NIC

	line     units.Line // the rate
	packets  int64      // see PortCounters
	bytes    units.Bytes
	maxQueue units.Bytes
	random   uint64 // state of the marking draws

	classes   [Classes]class
	ecn       ECNConfig
	drops     int64
	dropBytes units.Bytes
	marks     int64
}

// unlimited is the buffer of a NIC.
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
		line:   units.NewLine(c.Rate),
		delay:  c.Delay,
		buffer: c.Buffer,
		ecn:    c.ECN,
		random: mix(cfg.Seed ^ mix(uint64(i)+1)),
	}
	if cfg.isHost(c.From) {
		o.buffer = unlimited
	}
	return o
}

// isNIC tells whether the port is a host's.
func (o *port) isNIC() bool { return o.buffer == unlimited }

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
		e, start := c.pop(), o.freeAt
		c.bytes -= units.Bytes(e.size)
		o.waiting--
		if o.isNIC() {
			n.pool.packet(e.packet).SentAt = start
		} else {
			n.pool.queued[e.packet] += start - e.at
		}
		if o.ecn.On && !o.ecn.Ingress {
			o.mark(n, e)
		}
		o.transmit(n, start, e)
	}
}

// transmit puts e on the line at start and returns when its last bit reaches the far end.
func (o *port) transmit(n *Network, start units.Time, e *parcel) (arrival units.Time) {
	size := units.Bytes(e.size)
	o.freeAt = start + o.line.Transmit(size)
	o.packets++
	o.bytes += size
	arrival = o.freeAt + o.delay
	e = o.flight.push(e)
	e.at = arrival
	e.next = n.routing.next(o.to, e)
	return arrival
}

// mark sets congestion experienced on e, if it is ECN-capable and what waits in its class asks for it.
func (o *port) mark(n *Network, e *parcel) {
	q := o.classes[e.class].bytes
	if q <= o.ecn.Kmin || e.ecn == NotECT {
		return
	}
	if q <= o.ecn.Kmax {
		probability := o.ecn.Pmax * float64(q-o.ecn.Kmin) / float64(o.ecn.Kmax-o.ecn.Kmin)
		if o.draw() >= probability {
			return
		}
	}
	e.ecn = CE
	o.marks++
	n.total.Marks++
}

// draw returns the port's next random number in [0, 1) (splitmix64).
func (o *port) draw() float64 {
	o.random += 0x9e3779b97f4a7c15
	return float64(mix(o.random)>>11) * 0x1p-53
}
