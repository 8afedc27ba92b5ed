// Package cc is the interface between the transport and congestion control.
//
// A congestion control has two halves. A Controller at the sender decides how much may be in flight
// and how fast it may leave. A Receiver at the other end decides what acknowledgements carry back.
//
//	         Sent                   Data
//	Controller ──── packets ────► Receiver
//	    ▲                             │
//	    └── Ack, Loss ◄── Feedback ◄──┘
//
// The endpoint (package transport) calls both. It tells them the time, and after every call reads
// Window and PacingRate again. The interface fits windows (Swift, HPCC, STrack: a Window and no
// pacing), rates (DCQCN: a PacingRate, an unlimited Window, and timers through Timed) and both at
// once (PC4). What switches and receivers measure arrives with acknowledgements, and for CCM with
// notices.
//
// Invariants: a controller owns its state and never calls the sender. It reads no clock. Its window
// is at least one byte and its pacing rate at most the line rate. Package cctest checks all
// controllers for that with random calls.
//
// Sizes are bytes on the wire, with all headers, unless a field says payload. Times are lab time.
//
// Each congestion control is a package below this one, registered by a line of transport/kinds.go.
// docs/add-a-congestion-control.md shows how to add one. Start reading at Controller; the example
// in example_test.go is a complete controller.
package cc

import (
	"cmp"
	"fmt"

	"weft/units"
)

// Params are the parameters of a congestion control. They are plain data: written as JSON, they are
// read back into the same type.
type Params interface {
	// Check returns an error that names the first parameter out of range, or nil.
	Check() error
}

// Fitted are Params that can be too large for a network, such as a rate above every line rate.
type Fitted interface {
	// Exceeds returns the key of a parameter that is too large and the reason, or "" if there is
	// none. line is the rate of the slowest line, that of host. bdp is the largest bandwidth-delay
	// product of a path.
	Exceeds(host string, line units.Bandwidth, bdp units.Bytes) (key, why string)
}

// Conditional are Params that only work on some networks: a target below the base RTT, for example.
type Conditional interface {
	// Misfits returns the parameters that do not work on a network, with their default as well as
	// written.
	Misfits(n Network) []Misfit
}

// Network is what a connection runs over, for Conditional.
type Network struct {
	Link
	Most units.Bytes // data that recovery lets be on its way; 0: any amount
	Took units.Time  // of a run that is over and whose switches marked packets; else 0
}

// Narrowest returns the rate that one connection alone can have: that of the slowest link.
func (l Link) Narrowest() units.Bandwidth { return cmp.Or(l.Slowest, l.Line) }

// NetBaseRTT returns NetRTT, or the path's own base RTT if the network's is not known.
func (l Link) NetBaseRTT() units.Time { return cmp.Or(l.NetRTT, l.BaseRTT) }

// BDP returns the bandwidth-delay product of the path.
func (l Link) BDP() units.Bytes { return l.Line.BytesIn(l.BaseRTT) }

// Misfit is a parameter that does not work on a network.
type Misfit struct {
	Key  string // of the transport's section; with a dot: a path of the lab, such as topology.mtu
	What string // the reason, with the number, and a way out
}

// Filled is the least share of an idle path that one connection should fill. Ours.
const Filled = 0.9

// Sparing returns a misfit of a key that leaves more than a tenth of every path empty: share is
// what one connection may use of it.
func Sparing(key string, share float64) []Misfit {
	if share >= Filled {
		return nil
	}
	return []Misfit{{Key: key, What: fmt.Sprintf("one connection may fill only %.0f %% of its path, also alone; "+
		"expected %g or more", 100*share, Filled)}}
}

// A Controller decides how much of one connection may be in flight and how fast it may leave. It
// learns of a packet after it was sent. The endpoint reads Window and PacingRate again after every
// call.
type Controller interface {
	// OnStart is called when data is queued on an idle connection, with nothing in flight.
	OnStart(now units.Time)
	// OnSent is called after a packet has left.
	OnSent(now units.Time, p Sent)
	// OnAck is called for every acknowledgement.
	OnAck(now units.Time, a Ack)
	// OnLoss is called when packets are given up as lost.
	OnLoss(now units.Time, l Loss)
	// Window returns the window, at least 1. A packet may leave while less than that is in flight,
	// so the last packet may overshoot it.
	Window() units.Bytes
	// PacingRate returns the rate at which packets are spaced: the next one waits until the last
	// one would be out at that rate. 0 means that packets are not paced.
	PacingRate() units.Bandwidth
}

// Timed is a Controller with timers (DCQCN's rate and alpha timers).
type Timed interface {
	Controller
	// Deadline returns when Advance must be called. ok is false if no timer is running.
	Deadline() (at units.Time, ok bool)
	// Advance runs the timers that are due.
	Advance(now units.Time)
}

// Held is a Controller that delays the next packet beyond its pacing rate. A pacing rate counts
// from the last packet; the Swift of Bolt waits from its last decision.
type Held interface {
	Controller
	// NotBefore returns the instant before which the next packet must not leave.
	NotBefore() units.Time
}

// Resting is a Controller, a Receiver or a path.Chooser that knows what of its state does not
// matter any more. The state of others is never compared, and steps with them are not skipped.
type Resting interface {
	// Rest is called while nothing is in flight. It replaces what cannot matter any more, instants
	// by units.LongAgo, so that the states of two are equal if both go on in the same way. What
	// follows does not change. The pacing rate of a controller is then that after the next OnStart,
	// unless it is Timed and has a deadline.
	Rest(now units.Time)
}

// Failing is a Controller that can fail, as one does that is a module of the user. The endpoint
// asks after every call, and gives up the connection at an error.
type Failing interface {
	Controller
	// Err returns why the controller cannot continue, or nil.
	Err() error
}

