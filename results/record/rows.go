package record

import "weft/units"

// Flow is a row of flows.parquet: one message, as its sender sees it.
type Flow struct {
	Item, Repeat int // of the workload, from 0; each group of ranks counts as an item
	Src, Dst     string
	Conn         uint32
	Message      uint32
	Size         units.Bytes
	Start        units.Time // instant at which the transport got the message
	Finished     bool
	FCT          units.Time // if Finished: from Start to the last acknowledgement
	Ideal        units.Time // FCT of the same message alone on the idle network
}

// Slowdown returns FCT / Ideal; 0 for a flow that did not finish.
func (f Flow) Slowdown() float64 {
	if !f.Finished || f.Ideal <= 0 {
		return 0
	}
	return float64(f.FCT) / float64(f.Ideal)
}

// Part is a row of collectives.parquet: the share of one rank in one repetition of an item.
type Part struct {
	Item, Repeat int
	Collective   string
	Algorithm    string
	Rank         int
	Host         string
	Start, End   units.Time
	Checked      int64 // elements compared with the reference
	Wrong        int64 // elements that differ from it
}

// Conn is a connection and what its messages were.
type Conn struct {
	Src, Dst string // hosts
	Messages int64
	Bytes    units.Bytes
	Start    units.Time // of its first message
}

// Queue is a row of queues.parquet: one nonempty port at a sampling instant, with its counters.
type Queue struct {
	At     units.Time
	Port   string // edge0->agg1
	Queued units.Bytes
	Marks  int64 // packets marked since the start of the run
	Drops  int64 // packets dropped by a full queue since the start of the run
}

// Ack is a row of acks.parquet: an acknowledgement that a sender received.
type Ack struct {
	At     units.Time
	Conn   uint32
	RTT    units.Time // of the packet that caused it
	Marked bool       // that packet was ECN-marked (CE)
}

// Window is a row of cwnd.parquet: a change of a connection's congestion window, rate or credit.
type Window struct {
	At       units.Time
	Conn     uint32
	Window   units.Bytes // 0: none
	Rate     units.Bandwidth
	Credited bool // it sends what its receiver grants
	Credit   units.Bytes
}

// Rate is a row of rates.parquet: the payload that arrived on a connection in a sampling interval.
// An interval without any has no row.
type Rate struct {
	At    units.Time // end of the interval
	Conn  uint32
	Bytes units.Bytes
	Rate  units.Bandwidth
}

// Port is a row of ports.parquet: the counters of one port of the network over the run.
type Port struct {
	Port        string
	Packets     int64
	Bytes       units.Bytes
	Drops       int64
	Marks       int64
	Trims       int64 // packets cut to their headers
	MaxQueue    units.Bytes
	Lost, Cut   int64
	Pauses      int64
	Paused      units.Time
	MaxHeadroom units.Bytes
	Rate        units.Bandwidth // of its link
}

// Clock is a row of clocks.parquet: the true state of a host's synchronized clock at a sampling
// instant.
type Clock struct {
	At    units.Time
	Host  string
	Error units.Time // synchronized time minus true time
	Bound units.Time // bound on the error reported by the host; 0 if it reports none
	State string     // free, locked or holdover
	Down  bool       // synchronization does not run on the host
}

// Event is a line of events.jsonl. Its times are lab times.
type Event struct {
	At     units.Time
	Kind   string // collective started, node died, ...
	Where  string // node, port or item, if any
	Detail string
}
