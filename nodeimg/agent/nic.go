package agent

import (
	"weft/transport/wire"
	"weft/units"
)

// nic is the host's modelled NIC as the node sees it: a link that transmits one packet at a time.
type nic struct {
	line units.Line
	free units.Time // departure of the end of the last packet
	// how long before free the NIC accepts the next packet
	ahead units.Time

	heard bool   // a notice of a pause or its end has arrived
	seq   uint32 // sequence number of the last notice
	// data is paused until then unless a notice ends it; CLOCK_MONOTONIC in nanoseconds
	until int64
}

// pauseLife is how long a pause lasts without another notice, in real nanoseconds. Notices arrive
// every 200 ms (realtime.AliveEvery), so the loss of one does not end a pause, and none lasts for
// ever.
const pauseLife = 600e6

// dataClass is the class that the network pauses.
const dataClass = 1

// update handles a notice that arrived at mono, CLOCK_MONOTONIC in nanoseconds. It returns false if
// the notice is older than another, or of a class that is never paused.
func (n *nic) update(p *wire.Pause, mono int64) bool {
	if p.Class != dataClass || n.heard && int32(p.Seq-n.seq) <= 0 {
		return false
	}
	n.heard, n.seq = true, p.Seq
	if p.Held {
		n.until = mono + pauseLife
		return true
	}
	n.until = 0
	n.free = max(n.free, p.Clears) // packets accepted in the meantime leave first
	return true
}

// held reports whether the NIC is paused at mono.
func (n *nic) held(mono int64) bool { return mono < n.until }

// slot returns the departure time of a packet that the NIC gets at now, and whether the NIC accepts
// it already.
func (n *nic) slot(now units.Time) (departure units.Time, ok bool) {
	departure = max(now, n.free)
	return departure, departure-now <= n.ahead
}

// sent records that a packet of size bytes on the wire departs at departure.
func (n *nic) sent(departure units.Time, size units.Bytes) {
	n.free = departure + n.line.Transmit(size)
}
