package qdisc

import "weft/units"

// Counters are the counters of one discipline since its creation.
type Counters struct {
	Bytes   units.Bytes // sent
	Packets uint64
	Waiting uint32      // packets in it and below it
	Backlog units.Bytes // bytes in it and below it
	Drops   uint64
	Over    uint64 // overlimits; red: chosen for a mark; htb: had to wait
	Marks   uint64 // red: packets chosen for a mark that then carried CE
}

// Statistics are the counters of one direction of a link.
type Statistics struct {
	Sent    units.Bytes // bytes whose transmission has started
	Packets uint64
	Backlog units.Bytes // queued bytes, without those in flight
	Waiting uint64      // queued packets
	Drops   uint64      // packets that did not fit into the queue
	// Marks is the minimum number of packets that RED marked, MarksAtMost the maximum. They differ
	// with two stages, which may both choose a packet, and the kernel does not report which. Both
	// include packets that arrived marked and were chosen again.
	Marks, MarksAtMost uint64

	InFlight units.Bytes // bytes on the link
	OnLine   uint64      // packets on the link
	Arrived  uint64      // packets that arrived over the link
	// Spoofed counts packets dropped because their sender is not the direction's Source, NotRouted
	// frames that are neither IPv4 nor ARP.
	Spoofed, NotRouted uint64
	// Lost counts netem's drops: random loss as requested, or packets beyond its limit, which Plan
	// rules out.
	Lost uint64
	// MaxQueue is the longest queue that a packet made; 0 without a Gate, which alone sees each.
	MaxQueue units.Bytes
}

// GateCounters are the counters of a Gate since its creation.
type GateCounters struct {
	Entered, Left      units.Bytes // in the queue
	Data               units.Bytes // in the queue, without control packets
	EnteredPackets     uint64
	LeftPackets        uint64 // including those of Lost, Spoofed and NotRouted
	Marks, Drops       uint64
	Lost               uint64 // as requested
	Unrouted           uint64 // of those that left, packets for which the switch behind had no port
	Spoofed, NotRouted uint64
	MaxQueue           units.Bytes // longest queue after a packet had entered
}

// Queue returns the bytes in the queue.
func (c *GateCounters) Queue() units.Bytes { return max(0, c.Entered-c.Left) }

// Summarise computes the statistics of a direction from its disciplines' counters, in the order of
// the tree, and those of its Gate, if it has one. Missing counters count as zero.
func (t Tree) Summarise(near, far []Counters, gate *GateCounters) Statistics {
	var s Statistics
	for i, q := range t.Near[:min(len(t.Near), len(near))] {
		c := near[i]
		switch q.Options.(type) {
		case HTB:
			s.Sent, s.Packets = c.Bytes, c.Packets
			s.Backlog, s.Waiting = c.Backlog, uint64(c.Waiting)
		case REDStage:
			s.Marks = max(s.Marks, c.Marks)
			s.MarksAtMost += c.Marks
		case FIFO:
			s.Drops += c.Drops
		}
	}
	if len(t.Far) > 0 && len(far) > 0 {
		c := far[0]
		s.InFlight, s.OnLine, s.Arrived, s.Lost = c.Backlog, uint64(c.Waiting), c.Packets, c.Drops
	}
	if gate != nil {
		if t.Gate.RED != nil {
			s.Marks, s.MarksAtMost = gate.Marks, gate.Marks
		}
		s.Drops += gate.Drops
		s.Spoofed, s.NotRouted, s.MaxQueue = gate.Spoofed, gate.NotRouted, gate.MaxQueue
		s.Lost += gate.Lost
		if len(t.Far) == 0 {
			s.Arrived = gate.LeftPackets - gate.Lost - gate.Spoofed - gate.NotRouted
		}
	}
	return s
}
