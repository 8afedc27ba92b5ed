package fabric

import "weft/units"

// NICs answers what hosts ask about their NICs.
type NICs struct {
	ports []port  `state:"-"` // all ports of the network
	of    []int32 // by host: the index of its NIC
	// by host: what keeps its NIC from sending: bits linkBusy and isDown, and 1<<class for paused
	// classes
	busy []uint8
}

// Bits of NICs.busy besides those of paused classes.
const (
	linkBusy uint8 = 1 << 6 // a packet is on the link, and the NIC's entity is armed for its end
	isDown   uint8 = 1 << 7 // the link is down
)

// Free reports whether a packet of any class would leave at once if it were injected now. After
// Inject it is false until Idle is called; it is also false while a class is paused or the link is
// down.
func (x *NICs) Free(h HostID) bool { return x.busy[h] == 0 }

// FreeFor reports whether a packet of the class would leave at once if it were injected now. A NIC
// that is paused in one class still sends packets of the other.
func (x *NICs) FreeFor(h HostID, class uint8) bool {
	return x.busy[h]&(linkBusy|isDown|1<<class) == 0
}

// Down reports whether the link of the NIC of h is down.
func (x *NICs) Down(h HostID) bool { return x.busy[h]&isDown != 0 }

// Paused reports whether a class of the NIC of h is paused.
func (x *NICs) Paused(h HostID) bool { return x.busy[h]&^(linkBusy|isDown) != 0 }

// Queued returns the bytes that wait in the NIC of h, without the packet on the link.
func (x *NICs) Queued(h HostID) units.Bytes { return x.ports[x.of[h]].queued() }

// Clears returns the instant at which the NIC of h will have sent all that it holds at now,
// assuming that no class is paused.
func (x *NICs) Clears(now units.Time, h HostID) units.Time {
	o := &x.ports[x.of[h]]
	line := o.line // a copy: Transmit changes the remainder
	return max(o.freeAt, now) + line.Transmit(o.queued())
}

// done handles the end of a transmission of host h.
func (x *NICs) done(n *Network, now units.Time, h HostID) {
	o := &x.ports[x.of[h]]
	o.advance(n, now)
	if o.freeAt > now {
		n.events.Set(n.entities.of(nicFree, int(h)), o.freeAt)
		return
	}
	x.busy[h] &^= linkBusy
	n.sink.Idle(now, h)
}
