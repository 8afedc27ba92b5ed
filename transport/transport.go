package transport

import (
	"weft/transport/wire"
	"weft/units"
)

// HostID numbers the hosts of a lab from 0.
type HostID int32

// ConnID numbers the connections of a lab from 0. A connection carries data one way, from Src to Dst, and
// acknowledgements the other way. Both ends know it by the same number.
type ConnID uint32

// Path is what the topology knows about the way from one host to another on an idle network.
type Path struct {
	Propagation units.Time        // sum of link delays, one way
	Rates       []units.Bandwidth // rate of each link in order, the sending NIC's first (store and forward)
}

// Delay is the one-way delay of a packet of wire bytes on an idle path: every link's delay and the time the
// packet occupies each link (PC4, section III-B: the baseline delay).
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
	Tag  uint32      // meaning belongs to the sender's and the receiver's application
	Size units.Bytes // at least 1
}

// Outgoing is a packet that an endpoint wants to leave now.
type Outgoing struct {
	Dst     HostID
	SrcPort uint16      // entropy: the UDP source port
	DstPort uint16      // of something else than the transport; 0: wire.Port
	ECT     bool        // set an ECN-capable codepoint
	Class   uint8       // 0 is served before 1
	Size    units.Bytes // whole packet on the wire
	N       int         // bytes of the header in Header

	// For data: where the payload comes from. Payload is 0 for control packets.
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
	At      units.Time  // when it arrived, not after the now it is handed over with
	Shift   units.Time  // what the receiver's clock showed beyond At: its time stamp is both together
	Port    uint16      // UDP destination port; 0: wire.Port
	Src     HostID      // from the IP header
	Header  []byte      // the transport header; may be followed by payload; not kept
	Payload units.Bytes // bytes of it; Behind: what follows the header in Header
	CE      bool        // congestion experienced
	INT     []wire.Hop  // what switches on the way wrote, where the network hands it over apart from the header; not kept
}

// Behind is the Payload of a packet that is all in Incoming.Header, so that only decoding the header tells where it ends.
const Behind units.Bytes = -1

// payload returns how many bytes of payload come with a header of so many bytes, which has been decoded.
func (in *Incoming) payload(header units.Bytes) units.Bytes {
	if in.Payload == Behind {
		return units.Bytes(len(in.Header)) - header
	}
	return in.Payload
}

// Placement says what to do with the payload of a data packet that Receive accepted.
type Placement struct {
	Conn    ConnID
	Message uint32
	Tag     uint32
	Size    units.Bytes // of the whole message
	Offset  units.Bytes // where in the message the payload belongs
	Payload units.Bytes // 0: nothing to place (control packet, duplicate, out of order under go-back-N)
}

// EventKind says what happened to a message.
type EventKind uint8

// Kinds of Event.
const (
	// MessageAcked is told to the sender when the last byte was acknowledged (STrack, section 4.1: flow
	// completion).
	MessageAcked EventKind = iota + 1
	// MessageReceived is told to the receiver when every byte is there.
	MessageReceived
	// ConnFailed is told to the sender when retries are exhausted.
	ConnFailed
)

// Event is what an application should know.
type Event struct {
	Kind    EventKind
	Conn    ConnID
	Message Message
	At      units.Time
	Queued  units.Time // MessageAcked: when Send was called
	Resent  int        // packets sent again on the connection so far
	Tries   int        // ConnFailed: timeouts in a row, the first attempt's and those of Spec.Tries retries
}