// Printing is a Controller whose program can print, as one does that is a module of the user.
type Printing interface {
	Controller
	// Printed returns the first lines that it printed, each behind the time of its event, and how
	// many it left out.
	Printed() (first []string, more int)
}

// Notified is a Controller that handles congestion notification packets (DCQCN).
type Notified interface {
	Controller
	// OnCNP is called for every congestion notification packet.
	OnCNP(now units.Time)
}

// Coordinated is a Controller that handles notices of switches about its flow (CCM).
type Coordinated interface {
	Controller
	// OnNotice is called for every notice. An error means that it was refused, as a replay is.
	OnNotice(now units.Time, n Notice) error
	// Indicated reports whether packets carry the indicator that the flow causes incast.
	Indicated() bool
}

// NoticeKind is the kind of a Notice.
type NoticeKind uint8

// Kinds of Notice.
const (
	NeedsCC   NoticeKind = 1 // the flow causes incast
	Released  NoticeKind = 2 // the flow no longer causes incast
	NeedsPath NoticeKind = 3 // the flow should take another path
)

// Notice is a message of a switch about a flow.
type Notice struct {
	Kind NoticeKind
	Last bool       // NeedsCC: the reason is not incast, but that no path is uncongested
	From uint32     // identifies the switch
	At   units.Time // when the switch sent it
}

// Resolved is a Controller that reports what its parameters result in on its path, for "weft
// explain".
type Resolved interface {
	Controller
	Resolved() []Value
}

// Value is the value that a parameter results in.
type Value struct {
	Key   string // of the transport's section in a lab file; with a dot: a path of the lab
	Value string // with its unit
	Why   string // what else it depends on
}

// A Receiver decides what the acknowledgement of a data packet carries to the Controller.
type Receiver interface {
	// OnData is called for every data packet, in order or not.
	OnData(now units.Time, d Data) Feedback
}

// Link is a Controller's knowledge of the topology: the rate of its host's NIC, and the path of
// its connection on an idle network. A Receiver knows the rate of its host's NIC only.
type Link struct {
	Line     units.Bandwidth // rate of the host's own NIC
	Slowest  units.Bandwidth // rate of the slowest link of the path; 0: Line
	MTU      units.Bytes     // payload of a full packet
	Packet   units.Bytes     // size of a full packet on the wire
	Baseline units.Time      // one-way delay of a full packet on the idle path
	BaseRTT  units.Time      // Baseline plus the delay of the acknowledgement
	NetRTT   units.Time      // the largest BaseRTT in the network (STrack, net_base_rtt)
	Hops     int             // links in the forward direction
	Seed     uint64          // of the controller's random numbers; another one for each connection
}

// Sent describes a packet that has left.
type Sent struct {
	Size     units.Bytes
	InFlight units.Bytes // including this packet
	Resent   bool        // it is a retransmission
}

// Ack describes an acknowledgement that has arrived.
type Ack struct {
	Size       units.Bytes     // newly acknowledged bytes, 0 for a duplicate
	Packets    int             // newly acknowledged packets
	InFlight   units.Bytes     // bytes still in flight
	SentAt     units.Time      // when the packet that it acknowledges left
	RTT        units.Time      // now - SentAt, positive
	OneWay     units.Time      // one-way queueing delay measured by the receiver; may be negative
	BaseRate   units.Bandwidth // base rate of PC4, 0 if none and if it answers a probe
	Marked     bool            // the packet was ECN-marked
	Path       uint16          // the path that the packet took
	INT        []Hop           // telemetry of the switches on the path, in order (HPCC); not to be kept
	AppLimited bool            // less than the window was in flight when it arrived
	Probe      bool            // it answers a probe, not data
}

// Hop is in-band telemetry: what a switch port writes into a packet when it begins to transmit it.
type Hop struct {
	At     units.Time      // when, by the switch's clock
	Sent   units.Bytes     // bytes that the port had sent before
	Queued units.Bytes     // bytes queued behind the packet
	Rate   units.Bandwidth // rate of the link
}

// LossKind is the way in which a loss was detected.
type LossKind uint8

// Kinds of Loss.
const (
	// Gap is a request of the receiver to go back, or more overtaking than reordering explains.
	Gap LossKind = iota + 1
	// Timeout is a retransmission timeout without any new acknowledgement.
	Timeout
	// Probed is an answered probe without the packets sent before it.
	Probed
	// Trimmed is a packet of which only the header has arrived, because a switch had no room for it
	// (UEC).
	Trimmed
)

// Loss describes packets that were given up as lost.
type Loss struct {
	Kind LossKind
	Size units.Bytes // bytes to retransmit
	Try  int         // number of timeouts in a row, from 1, if Kind is Timeout

	// If Kind is Trimmed:
	RTT      units.Time  // round trip of the header
	LastHop  bool        // the last switch on the path trimmed it
	InFlight units.Bytes // including the lost packet
}

// Data describes a data packet that has arrived, in order or not.
type Data struct {
	At       units.Time // by the receiver's clock
	SentAt   units.Time // by the sender's clock
	Baseline units.Time // Link.Baseline of the packet's path
	Size     units.Bytes
	Marked   bool // it was ECN-marked
	Expected int  // connections that the controller announced as arriving at this host, now or soon
	Observed int  // connections that are arriving according to the packets, this one included
}

// Feedback is the content of an acknowledgement for the sender.
type Feedback struct {
	OneWay   units.Time      // Ack.OneWay
	BaseRate units.Bandwidth // Ack.BaseRate
	CNP      bool            // send a congestion notification packet ahead of it
}
