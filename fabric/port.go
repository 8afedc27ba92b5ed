package fabric

import "weft/units"

// port is one direction of a link: a queue for each class, the transmitter, and the packets on the line.
//
// While packets wait, freeAt lies after every instant the port has been looked at, so a packet is on the
// line and the link's entity is armed.
type port struct {
	flight  ring        // packets whose transmission has started, by their arrival at the far end
	freeAt  units.Time  // when the transmitter has sent the last bit of the last packet
	waiting int32       // packets that wait
	to      NodeID      // far end
	line    units.Line  // the rate
	delay   units.Time  // propagation
	buffer  units.Bytes // most bytes that wait
	nic     bool        // of a host

	classes [Classes]class
	ecn     ECNConfig
	random  uint64 // state of the marking draws
	count   PortCounters
}

// class is the queue of one priority.
type class struct {
	ring  // by the instant they joined
	bytes units.Bytes
}

func newPort(cfg *Config, i int) port {
	c := &cfg.Ports[i]
	return port{
		to:     c.To,
		line:   units.NewLine(c.Rate),
		delay:  c.Delay,
		buffer: c.Buffer,
		nic:    cfg.isHost(c.From),
		ecn:    c.ECN,
		random: mix(cfg.Seed ^ mix(uint64(i)+1)),
	}
}

// queued returns the bytes that wait.
func (o *port) queued() units.Bytes { return o.classes[0].bytes + o.classes[1].bytes }

// wait puts p at the end of its queue. The caller has checked that it fits.
func (o *port) wait(now units.Time, p *Packet) {
	c := &o.classes[p.Class]
	c.push(now, p)
	c.bytes += p.Size
	o.waiting++
	o.count.MaxQueue = max(o.count.MaxQueue, o.queued())
}

// advance brings the transmitter up to now: every transmission that has started since the last look.
func (o *port) advance(n *Network, now units.Time) {
	for o.waiting > 0 && o.freeAt <= now {
		c := &o.classes[0]
		if c.n == 0 {
			c = &o.classes[1]
		}
		joined := c.pop()
		p, start := joined.packet, o.freeAt
		c.bytes -= p.Size
		o.waiting--
		if o.nic {
			p.SentAt = start
		} else {
			p.Queued += start - joined.at
		}
		if o.ecn.On && !o.ecn.Ingress {
			o.mark(n, p)
		}
		o.transmit(start, p)
	}
}

// transmit puts p on the line at start and returns when its last bit reaches the far end.
func (o *port) transmit(start units.Time, p *Packet) (arrival units.Time) {
	o.freeAt = start + o.line.Transmit(p.Size)
	o.count.Packets++
	o.count.Bytes += p.Size
	arrival = o.freeAt + o.delay
	o.flight.push(arrival, p)
	return arrival
}

// mark sets congestion experienced on p, if p is ECN-capable and what waits in its class asks for it.
func (o *port) mark(n *Network, p *Packet) {
	q := o.classes[p.Class].bytes
	if q <= o.ecn.Kmin || p.ECN == NotECT {
		return
	}
	if q <= o.ecn.Kmax {
		probability := o.ecn.Pmax * float64(q-o.ecn.Kmin) / float64(o.ecn.Kmax-o.ecn.Kmin)
		if o.draw() >= probability {
			return
		}
	}
	p.ECN = CE
	o.count.Marks++
	n.total.Marks++
}

// draw returns the port's next random number in [0, 1) (splitmix64).
func (o *port) draw() float64 {
	o.random += 0x9e3779b97f4a7c15
	return float64(mix(o.random)>>11) * 0x1p-53
}

// ring is a first-in-first-out list of packets and an instant for each. Its storage grows and is kept.
type ring struct {
	slots []stamped // a power of two, or none yet
	head  int32
	n     int32
}

type stamped struct {
	at     units.Time
	packet *Packet
}

func (r *ring) push(at units.Time, p *Packet) {
	if int(r.n) == len(r.slots) {
		r.grow()
	}
	r.slots[int(r.head+r.n)&(len(r.slots)-1)] = stamped{at, p}
	r.n++
}

// front returns the first. The ring must not be empty.
func (r *ring) front() *stamped { return &r.slots[r.head] }

// pop removes and returns the first. The ring must not be empty.
func (r *ring) pop() stamped {
	s := r.slots[r.head]
	r.head = int32(int(r.head+1) & (len(r.slots) - 1))
	r.n--
	return s
}

func (r *ring) grow() {
	bigger := make([]stamped, max(4, 2*len(r.slots)))
	for i := range r.n {
		bigger[i] = r.slots[int(r.head+i)&(len(r.slots)-1)]
	}
	r.slots, r.head = bigger, 0
}
