package fabric

import (
	"unsafe"

	"weft/internal/prefetch"
)

// The partitions of a large network do not stay in the caches near the processor from one stretch
// of time to the next. What a stretch will touch is asked for ahead: see package prefetch. Results
// do not depend on it.

// Lines of a packet and of a port that are asked for.
const (
	hopLines    = 1 // of a packet: what a hop touches
	packetLines = int(unsafe.Sizeof(Packet{}) / 64)
	portLines   = 2 // what a hop and what waiting packets touch
)

// prefetch asks for what a hop touches of the packet, or for all of it before it is handed over.
func (p *Packet) prefetch(whole bool) {
	lines := hopLines
	if whole {
		lines = packetLines
	}
	prefetch.Lines(unsafe.Pointer(p), lines)
}

// Prefetch asks for the ports of partition k, the first packets on their links and the entities of
// its event queue, and returns true; but not if the last stretch of time had so few events that
// most ports were not touched.
func (p *Partitions) Prefetch(k int, events int64) bool {
	n := p.all[k]
	x := &n.exchange
	if events < int64(len(x.own)) {
		return false
	}
	n.events.PrefetchAll()
	for _, i := range x.own {
		prefetch.Lines(unsafe.Pointer(&n.ports[i]), portLines)
	}
	for _, i := range x.own {
		if o := &n.ports[i]; !o.flight.empty() {
			o.flight.first.prefetch(n.isHost(o.to))
		}
	}
	for i := range x.arrivals {
		if r := &x.arrivals[i]; !r.empty() {
			r.first.prefetch(false)
		}
	}
	return true
}

// prefetchPosted asks for what take touches for posted packets.
func (x *exchange) prefetchPosted(n *Network, packets []posted) {
	for i := range packets {
		k := &packets[i]
		k.packet.prefetch(false)
		n.events.Prefetch(n.PortEntity(int(k.port)))
	}
	for i := range packets {
		if r := &x.arrivals[x.all.arrival[packets[i].port]]; !r.empty() {
			r.last.prefetch(false)
		}
	}
}
