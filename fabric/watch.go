package fabric

import "weft/units"

// Watch has f told of every event of a port's queue, in order: what waits there after a packet has joined it, and after
// one has left it for the line. A packet that finds the line free joins and leaves at once, which are two events.
// Percentiles over these events are what Bolt's analysis (NSDI 2023) means by queueing; they are not weighted by time.
//
// The instants of packets that leave are exact, but f may be told of them later, when the port is looked at. One port
// can be watched.
func (n *Network) Watch(port int, f func(now units.Time, queued units.Bytes)) {
	n.watched, n.watch = int32(port), f
}

// passed is a packet that did not wait.
func (n *Network) passed(now units.Time, o *port) {
	n.watch(now, o.queued())
	n.watch(now, o.queued())
}
