package fabric

import (
	"fmt"
	"math"

	"weft/units"
)

// late holds the packets that are past the end of their line, by time, but that the line delivers later: a binary heap
// by the instants of their arrival.
type late struct {
	heap []straggler
	n    uint64 // stragglers so far
}

// straggler is a packet that comes late by a line.
type straggler struct {
	packet *Packet
	from   int32  // port
	number uint64 // of those that come at one instant, the one that was sent first is first
}

func (s *straggler) before(o *straggler) bool {
	return s.packet.at < o.packet.at || s.packet.at == o.packet.at && s.number < o.number
}

// check returns what is wrong with d.
func (d *Disorder) check() error {
	switch {
	case *d == Disorder{}:
	case !(d.Reorder >= 0 && d.Reorder <= 1) || !(d.Duplicate >= 0 && d.Duplicate <= 1) || d.By < 0 || d.Jitter < 0 || d.Jitter > longestJitter || d.Reorder > 0 && d.By == 0:
		return fmt.Errorf("a share of %g comes up to %d ps late, one of %g twice, all by %d ps on average", d.Reorder, d.By, d.Duplicate, d.Jitter)
	}
	return nil
}

// longestJitter keeps what is drawn far from overflow.
const longestJitter = units.Second

// jitter draws what a packet takes longer: exponential, at most 36 times the mean.
func (l *lineErrors) jitter() units.Time {
	if l.disorder.Jitter == 0 {
		return 0
	}
	return 1 - units.Time(float64(l.disorder.Jitter)*math.Log1p(-draw(&l.random)))
}

// disorderly tells whether a line of c delivers packets late or twice, or may come to.
func (c *Config) disorderly() bool {
	if c.Disturbable {
		return true
	}
	for i := range c.Ports {
		if c.Ports[i].Disorder != (Disorder{}) {
			return true
		}
	}
	return false
}

// disturb delivers e, which has come to the end of the line of port from, in the way of that line: now, later, or twice.
func (l *late) disturb(n *Network, now units.Time, from int32, e *Packet) {
	o := &n.ports[from]
	d := o.errors
	e.next = n.routing.next(o.to, e)
	if d == nil { // the line has come to order since
		n.arrive(now, from, e)
		return
	}
	var copied *Packet
	if draw(&d.random) < d.disorder.Duplicate {
		copied = n.duplicate(e)
	}
	later := d.jitter()
	if draw(&d.random) < d.disorder.Reorder {
		n.total.Late++
		later += 1 + units.Time(draw(&d.random)*float64(d.disorder.By))
	}
	if later > 0 {
		e.at = now + later
		l.n++
		l.push(straggler{packet: e, from: from, number: l.n})
		n.events.Set(n.entities.of(lateArrival, 0), l.heap[0].packet.at)
	} else {
		n.arrive(now, from, e)
	}
	if copied != nil {
		n.arrive(now, from, copied)
	}
}

// duplicate returns a packet that is like p.
func (n *Network) duplicate(p *Packet) *Packet {
	c := n.Get()
	number, header := c.number, c.Header
	*c = *p // what is on p's own room, too: the header is written there once more, or elsewhere
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
	s.packet.next = n.routing.next(n.ports[s.from].to, s.packet)
	n.arrive(now, s.from, s.packet)
}

// cut cuts off the packets that would have come late by the line of a port.
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

// pop removes and returns the first. The heap must not be empty.
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
