package fabric

import "weft/units"

// NICs are the NICs of a network's hosts.
type NICs struct {
	ports []port  // of the network
	of    []int32 // by host: the port that is its NIC
	busy  []uint8 // by host: what keeps its NIC from sending: lineBusy, isDown, and the classes that are paused
}

// What keeps a NIC from sending, besides the classes that are paused (1<<class).
const (
	lineBusy uint8 = 1 << 6 // a packet is on its line, and its entity is armed for the end
	isDown   uint8 = 1 << 7
)

// Free tells whether a packet of any class that is injected now would leave at once. After Inject it is
// false until Idle is called, and while the NIC is paused or its link is down.
func (x *NICs) Free(h HostID) bool { return x.busy[h] == 0 }

// FreeFor tells whether a packet of a class that is injected now would leave at once: a NIC that is paused
// in one class still sends those of the other.
func (x *NICs) FreeFor(h HostID, class uint8) bool {
	return x.busy[h]&(lineBusy|isDown|1<<class) == 0
}

// Paused tells whether the NIC of h is told to pause a class.
func (x *NICs) Paused(h HostID) bool { return x.busy[h]&^(lineBusy|isDown) != 0 }

// Queued returns the bytes that wait in the NIC of h, besides the packet on the link.
func (x *NICs) Queued(h HostID) units.Bytes { return x.ports[x.of[h]].queued() }

// Clears returns when the NIC of h will have sent what it holds at now, as if nothing held it back.
func (x *NICs) Clears(now units.Time, h HostID) units.Time {
	o := &x.ports[x.of[h]]
	line := o.line // whose remainder must stay
	return max(o.freeAt, now) + line.Transmit(o.queued())
}

// done is the end of a transmission of host h.
func (x *NICs) done(n *Network, now units.Time, h HostID) {
	o := &x.ports[x.of[h]]
	o.advance(n, now)
	if o.freeAt > now {
		n.events.Set(n.entities.of(nicFree, int(h)), o.freeAt)
		return
	}
	x.busy[h] &^= lineBusy
	n.sink.Idle(now, h)
}
