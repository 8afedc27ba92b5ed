package agent

import (
	"container/heap"

	"weft/units"
)

// holding is the packets that a node has received and holds back until they are due, where the
// links themselves delay nothing. The kernel's stamp of a packet says when it is due: see
// qdisc.Direction.AtEnds.
type holding struct {
	queue parcels
	// when the last packet of each flow is due, which later ones do not overtake; nil: they may
	last  map[path]units.Time
	next  uint64   // order of the next parcel
	spare [][]byte // memory of parcels that were released
}

// path identifies a flow, or a path of one that has several: by the sender's address and port.
type path struct {
	from uint32
	port uint16
}

// parcel is a packet that is held back. Of two that are due at the same time, the first is released
// first.
type parcel struct {
	order uint64
	datagram
}

// parcels is a heap, by when the packets are due and by order.
type parcels []parcel

func (p parcels) Len() int      { return len(p) }
func (p parcels) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p parcels) Less(i, j int) bool {
	return p[i].held < p[j].held || p[i].held == p[j].held && p[i].order < p[j].order
}
func (p *parcels) Push(x any) { *p = append(*p, x.(parcel)) }
func (p *parcels) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// accept takes a datagram that has arrived, or holds it back until it is due.
func (l *loop) accept(d datagram) {
	h := l.hold
	if h == nil || d.at == 0 {
		l.take(d)
		return
	}
	d.held = l.scale.Lab(d.at - l.offset)
	if on := (path{d.from, d.source}); h.last != nil {
		d.held = max(d.held, h.last[on]) // the machine may have delayed one of them
		h.last[on] = d.held
	}
	var room []byte
	if n := len(h.spare); n > 0 {
		room, h.spare = h.spare[n-1], h.spare[:n-1]
	}
	d.data = append(room[:0], d.data...)
	heap.Push(&h.queue, parcel{h.next, d})
	h.next++
}

// release takes the datagrams that are due.
func (l *loop) release(now units.Time) {
	h := l.hold
	if h == nil {
		return
	}
	l.now = now
	for len(h.queue) > 0 && h.queue[0].held <= now {
		d := heap.Pop(&h.queue).(parcel).datagram
		l.take(d)
		h.spare = append(h.spare, d.data)
	}
}

// heldUntil returns when the next held datagram is due, or never.
func (l *loop) heldUntil() units.Time {
	if l.hold == nil || len(l.hold.queue) == 0 {
		return units.Never
	}
	return l.hold.queue[0].held
}
