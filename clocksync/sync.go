package clocksync

import (
	"errors"

	"weft/units"
)

// Node is the number of a node of a lab, from 0: that of its host.
type Node int32

// UDP ports of synchronization messages.
const (
	EventPort   uint16 = 319  // PTP messages that are stamped (IEEE 1588-2019, annex C)
	GeneralPort uint16 = 320  // PTP messages that are not
	ProbePort   uint16 = 4794 // Huygens: probes and their results
)

// MaxMessage is the largest UDP payload of a message in bytes.
const MaxMessage = 112

// Now has the readings of a node's clocks. Neither is true time.
type Now struct {
	Mono units.Time // monotonic clock: never steps or runs backwards; timers run on it
	Hard units.Time // hardware clock, without the noise of a stamp; a fault may step it either way
}

// Message is a message that has arrived.
type Message struct {
	From  Node
	Port  uint16     // UDP destination port
	Stamp units.Time // reading of the hardware clock at arrival, with noise
	Data  []byte     // payload; the receiver must not keep it
}

// Outgoing is a message that is about to leave.
type Outgoing struct {
	To    Node   // another node
	Port  uint16 // UDP destination port: EventPort, GeneralPort or ProbePort
	Flow  uint16 // messages to a node with the same number take the same path
	ID    uint32 // identifies the message in Sent
	Event bool   // the protocol needs its stamp: Sent will be called

	N    int // bytes in Data, 1 to MaxMessage
	Data [MaxMessage]byte
}

// A Protocol is one node's side of a synchronization protocol. It does no I/O, reads no clock,
// takes randomness only from Setup.Seed, and starts no goroutine. It is not safe for concurrent
// use.
//
// After each call the driver calls Transmit while its NIC is free, and reads Deadline and
// Correction again. Between two calls Now.Mono never decreases; Now.Hard may change in any way. A
// node that crashes loses its Protocol, and starts with a new one.
type Protocol interface {
	// Start starts the protocol. It is called once, before all other methods.
	Start(now Now)
	// Receive handles a message. An error means that it was refused and changed only Counters: it
	// is malformed, from a node that may not send it, repeated or too late.
	Receive(now Now, m *Message) error
	// Transmit fills in the message whose first bit leaves now, or returns false if there is none.
	// It sets every field, and Data up to N.
	Transmit(now Now, m *Outgoing) bool
	// Sent gives the stamp of the message with that ID if Outgoing.Event was set, right after
	// Transmit and before any other call.
	Sent(now Now, id uint32, stamp units.Time)
	// Deadline returns when Advance must be called, by the monotonic clock. ok is false without
	// timers.
	Deadline() (mono units.Time, ok bool)
	// Advance runs the timers that are due.
	Advance(now Now)
	// Correction returns the current map from the hardware clock to synchronized time. Each is
	// continuous with its predecessor, except for a step that Counters count.
	Correction() Correction
	// Counters returns the counters so far.
	Counters() Counters
}

// Setup is the configuration of a node that every protocol needs.
type Setup struct {
	Self      Node
	Nodes     int    // number of nodes that take part, numbered from 0
	Reference Node   // node that the others follow: the grandmaster, or the anchor of a mesh
	Seed      uint64 // of the lab, the same at every node: every random choice follows from it, Self and a purpose

	// Jitter is the expected standard deviation of stamps, and Quantum their resolution. Skew is
	// the largest frequency error of an oscillator, as a ratio. Offset is the largest initial
	// offset of a clock; 0 means unknown. Protocols derive from them the parameters that are not
	// given, and bounds before they have measured.
	Jitter  units.Time
	Quantum units.Time
	Skew    float64
	Offset  units.Time

	// Place is the node's place in a tree of boundary clocks; nil: there is no tree.
	Place *Place
	// Bridge is the switch at the other end of the node's link if it is a peer-to-peer transparent
	// clock, and 0 otherwise. Switches are numbered from Nodes.
	Bridge Node
}

// Counters count the events of a protocol at a node.
type Counters struct {
	Sent      int64 // messages
	SentBytes int64 // their UDP payload
	Received  int64 // messages accepted
	Malformed int64 // refused: not decodable, or with impossible values
	Stale     int64 // refused: repeated, out of order, too late, or of no open exchange
	Foreign   int64 // refused: from a node that may not send it
	Filtered  int64 // measurements received but not used: outliers, impure probes
	Updates   int64 // corrections published
	Steps     int64 // corrections that are not continuous with their predecessor
	Resets    int64 // times that all measurements were discarded: the clock stepped, or the source changed
	Lost      int64 // times that a source of time or a peer was dropped

	Falsetickers int64 // times that a source began to contradict the majority
	NoMajority   int64 // times that contradictions began to leave no majority
}

// Add adds the counters of another node.
func (c *Counters) Add(o Counters) {
	c.Sent += o.Sent
	c.SentBytes += o.SentBytes
	c.Received += o.Received
	c.Malformed += o.Malformed
	c.Stale += o.Stale
	c.Foreign += o.Foreign
	c.Filtered += o.Filtered
	c.Updates += o.Updates
	c.Steps += o.Steps
	c.Resets += o.Resets
	c.Lost += o.Lost
	c.Falsetickers += o.Falsetickers
	c.NoMajority += o.NoMajority
}

// Count counts a message that a protocol received. The error is nil, or why it was refused: foreign
// and stale are those of messages that count as such.
func (c *Counters) Count(err, foreign, stale error) {
	switch {
	case err == nil:
		c.Received++
	case errors.Is(err, foreign):
		c.Foreign++
	case errors.Is(err, stale):
		c.Stale++
	default:
		c.Malformed++
	}
}

// Publish replaces a protocol's correction, unless the new one is invalid.
func (c *Counters) Publish(to *Correction, next Correction) {
	if next.Check() != nil {
		c.Filtered++
		return
	}
	*to = next
	c.Updates++
}
