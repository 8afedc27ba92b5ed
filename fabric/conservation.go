package fabric

import (
	"fmt"
	"slices"

	"weft/units"
)

// CheckConservation returns an error unless: every packet and byte that was injected, or copied by
// a link, was delivered, dropped, lost, trimmed or cut off, or is in a queue, on a link or late;
// the sums of every port agree with what it holds, and so do the accounts of switches; and
// everything that can happen next is armed.
func (n *Network) CheckConservation() error { return audit{n}.check() }

// audit checks the invariants of a network:
//
//	injected + duplicated = delivered + dropped + lost + cut + waiting + on links + late
//
// of packets, and of bytes with those that were trimmed. It looks at everything, which takes as
// long as the network is large: tests call it after every event of small networks, runs at their
// end.
type audit struct{ *Network }

// check is CheckConservation.
func (n audit) check() error {
	c := n.sum()
	packets := c.Delivered + c.Dropped + c.Lost + c.Cut
	bytes := c.DeliveredBytes + c.DroppedBytes + c.LostBytes + c.CutBytes + c.TrimmedBytes
	for i := range n.ports {
		o := &n.ports[i]
		waiting, size, err := o.conserves()
		if err == nil {
			err = audit{n.of(int32(i))}.checkArmed(o)
		}
		if err != nil {
			return fmt.Errorf("fabric: port %d: %w", i, err)
		}
		flight, _ := o.inFlight(n.Network)
		onLine, bits := flight.sum()
		packets += int64(waiting + onLine)
		bytes += size + bits
	}
	for _, k := range n.whole() {
		p, b := k.exchange.waiting()
		packets, bytes = packets+p, bytes+b
		if k.late == nil {
			continue
		}
		for i := range k.late.heap {
			packets++
			bytes += k.late.heap[i].packet.Size
		}
		at, armed := k.events.At(k.entities.of(lateArrival, 0))
		if armed != (len(k.late.heap) > 0) || armed && at != k.late.heap[0].packet.at {
			return fmt.Errorf("fabric: %d packets are late, armed %t for %d", len(k.late.heap), armed, at)
		}
	}
	if a := n.exchange.apart; a != nil {
		packets += a.out.Packets - a.in.Packets
		bytes += a.out.Bytes - a.in.Bytes
	}
	if packets != c.Injected+c.Duplicated || bytes != c.InjectedBytes+c.DuplicatedBytes {
		return fmt.Errorf("fabric: injected %d packets of %d bytes and made copies of %d of %d, found %d of %d",
			c.Injected, c.InjectedBytes, c.Duplicated, c.DuplicatedBytes, packets, bytes)
	}
	if n.pfc != nil {
		return n.checkAccounts()
	}
	return nil
}

// conserves returns what waits in the port. It returns an error if the port's own counters differ.
func (o *port) conserves() (waiting int32, size units.Bytes, err error) {
	for c := range o.classes {
		k := &o.classes[c]
		packets, held := k.sum()
		if held != k.bytes {
			return 0, 0, fmt.Errorf("class %d holds %d bytes, counted %d", c, held, k.bytes)
		}
		waiting += packets
		size += k.bytes
	}
	room := o.buffer
	if o.is(trims) {
		room += controlRoom(o.buffer)
	}
	if waiting != o.waiting || size > room && !o.is(accounted) {
		return 0, 0, fmt.Errorf("%d packets and %d bytes wait, counted %d packets, room for %d bytes",
			waiting, size, o.waiting, room)
	}
	return waiting, size, nil
}

