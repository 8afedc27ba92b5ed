package fabric

import (
	"math"

	"weft/units"
)

// late holds the stragglers of a network, or of one partition of it: a binary heap by the instant
// of arrival. One entity of the event queue, lateArrival, stands for the first of them.
type late struct {
	heap []straggler
	n    uint64 // number of stragglers so far
}

// straggler is a packet that has passed its link's delay and arrives later than that.
type straggler struct {
	packet *Packet
	from   int32  // the port whose link delivers it
	number uint64 // order of stragglers; decides among those that arrive at one instant
}

func (s *straggler) before(o *straggler) bool {
	return s.packet.at < o.packet.at || s.packet.at == o.packet.at && s.number < o.number
}

// maxJitter keeps drawn delays far from overflow.
const maxJitter = units.Second

// jitter draws the additional delay of a packet: exponential, at most 36 times the mean.
func (l *linkErrors) jitter() units.Time {
	if l.link.Jitter == 0 {
		return 0
	}
	return 1 - units.Time(float64(l.link.Jitter)*math.Log1p(-draw(&l.shuffle)))
}

// disorderly reports whether a link of c delivers packets late or twice, or may be changed to.
func (c *Config) disorderly() bool {
	return c.Disturbable || c.HasLink(nil, (*Link).Disturbs)
}

// disturb handles e at the end of the link of port from, which disturbs packets: e arrives now,
// later, or twice.
func (l *late) disturb(n *Network, now units.Time, from int32, e *Packet) {
	o := &n.ports[from]
	d := o.errors
	e.next = n.routing.next(o.to, e) // not when it left: routes may have changed since
	if d == nil {                    // the link has been changed since
		n.arrive(now, from, e)
		return
	}
	var copied *Packet
	if draw(&d.shuffle) < d.link.Duplicate {
		copied = n.duplicate(e)
	}
	later := d.jitter()
	if draw(&d.shuffle) < d.link.Reorder {
		n.total.Late++
		later += 1 + units.Time(draw(&d.shuffle)*float64(d.link.ReorderBy))
	}
	if later > 0 {
		e.at = now + later
		l.n++ // packets that arrive at the same instant do so in the order in which they became late
		l.push(straggler{packet: e, from: from, number: l.n})
		n.events.Set(n.entities.of(lateArrival, 0), l.heap[0].packet.at)
	} else {
		n.arrive(now, from, e)
	}
	if copied != nil { // never late, so that it overtakes an original that is
		n.arrive(now, from, copied)
	}
}

// duplicate returns a copy of p.
func (n *Network) duplicate(p *Packet) *Packet {
	c := n.Get()
	number, header := c.number, c.Header
	*c = *p // including p.room, which is unused: Header is copied below
	c.number, c.Header = number, append(header[:0], p.Header...)
	if c.INT {
		*n.pool.record(c.number) = *n.pool.record(p.number)
	}
	if n.ccm != nil {
		*n.pool.note(c.number) = *n.pool.note(p.number)
	}
	n.total.Duplicated++
	n.total.DuplicatedBytes += p.Size
	return c
}

// deliver delivers the packet that is due.
func (l *late) deliver(n *Network, now units.Time) {
	s := l.pop()
	if len(l.heap) > 0 {
		n.events.Set(n.entities.of(lateArrival, 0), l.heap[0].packet.at)
	}
	s.packet.next = n.routing.next(n.ports[s.from].to, s.packet) // routes may have changed again
	n.arrive(now, s.from, s.packet)
}

// cut cuts off the late packets of a port's link, which has gone down: they are still on it. The
// others keep their numbers, and so their order.
func (l *late) cut(n *Network, port int32) {
	var rest late
	for i := range l.heap {
		if s := &l.heap[i]; s.from == port {
			n.cut(port, s.packet)
		} else {
			rest.push(*s)
		}
	}
	l.heap = rest.heap
	if n.events.Clear(n.entities.of(lateArrival, 0)); len(rest.heap) > 0 {
		n.events.Set(n.entities.of(lateArrival, 0), rest.heap[0].packet.at)
	}
}

func (l *late) push(s straggler) {
	l.heap = append(l.heap, s)
	for i := len(l.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !l.heap[i].before(&l.heap[parent]) {
			return
		}
		l.heap[i], l.heap[parent] = l.heap[parent], l.heap[i]
		i = parent
	}
}

// pop removes and returns the first straggler. The heap must not be empty.
func (l *late) pop() straggler {
	first, last := l.heap[0], len(l.heap)-1
	l.heap[0] = l.heap[last]
	l.heap = l.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if l.heap[child].before(&l.heap[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		l.heap[i], l.heap[least] = l.heap[least], l.heap[i]
		i = least
	}
}
