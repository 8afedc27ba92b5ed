package fabric

import "weft/units"

// Observers are callbacks for what happens in a network, or in one partition of it. They must not
// change anything.
type Observers struct {
	watched int32 // index of the port, or noPort
	watch   func(now units.Time, queued units.Bytes)
	pauses  func(now units.Time, h HostID, class uint8, paused bool)
	trace   func(at units.Time, port int, p *Packet, ecn ECN)
	follow  func(Step)
}

// Watch calls f for every event of a port's queue, in order, with the bytes that wait: after a
// packet has joined, and after one has left for the link. A packet that finds the link free joins
// and leaves at once, which is two events. Percentiles over these events are what Bolt's analysis
// (NSDI 2023) means by queueing; they are not weighted by time.
//
// The instants at which packets leave are exact, but f may be called later, when the port is looked
// at. One port can be watched.
func (x *Observers) Watch(port int, f func(now units.Time, queued units.Bytes)) {
	x.watched, x.watch = int32(port), f
}

// Pauses calls f when a pause of a class takes effect at a NIC and when it ends, in order. When a
// pause ends, the NIC has already started to send what waited. nil ends the calls.
func (x *Observers) Pauses(f func(now units.Time, h HostID, class uint8, paused bool)) { x.pauses = f }

// Trace calls f for every packet that a port starts to send, with the instant and the packet's ECN
// codepoint at that instant. Instants are exact, but f may be called later, when the port is looked
// at; for one port the calls are in order. f must not keep the packet. nil ends the calls.
func (x *Observers) Trace(f func(at units.Time, port int, p *Packet, ecn ECN)) { x.trace = f }

// Follow calls f for every step of coordinated congestion management (CCM), in order. nil ends the
// calls.
func (x *Observers) Follow(f func(Step)) { x.follow = f }

// passed reports a packet that did not wait at the watched port o.
func (x *Observers) passed(now units.Time, o *port) {
	x.watch(now, o.queued())
	x.watch(now, o.queued())
}

// paused reports a pause at port o, or its end, if the port is a NIC's.
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
