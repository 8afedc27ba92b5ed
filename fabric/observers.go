package fabric

import "weft/units"

// Observers are told what happens in a network, or in this partition of one. None of them changes anything.
type Observers struct {
	watched int32 // port, or noPort
	watch   func(now units.Time, queued units.Bytes)
	pauses  func(now units.Time, h HostID, class uint8, paused bool)
	trace   func(at units.Time, port int, p *Packet, ecn ECN)
	follow  func(Step)
}

// Watch has f told of every event of a port's queue, in order: what waits there after a packet has joined
// it, and after one has left it for the link. A packet that finds the link free joins and leaves at once,
// which are two events. Percentiles over these events are what Bolt's analysis (NSDI 2023) means by
// queueing; they are not weighted by time.
//
// The instants of packets that leave are exact, but f may be told of them later, when the port is looked
// at. One port can be watched.
func (x *Observers) Watch(port int, f func(now units.Time, queued units.Bytes)) {
	x.watched, x.watch = int32(port), f
}

// Pauses has f told of every pause of a class that takes effect at a NIC, and of every end of one, in
// order. When a pause ends the NIC has already begun to send what waited. nil ends it.
func (x *Observers) Pauses(f func(now units.Time, h HostID, class uint8, paused bool)) { x.pauses = f }

// Trace has f told of every packet that a port begins to send, with the instant and the mark it then has.
// Instants are exact, but f may be told of them later, when the port is looked at; of one port they come
// in order. f must not keep the packet. nil ends it.
func (x *Observers) Trace(f func(at units.Time, port int, p *Packet, ecn ECN)) { x.trace = f }

// Follow has f told of every step of coordinated congestion management, in order. nil ends it.
func (x *Observers) Follow(f func(Step)) { x.follow = f }

// passed is a packet that did not wait at the watched port o.
func (x *Observers) passed(now units.Time, o *port) {
	x.watch(now, o.queued())
	x.watch(now, o.queued())
}

// paused tells of a pause at port o, if it is a NIC's and anybody wants to know.
func (x *Observers) paused(n *Network, now units.Time, o *port, class uint8, paused bool) {
	if o.is(nic) && x.pauses != nil {
		x.pauses(now, o.host(n), class, paused)
	}
}

func (x *Observers) step(s Step) {
	if x.follow != nil {
		x.follow(s)
	}
}
