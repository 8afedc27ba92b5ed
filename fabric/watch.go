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

// Pauses has f told of every pause of a class that a NIC begins to heed, and of every end of one, in order. When a
// pause ends the NIC has already begun to send what waited.
func (n *Network) Pauses(f func(now units.Time, h HostID, class uint8, paused bool)) { n.pauses = f }

// tell tells of a pause at port o, if it is a NIC's and anybody wants to know.
func (n *Network) tell(now units.Time, o *port, class uint8, paused bool) {
	if o.is(nic) && n.pauses != nil {
		n.pauses(now, o.host(n), class, paused)
	}
}

// NICClears returns when the NIC of h will have sent what it holds at now, as if nothing held it back.
func (n *Network) NICClears(now units.Time, h HostID) units.Time {
	o := &n.ports[n.nics[h]]
	line := o.line // whose remainder must stay
	return max(o.freeAt, now) + line.Transmit(o.queued())
}

// passed is a packet that did not wait.
func (n *Network) passed(now units.Time, o *port) {
	n.watch(now, o.queued())
	n.watch(now, o.queued())
}
