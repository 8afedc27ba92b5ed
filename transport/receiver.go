package transport

import (
	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// receiver is the receiving half of a connection.
type receiver struct {
	id       ConnID
	src      HostID
	srcPort  uint16
	feedback cc.Receiver `state:",congestion control"`

	// Replies leave from srcPort + the path of the last packet from the sender: where its packets
	// take many paths, replies do too, and one bad link on the way back does not stop them all.
	replyPort uint16

	order    receiveOrder
	arrivals *arrivals `state:",loss recovery"` // selective repeat; nil: go-back-N
	grants   *grants   // nil: no credits
	expected int       // announced flows that have not ended; see Endpoint.Expect
	// packets of a flow have arrived, but not its last; stays set if the sender dies
	active bool

	// The message that is arriving, and its bytes so far; arrived is 0 between messages.
	message Message
	arrived units.Bytes
}

// fits reports whether an in-order packet continues where the last one ended.
func (r *receiver) fits(d *wire.Data) bool {
	if r.arrived == 0 {
		return d.Offset == 0
	}
	return d.Offset == r.arrived && d.Message == r.message.ID && d.Size == r.message.Size && d.Tag == r.message.Tag
}

// take accepts an in-order packet that fits and reports whether the message is complete.
func (r *receiver) take(d *wire.Data) (complete bool) {
	r.order.take()
	r.message = Message{ID: d.Message, Tag: d.Tag, Size: d.Size}
	r.arrived = d.Offset + d.Payload
	if r.arrived < d.Size {
		return false
	}
	r.arrived = 0
	return true
}

// reply is a packet that waits to leave to the sender of data.
type reply struct {
	ack     wire.Ack // the acknowledgement; of a replyCNP, only the data packet's Conn, PSN and Path
	kind    replyKind
	dst     HostID
	srcPort uint16
}

// replyKind is the type of a reply.
type replyKind uint8

const (
	replyAck    replyKind = iota
	replyCNP              // a congestion notification
	replySack             // the first of Endpoint.sacks
	replyReject           // the first of Endpoint.rejects
	replyCredit           // a credit: of ack, Conn and what was granted in PSN
)