// checkArmed returns an error unless the entities of a port are armed for what happens next: the
// arrival of the first packet on the link and, where a host or a queue waits for it, the end of
// the transmission. A port that is not armed and holds a packet would hold it for ever.
func (n audit) checkArmed(o *port) error {
	flight, far := o.inFlight(n.Network)
	onLine, _ := flight.sum()
	if at, armed := far.events.At(n.PortEntity(int(o.index))); armed != (onLine > 0) || armed && at != flight.first.at {
		return fmt.Errorf("%d packets on the link, armed %t for %d ps", onLine, armed, at)
	}
	now := n.events.Last()
	switch {
	case n.cold[o.index].down && o.waiting+onLine > 0:
		return fmt.Errorf("is down, and holds %d packets", o.waiting+onLine)
	case o.waiting == 0 || o.pick() == nil: // nothing waits, or its class is paused: nothing is armed
	case o.is(nic) && n.NICs.busy[o.host(n.Network)]&linkBusy == 0:
		return fmt.Errorf("the NIC sends nothing of %d packets that wait", o.waiting)
	case o.is(nic): // the end of the transmission starts the next
	case o.farEnd != within && !slices.Contains(n.exchange.backlog, o.index):
		return fmt.Errorf("%d packets wait for a remote link and are not in the backlog", o.waiting)
	case !o.is(accounted) && o.farEnd == within && flight.empty():
		return fmt.Errorf("%d packets wait for an empty link", o.waiting)
	case o.is(accounted):
		if at, armed := n.events.At(n.entities.of(portFree, int(o.index))); !armed || at > max(o.freeAt, now) {
			return fmt.Errorf("link is free at %d ps, armed %t for %d ps", o.freeAt, armed, at)
		}
	}
	return nil
}

// checkAccounts returns an error unless the accounts of switches agree with what waits in them, and
// every port has or will have the pauses that the switch at its far end has in force.
func (n audit) checkAccounts() error {
	bytes := make([]units.Bytes, len(n.pfc.accounts))
	for i := range n.ports {
		o := &n.ports[i]
		for c := range o.classes {
			for e := o.classes[c].first; e != nil && o.is(accounted); e = e.behind {
				bytes[int(e.ingress)*Classes+c] += e.Size
			}
		}
	}
	used := make([]units.Bytes, len(n.pfc.memories))
	for i := range n.pfc.accounts {
		a := &n.pfc.accounts[i]
		switch a.footing {
		case lossless:
			used[a.memory] += a.shared()
			if a.held+a.over != bytes[i] || a.held < 0 || a.over < 0 || a.over > a.headroom {
				return fmt.Errorf("fabric: port %d: %d bytes of class %d wait at the far end, "+
					"counted %d and %d in a headroom of %d",
					i/Classes, bytes[i], i%Classes, a.held, a.over, a.headroom)
			}
		case lossy:
			used[a.memory] += bytes[i]
		case uncounted:
		}
		if err := n.checkTold(int32(i/Classes), uint8(i%Classes)); err != nil {
			return err
		}
	}
	for s := range used {
		if m := &n.pfc.memories[s]; used[s] != m.used || m.used > m.shared {
			return fmt.Errorf("fabric: switch %d: %d bytes of its shared memory are used, counted %d of %d",
				s, used[s], m.used, m.shared)
		}
	}
	return nil
}

// checkTold compares the pause that was sent to a port for a class with the one that the port obeys
// or will obey.
func (n audit) checkTold(port int32, class uint8) error {
	o, f := &n.ports[port], &n.pfc.frames[port]
	if n.exchange.apart != nil && o.farEnd != within {
		return nil // another process has the other half
	}
	at, armed := n.of(port).events.At(n.entities.of(frameEnd, int(port)))
	if armed == f.empty() || armed && at != f.front().at {
		return fmt.Errorf("fabric: port %d: frames to it %t, armed %t for %d", port, !f.empty(), armed, at)
	}
	told := o.paused(class)
	for _, e := range f.list[f.head:] {
		if e.class == class {
			told = e.pause
		}
	}
	if a := n.pfc.account(port, class); told != a.paused && !n.cold[port].down {
		return fmt.Errorf("fabric: port %d: class %d was told to pause %t, will %t", port, class, a.paused, told)
	}
	return nil
}
