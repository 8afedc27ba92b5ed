package fabric

import "weft/units"

// list is the packets in a queue or on a link, first in first out. It is linked through the packets
// themselves: a packet is in one list at most, and a hop touches the packet's own cache line and no
// other storage.
type list struct {
	_           struct{} `state:"-"` // no packet is in a network that is still
	first, last *Packet
}

// push appends p. p.at must not change while p is in the list.
func (l *list) push(p *Packet) {
	p.behind = nil
	if l.first == nil {
		l.first = p
	} else {
		l.last.behind, l.last.behindAt = p, p.at
	}
	l.last = p
}

// pop removes and returns the first packet. The list must not be empty.
func (l *list) pop() *Packet {
	p := l.first
	l.first = p.behind
	return p
}

// popLast removes and returns the last packet, after a walk over the list, which must not be empty.
func (l *list) popLast() *Packet {
	p := l.last
	if l.first == p {
		l.first = nil
		return p
	}
	before := l.first
	for before.behind != p {
		before = before.behind
	}
	before.behind, l.last = nil, before
	return p
}

// empty reports whether the list has no packet.
func (l *list) empty() bool { return l.first == nil }

// sum returns the number of packets and the sum of their sizes.
func (l *list) sum() (packets int32, size units.Bytes) {
	for p := l.first; p != nil; p = p.behind {
		packets++
		size += p.Size
	}
	return packets, size
}
