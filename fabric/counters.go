package fabric

import (
	"fmt"

	"weft/timeline"
	"weft/units"
)

// Counters are totals of a network since it was made.
type Counters struct {
	Injected, Delivered, Dropped                int64 // packets
	InjectedBytes, DeliveredBytes, DroppedBytes units.Bytes
	Marks                                       int64       // packets marked CE, once for each port that did
	MaxQueue                                    units.Bytes // most that ever waited in one port of a switch
}

// PortCounters are those of one port.
type PortCounters struct {
	Packets   int64       // whose transmission started, up to the port's last look
	Bytes     units.Bytes // of these
	Drops     int64       // that did not fit
	DropBytes units.Bytes
	Marks     int64
	MaxQueue  units.Bytes // most that ever waited
}

// Counters returns the totals.
func (n *Network) Counters() Counters {
	c := n.total
	for i := range n.ports {
		if o := &n.ports[i]; !o.isNIC() {
			c.MaxQueue = max(c.MaxQueue, o.maxQueue)
		}
	}
	return c
}

// Ports returns the number of ports.
func (n *Network) Ports() int { return len(n.ports) }

// PortCounters returns the counters of a port, by its index in Config.Ports.
func (n *Network) PortCounters(port int) PortCounters {
	o := &n.ports[port]
	return PortCounters{
		Packets: o.packets, Bytes: o.bytes, Drops: o.drops, DropBytes: o.dropBytes, Marks: o.marks, MaxQueue: o.maxQueue,
	}
}

// Sample calls f for every port in which bytes wait at now, in order. The packet being transmitted does not
// wait. now must not lie before the last instant that was fired, nor after the next.
func (n *Network) Sample(now units.Time, f func(port int, queued units.Bytes)) {
	for i := range n.ports {
		o := &n.ports[i]
		if o.waiting == 0 {
			continue
		}
		o.advance(n, now)
		if q := o.queued(); q > 0 {
			f(i, q)
		}
	}
}

// CheckConservation returns an error unless every packet and byte that was injected was delivered or dropped
// or is in a queue or on a link, and every port's own sums agree with what it holds.
func (n *Network) CheckConservation() error {
	packets := n.total.Delivered + n.total.Dropped
	bytes := n.total.DeliveredBytes + n.total.DroppedBytes
	for i := range n.ports {
		o := &n.ports[i]
		queued, size := o.flight.n, units.Bytes(0)
		for c := range o.classes {
			k := &o.classes[c]
			if held := k.size(); held != k.bytes {
				return fmt.Errorf("fabric: port %d: class %d holds %d bytes, counted %d", i, c, held, k.bytes)
			}
			queued += k.n
			size += k.bytes
		}
		if queued-o.flight.n != o.waiting || size > o.buffer {
			return fmt.Errorf("fabric: port %d: %d packets and %d bytes wait, counted %d packets, room for %d bytes",
				i, queued-o.flight.n, size, o.waiting, o.buffer)
		}
		if _, armed := n.timeline.At(n.first + timeline.ID(i)); armed != (o.flight.n > 0) {
			return fmt.Errorf("fabric: port %d: %d packets on the line, armed %t", i, o.flight.n, armed)
		}
		packets += int64(queued)
		bytes += size + o.flight.size()
	}
	if packets != n.total.Injected || bytes != n.total.InjectedBytes {
		return fmt.Errorf("fabric: injected %d packets of %d bytes, found %d of %d",
			n.total.Injected, n.total.InjectedBytes, packets, bytes)
	}
	return nil
}
