package fabric

import "weft/units"

// list is packets in a queue or on a line, first in first out. It goes through the packets themselves: each is in one list at most, and
// a hop touches the line of the cache that it lies on and no other place where packets are kept.
type list struct{ first, last *Packet }

// push puts p at the end. Its instant does not change from now on.
func (l *list) push(p *Packet) {
	p.behind = nil
	if l.first == nil {
		l.first = p
	} else {
		l.last.behind, l.last.then = p, p.at
	}
	l.last = p
}

// pop removes and returns the first. The list must not be empty.
func (l *list) pop() *Packet {
	p := l.first
	l.first = p.behind
	return p
}

// empty tells whether there is none.
func (l *list) empty() bool { return l.first == nil }

// sum counts the packets and adds up their sizes.
func (l *list) sum() (packets int32, size units.Bytes) {
	for p := l.first; p != nil; p = p.behind {
		packets++
		size += p.Size
	}
	return packets, size
}
