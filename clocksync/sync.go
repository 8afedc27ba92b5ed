package clocksync

import "weft/units"

// Node numbers the nodes of a lab from 0, as their hosts are.
type Node int32

// UDP ports of synchronization messages.
const (
	EventPort   uint16 = 319  // PTP messages that are stamped (IEEE 1588-2019, annex C)
	GeneralPort uint16 = 320  // PTP messages that are not
	ProbePort   uint16 = 4794 // Huygens: probes, and what nodes tell of them
)

// MaxMessage is the most bytes that a message may have: its UDP payload.
const MaxMessage = 112

// Now is what a node's clocks show. Neither is the truth.
type Now struct {
	Mono units.Time // never steps or runs back; timers run on it
	Hard units.Time // the clock that stamps, without the noise of a stamp; a fault may step it either way
}

// Message is a message that has arrived.
type Message struct {
	From  Node
	Port  uint16     // UDP destination port
	Stamp units.Time // of the hardware clock, when it arrived: noisy
	Data  []byte     // not kept by who receives it
}

// Outgoing is a message that leaves now.
type Outgoing struct {
	To    Node   // another node
	Port  uint16 // UDP destination port: EventPort, GeneralPort or ProbePort
	Flow  uint16 // messages to a node with the same number take the same way through the network
	ID    uint32 // given back by Sent
	Event bool   // the protocol wants to know its stamp: Sent will be called

	N    int // bytes in Data, 1 to MaxMessage
	Data [MaxMessage]byte
}

// A Protocol is one node's side of a synchronization protocol. It does no I/O, reads no clock, draws from no source
// of randomness but one made from its setup, and starts no goroutine. Not safe for concurrent use.
//
// After any call in, the driver asks Transmit while its NIC is free, reads Deadline again and takes Correction. Between
// two calls Now.Mono never decreases; Now.Hard may do anything. A node that crashes loses its Protocol; when it is back
// it starts with a new one.
type Protocol interface {
	// Start begins. It is called once, before all others.
	Start(now Now)
	// Receive takes a message. An error means that it was refused and changed nothing but Counters; it is malformed,
	// from someone who may not send it, or comes twice or too late.
	Receive(now Now, m *Message) error
	// Transmit fills in the message whose first bit leaves now, or returns false when there is none. It sets every
	// field but those of Data from N on.
	Transmit(now Now, m *Outgoing) bool
	// Sent tells the stamp of the message of that ID, if Outgoing.Event was set: right after Transmit, before any
	// other call.
	Sent(now Now, id uint32, stamp units.Time)
	// Deadline returns when Advance is wanted, by the monotonic clock; ok is false when only messages matter.
	Deadline() (mono units.Time, ok bool)
	// Advance tells that the deadline has come.
	Advance(now Now)
	// Correction returns the map from the hardware clock to synchronized time that holds now. It is continuous from
	// one to the next, but where a step is counted in Counters.
	Correction() Correction
	// Counters returns what the protocol did so far.
	Counters() Counters
}

// Setup is what every protocol is told of the lab.
type Setup struct {
	Self      Node
	Nodes     int    // nodes of the lab that take part, numbered from 0
	Reference Node   // whose clock the others follow: grandmaster, or anchor of a mesh
	Seed      uint64 // of the lab, the same at every node: every random choice follows from it, Self and a purpose

	// Jitter is the standard deviation of a stamp that can be expected, Quantum what stamps are multiples of, Skew the
	// largest error of an oscillator's frequency, as a ratio, and Offset the largest of a clock that nobody has set; 0: it may
	// show anything. Protocols derive from them what their parameters leave open, and bounds where they have measured nothing.
	Jitter  units.Time
	Quantum units.Time
	Skew    float64
	Offset  units.Time
}

// Counters count what a protocol did at a node.
type Counters struct {
	Sent      int64 // messages
	SentBytes int64 // their UDP payload
	Received  int64 // messages that were accepted
	Malformed int64 // refused: cannot be read, or cannot be meant
	Stale     int64 // refused: came twice, out of order, too late, or belong to no exchange that is open
	Foreign   int64 // refused: from a node that may not send it
	Filtered  int64 // measurements that were accepted and not used: outliers, impure probes
	Updates   int64 // corrections published
	Steps     int64 // corrections that are not continuous with the one before
	Resets    int64 // times that what was learnt was thrown away: the clock stepped, the source changed
	Lost      int64 // times that a source of time or a peer was given up

	Falsetickers int64 // times that a source began to contradict the majority of them
	NoMajority   int64 // times that sources began to contradict each other so that no majority was left
}

// Add adds the counts of another node.
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

// Truth is what only an experiment knows: what a hardware clock shows at an instant of true time. The error of a node
// is Correction().At(truth.Hard(t)) against that of the others at the same t.
type Truth interface {
	Hard(true units.Time) units.Time
}
