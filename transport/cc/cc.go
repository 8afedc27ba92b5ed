// Package cc is the seam between the transport and congestion control. A scheme is a Controller at the
// sender and a Receiver at the other end; each scheme is a package below this one, and a line of the table of
// kinds in package transport.
//
// The seam fits windows (Swift, HPCC, STrack: Window, no pacing), rates (DCQCN: PacingRate, an unlimited
// Window and timers of its own through Timed) and both at once (PC4). What switches and receivers say comes in
// with acknowledgements. A controller owns its state and never reaches into the sender.
package cc

import "weft/units"

// Params are the parameters of a congestion control: plain data that can be written as JSON and read back into the same type.
type Params interface {
	Check() error // names the first that is out of range
}

// Fitted are Params that can be too large for a network: a rate above every line, a window that no connection ever has.
type Fitted interface {
	// Exceeds returns the key of a parameter that is too large, and why; "" if none is. The slowest line is that of host, and bdp is
	// the largest bandwidth-delay product of a path.
	Exceeds(host string, line units.Bandwidth, bdp units.Bytes) (key, why string)
}

// A Controller decides how much of one connection may be in flight and how fast it may leave. Sizes are bytes
// on the wire, every header included. It is told of a packet after it was sent, so both answers are read
// again after every call.
type Controller interface {
	OnStart(now units.Time) // data was queued on an idle connection: nothing is in flight
	OnSent(now units.Time, p Sent)
	OnAck(now units.Time, a Ack)
	OnLoss(now units.Time, l Loss)
	Window() units.Bytes         // a packet may leave while less than this is in flight; at least 1
	PacingRate() units.Bandwidth // the next packet waits until the last one would be out at this rate; 0: unpaced
}

// Timed is a Controller that acts at instants of its own (DCQCN's rate and alpha timers).
type Timed interface {
	Controller
	Deadline() (at units.Time, ok bool)
	Advance(now units.Time) // a deadline passed
}

// Held is a Controller that names the instant before which the next packet must not leave; its pacing rate, if it has
// one, counts as well. (A rate is counted from the last packet; Bolt's Swift waits from the last decision.)
type Held interface {
	Controller
	NotBefore() units.Time
}

// Notified is a Controller that congestion notification packets are for (DCQCN).
type Notified interface {
	Controller
	OnCNP(now units.Time)
}

// Coordinated is a Controller that switches tell of its flow (CCM).
type Coordinated interface {
	Controller
	OnNotice(now units.Time, n Notice) error // refuses what is old
	Indicated() bool                         // packets say that the flow causes incast
}

// NoticeKind says what a switch tells.
type NoticeKind uint8

// Kinds of Notice.
const (
	NeedsCC   NoticeKind = 1 // the flow causes incast
	Released  NoticeKind = 2 // it does not any more
	NeedsPath NoticeKind = 3 // another path is wanted
)

// Notice is what a switch tells of a flow.
type Notice struct {
	Kind NoticeKind
	Last bool       // NeedsCC: not for incast, but since no path is light
	From uint32     // which switch
	At   units.Time // when it did
}

// Resolved is a Controller that says what its parameters came to on its path, for who asks what a lab means.
type Resolved interface {
	Controller
	Resolved() []Value
}

// Value is what a parameter came to.
type Value struct {
	Key   string // of the parameter in a lab file
	Value string // with its unit
	Why   string // what it follows from besides the parameter
}

// A Receiver decides what the acknowledgement of a data packet carries for the Controller at the other end.
type Receiver interface {
	OnData(now units.Time, d Data) Feedback
}

// Link is what both halves of a connection know from the topology.
type Link struct {
	Line     units.Bandwidth // of the host's own NIC
	MTU      units.Bytes     // payload of a full packet
	Packet   units.Bytes     // a full packet on the wire
	Baseline units.Time      // delay of a full packet on the idle path, one way
	BaseRTT  units.Time      // Baseline and the way back of its acknowledgement
	NetRTT   units.Time      // the longest BaseRTT in the network (STrack, net_base_rtt)
	Hops     int             // links on the way there
}

// Sent describes a packet that left.
type Sent struct {
	Size     units.Bytes
	InFlight units.Bytes // with this packet
	Resent   bool
}

// Ack describes an acknowledgement that arrived.
type Ack struct {
	Size       units.Bytes     // newly acknowledged; 0 for a duplicate
	Packets    int             // newly acknowledged
	InFlight   units.Bytes     // what is left
	SentAt     units.Time      // when the packet that caused it left
	RTT        units.Time      // now - SentAt, positive
	OneWay     units.Time      // its queueing delay on the way there, as the receiver measured it; may be negative
	BaseRate   units.Bandwidth // PC4; 0: none
	Marked     bool            // it was marked on the way
	Path       uint16          // the path it took
	INT        []Hop           // what the switches on its way wrote into it, in order (HPCC); not kept
	AppLimited bool            // less than the window allowed was in flight when it arrived
	Probe      bool            // it answers a probe, not data
}

// Hop is in-band telemetry: what the port of a switch wrote into a packet that it began to send.
type Hop struct {
	At     units.Time      // when, by the switch's clock
	Sent   units.Bytes     // all that the port had sent before
	Queued units.Bytes     // what it held behind the packet
	Rate   units.Bandwidth // of its link
}

// LossKind says how a loss was noticed.
type LossKind uint8

// Kinds of Loss.
const (
	Gap     LossKind = iota + 1 // the receiver asked to go back, or packets overtook more than reordering explains
	Timeout                     // nothing new came back for a whole retransmission timeout
	Probed                      // a probe came back and nothing else did
)

// Loss describes packets given up as lost.
type Loss struct {
	Kind LossKind
	Size units.Bytes // to be sent again
	Try  int         // Timeout: how many in a row, from 1
}

// Data describes a data packet that arrived, in order or not.
type Data struct {
	At       units.Time // by the receiver's clock
	SentAt   units.Time // by the sender's clock
	Baseline units.Time
	Size     units.Bytes
	Marked   bool
	Expected int // connections the controller announced as about to arrive or arriving at this host
	Observed int // connections that are arriving by what the packets say, this one included
}

// Feedback is what an acknowledgement carries back.
type Feedback struct {
	OneWay   units.Time
	BaseRate units.Bandwidth
	CNP      bool // a congestion notification packet goes ahead of it
}
