package agent

import (
	clocks "weft/clocksync/node"
	"weft/host"
	"weft/internal/stalls"
	"weft/results/frames"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// Kinds of message between the orchestrator and a node, in the order of their first use. The
// orchestrator sends configure, start, labtime.KindScale if the machine's clock drifts, and finally
// stop. The node sends ready, progress at intervals, done once, rows, and results. After
// Config.More the sequence begins again with configure.
const (
	// KindLend: empty, instead of configure: another process will drive the node, and the
	// orchestrator sends nothing more
	KindLend = "lend"
	// KindLent: empty, with a connection to this process for the one that will drive the node, and
	// the node's sockets
	KindLent  = "lent"
	KindAlive = "alive" // empty; sent at intervals from then on
	// KindAdopt: Adopt, to a process that is no node, with a control connection and the descriptors
	// of lent, for each node that it will drive
	KindAdopt     = "adopt"
	KindConfigure = "configure" // Config
	KindReady     = "ready"     // empty: buffers and sockets are ready
	KindStart     = "start"     // Start
	KindProgress  = "progress"  // Progress
	// KindConns: []frames.Frame without ports, with the host's connections that have changed
	KindConns = "conns"
	// KindCorrection: clocksync.Correction of the host's clock, each new one with Config.Steers
	KindCorrection = "correction"
	// KindDone: Progress: every item of the host is complete; the node still answers
	KindDone    = "done"
	KindStop    = "stop"    // empty: stop answering, send results
	KindRows    = "rows"    // Rows, any number of times: a part of the results
	KindResults = "results" // Results, without what Rows had
)

// Adopt hands a node to a process that drives several. On the connection that comes with it the
// process acts as the node.
type Adopt struct {
	Name string // of the node
	Left int    // number of nodes that follow
}

// Config is the configuration of a node.
type Config struct {
	Plan     host.Plan
	Dilation float64
	Peers    [][4]byte // IPv4 addresses by host
	// source address of pause notices, not that of a host; zero: there are none
	Switch [4]byte
	// IPv4 addresses of switches that send or receive, numbered after the hosts: with CCM, or as
	// peer-to-peer transparent clocks
	Switches [][4]byte
	// how long before they are due packets are sent and deadlines handled
	Ahead   units.Time
	Windows bool // record every change of a congestion window
	// Frames is when the host's connections are recorded and sent
	Frames frames.Schedule
	// data and synchronization messages carry their departure time apart from their stamps: see
	// wire.AppendDeparture
	Departs bool
	// the machine's kernel carries packets: it does not hold early ones, and routes by addresses
	// and ports
	Switched bool
	// Holds lets this node hold packets back until the kernel's stamp says that they are due, since
	// the links delay none
	Holds   bool `json:",omitempty"`
	Sprayed bool `json:",omitempty"` // packets of a flow may overtake each other
	More    bool // another configure follows the results
	// the congestion control of Plan, if it is a module, with a descriptor beside this message
	Module *Module `json:",omitempty"`
	NIC    *NIC    `json:",omitempty"` // nil: the node sends and receives through sockets
	// programs of the host read its clock: the node reports corrections
	Steers bool
	// the lab stays up for its users, who may take the host's interface away: what cannot leave is
	// lost, and ends nothing
	Standing bool
	Stall    units.Time // length of the shortest stall that is recorded; 0: none is
}

// Start says when lab time begins.
type Start struct {
	T0 int64 // CLOCK_MONOTONIC in nanoseconds
}

// Progress is the progress of a host's part of the workload.
type Progress struct {
	Done, Total units.Bytes // bytes that the host's items receive
	// current work in words; empty: none
	Doing string
	// what the host waits for, in words; empty while it makes progress and when it is done
	Waiting string
	Failed  string // why it cannot continue; empty: it can
	// Failed is about a connection that gave up (transport.ErrFailed)
	GaveUp bool `json:",omitempty"`

	// lab time at which the host continues by itself, see host.Host.Resumes; 0: never
	Resumes units.Time `json:",omitempty"`
	// running retransmission timers; zero while it makes progress
	Retries transport.Retries `json:",omitzero"`
	// hosts that it waits for; empty while it makes progress and when it is done
	Awaits []transport.HostID `json:",omitempty"`
}

// Results are the results of a node. Times are lab time.
type Results struct {
	Flows    []host.Flow
	Dones    []host.Done
	Counters transport.Counters
	TimedOut []transport.TimedOut `json:",omitempty"`
	RTT      *stats.Dist          // of every acknowledgement
	// queueing delay of data packets that arrived, as measured by their receivers
	OneWay  *stats.Dist
	Windows []Window       // in order of time
	Steps   []Step         `json:",omitempty"` // of coordinated congestion management, in order of time
	Clock   *clocks.Report `json:",omitempty"` // nil: the host's clock shows lab time

	// Timer and Reaction are the node's lateness: Timer for its own deadlines and the NIC becoming
	// free, Reaction for packets, from their arrival in the kernel until they are handled.
	Timer, Reaction *stats.Dist
	// Stalls is when the process that drives the node was behind. Of those that it drives, one has
	// them.
	Stalls *stalls.Log

	// what the congestion control printed, if it is a module
	Printed []Printed `json:",omitempty"`

	// planned corruptions that were never applied, for lack of a packet
	Uncorrupted int
	Unreceived  int64 // packets that arrived while the host was halted
	Dropped     int64 // datagrams dropped by a full socket
	Unsent      int64 // packets and frames that the kernel did not accept
	Opened      int64 // sockets opened while packets waited for them
	CPU         int64 // processor time used since the start, in real nanoseconds
	Scheduler   string

	// datagrams that the transport refused, or from an unknown sender
	Refused transport.Refusals
	// RefusedFrom is, by sender, those of Refused that came from hosts of the lab, of the first
	// maxSenders senders.
	RefusedFrom map[transport.HostID]transport.Refusals `json:",omitempty"`
}

// Printed is output of the congestion control of a connection: see cc.Printing.
type Printed struct {
	To    transport.HostID // where the connection leads
	First []string
	More  int
}

// MaxPrinted is the maximum number of lines in Results.Printed, each of at most 4 KB. Our own
// choice.
const MaxPrinted = 1000

// maxSenders is the maximum number of senders in Results.RefusedFrom. Ours: more are no attack of
// one host, and results stay small.
const maxSenders = 16

// Step is an action of a source for coordinated congestion management: see
// transport.CoordinationObserver.
type Step struct {
	At        units.Time
	Conn      transport.ConnID
	CC, Moved bool
}

// Window is a change of what holds a sender back.
type Window struct {
	At   units.Time
	Conn transport.ConnID
	transport.Limits
}
