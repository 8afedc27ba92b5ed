package agent

import (
	clocks "weft/clocksync/node"
	"weft/host"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// Kinds of message between the orchestrator and a node, in the order in which they are first said. The
// orchestrator says configure, start and at last stop; the node says ready, progress from time to time, done
// once, and results. After Config.More all begins again with configure.
const (
	KindLend      = "lend"      // nothing, instead of configure: another process is to drive the node; the orchestrator has nothing more to say
	KindLent      = "lent"      // nothing, with a connection to this process for whoever drives the node, and the node's sockets
	KindAlive     = "alive"     // nothing: said from then on, now and then
	KindAdopt     = "adopt"     // Adopt, to a process that is no node, with a control connection and what came with lent, for each node it is to drive
	KindConfigure = "configure" // Config
	KindReady     = "ready"     // nothing: the buffers and sockets are there
	KindStart     = "start"     // Start
	KindProgress  = "progress"  // Progress
	KindDone      = "done"      // Progress: every item of the host is complete; it still answers
	KindStop      = "stop"      // nothing: stop answering, send results
	KindResults   = "results"   // Results
)

// Adopt gives a node to a process that drives several. On the connection that comes with it the process is the node.
type Adopt struct {
	Name string // of the node
	Left int    // how many nodes follow
}

// Config is all that a node must know.
type Config struct {
	Plan     host.Plan
	Dilation float64
	Peers    [][4]byte  // IPv4 address of every host, by host
	Switch   [4]byte    // from where the node is told that its card is paused, no host's address; zero: never
	Switches [][4]byte  // of switches that send, or are sent to, by their numbers behind the hosts': with CCM, or as peer-to-peer transparent clocks
	Ahead    units.Time // how long before they are due packets are sent and deadlines looked at
	Windows  bool       // record every change of a congestion window
	Departs  bool       // data and synchronization say when they leave apart from their stamps: see wire.AppendDeparture
	Switched bool       // the machine's kernel carries packets: it holds none until it is due, and chooses ways by addresses and ports
	More     bool       // another configure follows the results
	Report   int64      // real nanoseconds between two Progress messages; 0: 200 ms
}

// Start says when lab time begins.
type Start struct {
	T0 int64 // CLOCK_MONOTONIC in nanoseconds
}

// Progress is how far a host's part of the workload is.
type Progress struct {
	Done, Total units.Bytes // that the host's items receive
	Doing       string      // what the host is at, in words; empty when it is at nothing
	Waiting     string      // what the host waits for, in words; empty while it gets on and when it is done
	Failed      string      // why it cannot go on; empty: it can
	GaveUp      bool        `json:",omitempty"` // Failed is that a connection has (transport.ErrFailed)

	Resumes units.Time         `json:",omitempty"` // lab time at which the host goes on by itself, see host.Host.Resumes; 0: at none
	Retries transport.Retries  `json:",omitzero"`  // which retransmission timers run; zero while it gets on
	Awaits  []transport.HostID `json:",omitempty"` // hosts that it waits for; empty while it gets on and when it is done
}

// Results is what a node knows at the end. Times are lab time.
type Results struct {
	Flows    []host.Flow
	Dones    []host.Done
	Counters transport.Counters
	TimedOut []transport.TimedOut `json:",omitempty"`
	RTT      *stats.Dist          // of every acknowledgement
	OneWay   *stats.Dist          // queueing delay of the packets acknowledged, as their receivers measured it
	Windows  []Window             // in order of time
	Steps    []Step               `json:",omitempty"` // of coordinated congestion management, in order of time
	Clock    *clocks.Report       `json:",omitempty"` // nil: the host's clock shows lab time

	// How late the node was: Timer for what it had to do at an instant of its own (deadlines, the NIC becoming
	// free), Reaction for packets, from their arrival in the kernel to their being handled.
	Timer, Reaction *stats.Dist

	Uncorrupted int   // bytes that the plan has wrong and that are not: no packet came for them
	Dropped     int64 // datagrams that the socket had no room for
	Unsent      int64 // packets and frames that the kernel did not take
	Opened      int64 // sockets opened while packets waited for them
	CPU         int64 // processor time used since the start, in real nanoseconds
	Scheduler   string

	Refused transport.Refusals // datagrams that the transport refused, or from nobody that the node knows
}

// Step is something that a source does for coordinated congestion management: see transport.CoordinationObserver.
type Step struct {
	At        units.Time
	Conn      transport.ConnID
	CC, Moved bool
}

// Window is a change of a congestion window.
type Window struct {
	At     units.Time
	Conn   transport.ConnID
	Window units.Bytes
	Rate   units.Bandwidth
}
