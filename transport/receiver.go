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
	feedback cc.Receiver

	order    receiveOrder
	arrivals *arrivals // selective repeat; nil: go-back-N
	expected int       // flows that the controller announced and that are not over
	active   bool      // by what the packets say, a flow is arriving; a sender that dies in mid-message leaves it set

	// The message that is arriving; arrived is 0 between messages.
	message Message
	arrived units.Bytes
}

// fits says whether an in-order packet continues where the last one ended.
func (r *receiver) fits(d *wire.Data) bool {
	if r.arrived == 0 {
		return d.Offset == 0
	}
	return d.Offset == r.arrived && d.Message == r.message.ID && d.Size == r.message.Size && d.Tag == r.message.Tag
}

// take accepts an in-order packet that fits and says whether the message is complete.
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

// reply is a packet that waits to leave for the sender of data.
type reply struct {
	ack     wire.Ack // what replyAck says; of a replyCNP, what the packet was
	kind    replyKind
	dst     HostID
	srcPort uint16
}

type replyKind uint8

const (
	replyAck  replyKind = iota
	replyCNP            // a congestion notification
	replySack           // the first of Endpoint.sacks
)
