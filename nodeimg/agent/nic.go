package agent

import (
	"weft/transport/wire"
	"weft/units"
)

// nic is the host's modelled network card as the node sees it: a line that one packet occupies at a time.
type nic struct {
	line  units.Line
	free  units.Time // when the last packet given to it will have left
	ahead units.Time // how long before that the next one may be given to it

	heard bool   // of a pause or its end
	seq   uint32 // of the last notice
	until int64  // data is held back until then, CLOCK_MONOTONIC in nanoseconds, unless a notice ends it
}

// pauseLife is how long a pause is believed in without hearing of it again, in real nanoseconds: notices come every
// 200 ms (realtime.AliveEvery). So the loss of one does not end a pause, and nothing waits for ever.
const pauseLife = 600e6

// dataClass is the class that the network pauses.
const dataClass = 1

// heed takes in a notice that came at the instant mono, CLOCK_MONOTONIC in nanoseconds. It returns false when that is no news:
// older than another, or of a class that is never paused.
func (n *nic) heed(p *wire.Pause, mono int64) bool {
	if p.Class != dataClass || n.heard && int32(p.Seq-n.seq) <= 0 {
		return false
	}
	n.heard, n.seq = true, p.Seq
	if p.Held {
		n.until = mono + pauseLife
		return true
	}
	n.until = 0
	n.free = max(n.free, p.Clears) // what the card was given in the meantime leaves first
	return true
}

// held says whether the card holds data back at the instant mono.
func (n *nic) held(mono int64) bool { return mono < n.until }

// slot returns the instant at which a packet given to the card at now leaves, and whether it may be given
// already.
func (n *nic) slot(now units.Time) (departure units.Time, ok bool) {
	departure = max(now, n.free)
	return departure, departure-now <= n.ahead
}

// sent notes that a packet of size bytes on the wire leaves at departure.
func (n *nic) sent(departure units.Time, size units.Bytes) {
	n.free = departure + n.line.Transmit(size)
}
