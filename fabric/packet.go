package fabric

import "weft/units"

// HostID numbers the hosts of a network from 0.
type HostID int32

// ECN is the two-bit codepoint of the IP header (RFC 3168, section 5).
type ECN uint8

// Codepoints.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// Packet is one packet on its way through the network. It comes from Network.Get and goes back with
// Network.Put. Between Inject and the sink's Deliver the network owns it.
type Packet struct {
	next *Packet // the packet behind this one in the queue or on the link that holds it

	Src, Dst HostID
	Size     units.Bytes // bytes on the wire, every header and the frame check sequence included
	FlowHash uint64      // hash of the 5-tuple; ECMP choices are a function of it and each switch's seed
	ECN      ECN
	Class    uint8      // priority: 0 is served before 1
	Hops     uint8      // switches passed so far
	SentAt   units.Time // when its first bit left the sending NIC
	Queued   units.Time // time spent waiting behind other packets in switches so far

	at units.Time // when it joined the queue, or when its last bit reaches the far end of the link

	// Payload is the number of bytes of the transport's payload, and Header the transport's header as it is
	// on the wire. The network reads neither. In emulation Header is the whole frame.
	Payload units.Bytes
	Header  []byte
}
