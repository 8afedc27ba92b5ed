package fabric

import (
	"fmt"
	"math"

	"weft/timeline"
	"weft/units"
)

// late holds the packets that are past the end of their line, by time, but that the line delivers later: a binary heap
// by the instants of their arrival.
type late struct {
	entity timeline.ID
	heap   []straggler
	n      uint64 // stragglers so far
}

// straggler is a packet that comes late by a line.
type straggler struct {
	parcel
	from   int32  // port
	number uint64 // of those that come at one instant, the one that was sent first is first
}

func (s *straggler) before(o *straggler) bool {
	return s.at < o.at || s.at == o.at && s.number < o.number
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
func (n *Network) disturb(now units.Time, from int32, e *parcel) {
	o := &n.ports[from]
	d := o.errors
	one := *e
	one.next = n.routing.next(o.to, &one)
	if d == nil { // the line has come to order since
		n.arrive(now, from, &one)
		return
	}
	twice := draw(&d.random) < d.disorder.Duplicate
	var copied parcel
	if twice {
		copied = n.duplicate(&one)
	}
	later := d.jitter()
	if draw(&d.random) < d.disorder.Reorder {
		n.total.Late++
		later += 1 + units.Time(draw(&d.random)*float64(d.disorder.By))
	}
	if later > 0 {
		one.at = now + later
		n.late.n++
		n.late.push(straggler{parcel: one, from: from, number: n.late.n})
		n.timeline.Set(n.late.entity, n.late.heap[0].at)
	} else {
		n.arrive(now, from, &one)
	}
	if twice {
		n.arrive(now, from, &copied)
	}
}

// duplicate returns the parcel of a packet that is like that of e.
func (n *Network) duplicate(e *parcel) parcel {
	p, c := n.pool.packet(e.packet), n.Get()
	c.FlowHash, c.Size, c.Src, c.Dst, c.ECN, c.Class, c.Hops, c.INT = p.FlowHash, p.Size, p.Src, p.Dst, p.ECN, p.Class, p.Hops, p.INT
	c.SentAt, c.Payload, c.Port, c.Header = p.SentAt, p.Payload, p.Port, append(c.Header[:0], p.Header...)
	*n.pool.queued(c.number) = *n.pool.queued(p.number)
	if c.INT {
		*n.pool.record(c.number) = *n.pool.record(p.number)
	}
	if n.ccm != nil {
		*n.pool.tag(c.number), *n.pool.note(c.number) = *n.pool.tag(p.number), *n.pool.note(p.number)
		c.SrcPort = p.SrcPort
	}
	n.total.Duplicated++
	n.total.DuplicatedBytes += p.Size
	d := *e
	d.packet = c.number
	return d
}

// straggle delivers the packet that is due.
func (n *Network) straggle(now units.Time) {
	s := n.late.pop()
	if len(n.late.heap) > 0 {
		n.timeline.Set(n.late.entity, n.late.heap[0].at)
	}
	s.next = n.routing.next(n.ports[s.from].to, &s.parcel)
	n.arrive(now, s.from, &s.parcel)
}

// cutLate cuts off the packets that would have come late by the line of a port.
func (n *Network) cutLate(port int32) {
	if n.late == nil {
		return
	}
	var rest late
	for i := range n.late.heap {
		if s := &n.late.heap[i]; s.from == port {
			n.cut(port, &s.parcel)
		} else {
			rest.push(*s)
		}
	}
	n.late.heap = rest.heap
	if n.timeline.Clear(n.late.entity); len(rest.heap) > 0 {
		n.timeline.Set(n.late.entity, rest.heap[0].at)
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
