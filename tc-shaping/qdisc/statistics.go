package qdisc

import "weft/units"

// Counters are those of one discipline, since it was made.
type Counters struct {
	Bytes    units.Bytes // that left it
	Packets  uint64
	Waiting  uint32      // packets in it and below it
	Backlog  units.Bytes // the same in bytes
	Drops    uint64
	Over     uint64 // overlimits: red: chosen for a mark; tbf: had to wait
	Marks    uint64 // red: packets it set or found CE on that were chosen for a mark
	Early    uint64 // red: packets it dropped, because they could not be marked
	TailDrop uint64 // red: packets that did not fit below it
}

// Statistics are the counters of one direction of a link.
type Statistics struct {
	Sent    units.Bytes // that began to be transmitted
	Packets uint64
	Backlog units.Bytes // that waits: never what is in flight
	Waiting uint64      // packets
	Drops   uint64      // packets that did not fit into the queue
	// Overlimits is how often the head of the queue had to wait for tokens. It grows while the link is busy.
	Overlimits uint64
	// Marks is the least number of packets that RED marked, MarksAtMost the greatest: with two stages, both may have chosen a packet, and
	// the kernel does not say which. Packets that came with a mark and were chosen again are in both numbers.
	Marks, MarksAtMost uint64

	InFlight units.Bytes // on the line
	OnLine   uint64      // packets on the line
	Arrived  uint64      // packets that came over the line
	// Spoofed counts what was dropped because its sender is not the direction's Source, NotRouted what is neither IPv4 nor ARP.
	Spoofed, NotRouted uint64
	// Lost counts what netem dropped: by chance, as it was asked to, or because its limit was reached, which Plan rules out.
	Lost uint64
}

// Summarise makes the statistics of a direction of the counters of its disciplines, in the order of the tree's. Counters that are not
// there count as zero.
func (t Tree) Summarise(near, far []Counters) Statistics {
	var s Statistics
	for i, q := range t.Near[:min(len(t.Near), len(near))] {
		c := near[i]
		switch q.Options.(type) {
		case TBF:
			s.Sent, s.Packets, s.Overlimits = c.Bytes, c.Packets, c.Over
			s.Backlog, s.Waiting = c.Backlog, uint64(c.Waiting)
		case REDStage:
			s.Marks = max(s.Marks, c.Marks)
			s.MarksAtMost += c.Marks
		case FIFO:
			s.Drops = c.Drops
		}
	}
	if len(t.Far) > 0 && len(far) > 0 {
		c := far[0]
		s.InFlight, s.OnLine, s.Arrived, s.Lost = c.Backlog, uint64(c.Waiting), c.Packets, c.Drops
	}
	return s
}
