package transport

import (
	"weft/transport/wire"
	"weft/units"
)

// HostID numbers the hosts of a lab from 0.
type HostID int32

// ConnID numbers the connections of a lab from 0. A connection carries data from Src to Dst, and
// acknowledgements back. Both ends use the same number.
type ConnID uint32

// Path is the idle path from one host to another, as the topology has it.
type Path struct {
	Propagation units.Time        // sum of the link delays
	Rates       []units.Bandwidth // rate of each link in order, the sending NIC's first (store and forward)
}

// Delay returns the one-way delay of a packet of wire bytes on the idle path: the delay of every
// link and the time that the packet occupies it (PC4, section III-B: the baseline delay).
func (p Path) Delay(wire units.Bytes) units.Time {
	t := p.Propagation
	for _, r := range p.Rates {
		t += r.TransmitTime(wire)
	}
	return t
}

// Message is a unit of application data that a connection carries whole and in order.
type Message struct {
	ID   uint32      // chosen by the sender, unique on its connection, echoed to the receiver
	Tag  uint32      // for the application; the transport only carries it
	Size units.Bytes // at least 1
}

// Outgoing is a packet that leaves an endpoint now.
type Outgoing struct {
	Dst     HostID
	SrcPort uint16      // UDP source port: the entropy that switches hash
	DstPort uint16      // UDP destination port; 0: wire.Port
	ECT     bool        // set an ECN-capable codepoint
	Class   uint8       // priority: 0 is served before 1
	Size    units.Bytes // whole packet on the wire
	N       int         // length of the header in Header, bytes

	// The payload of a data packet is bytes Offset to Offset+Payload of Message. Payload is 0 for
	// control packets.
	Conn    ConnID
	Message uint32
	Offset  units.Bytes
	Payload units.Bytes

	Header [MaxHeader]byte
}

// MaxHeader is room for any header that package wire writes.
const MaxHeader = 160

// Incoming is a packet that has arrived.
type Incoming struct {
	At          units.Time  // lab time of its arrival, not after the now that it is handed over with
	ClockOffset units.Time  // the receiver's clock less At: the packet's timestamp is their sum
	Port        uint16      // UDP destination port; 0: wire.Port
	Src         HostID      // from the IP header
	Header      []byte      // the transport header; payload may follow; not kept
	Payload     units.Bytes // length of the payload; PayloadInHeader: what follows the header in Header
	CE          bool        // congestion experienced
	INT         []wire.Hop  // telemetry, if the network hands it over apart from the header; not kept
}

// PayloadInHeader is the Payload of a packet that lies in Incoming.Header as a whole: the payload
// is everything after the decoded header.
const PayloadInHeader units.Bytes = -1

// payload returns the length of the payload that follows a decoded header of the given length.
func (in *Incoming) payload(header units.Bytes) units.Bytes {
	if in.Payload == PayloadInHeader {
		return units.Bytes(len(in.Header)) - header
	}
	return in.Payload
}

// Placement is where the payload of an accepted data packet belongs.
type Placement struct {
	Conn    ConnID
	Message uint32
	Tag     uint32
	Size    units.Bytes // of the whole message
	Offset  units.Bytes // where in the message the payload belongs
	Payload units.Bytes // 0: nothing to place: a control packet, a duplicate, or a gap under go-back-N
}

// EventKind is a kind of Event.
type EventKind uint8

// Kinds of Event.
const (
	// MessageAcked goes to the sender when the last byte is acknowledged (STrack, section 4.1: flow
	// completion).
	MessageAcked EventKind = iota + 1
	// MessageReceived goes to the receiver when every byte is there.
	MessageReceived
	// ConnFailed goes to the sender when the retries are exhausted.
	ConnFailed
)

// Event is an event for the application.
type Event struct {
	Kind    EventKind
	Conn    ConnID
	Message Message
	At      units.Time
	Queued  units.Time // MessageAcked: when Send was called
	Resent  int        // retransmitted packets of the connection so far
	Tries   int        // ConnFailed: timeouts in a row, of the first attempt and of Spec.Tries retries
	Err     error      // ConnFailed: why the controller cannot continue; nil: the retries are exhausted
}
