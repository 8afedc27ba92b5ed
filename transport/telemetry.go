package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/wire"
)

// In-band telemetry (INT): switches write records into a data packet, the receiver copies them into
// the acknowledgement, and the sender hands them to its controller. The sender leaves room for one
// record per switch of the path.

// records are the records that switches wrote into one packet.
type records struct {
	n    int
	hops [wire.MaxHops]wire.Hop
}

// queueTelemetry keeps the records of a data packet for the acknowledgement that is queued next,
// and returns their number. The network hands them over in Incoming.INT or has written them into
// the header.
func (e *Endpoint) queueTelemetry(in *Incoming, inside wire.Records) uint8 {
	w := e.records.add()
	if len(in.INT) > 0 {
		w.n = copy(w.hops[:], in.INT)
	} else {
		w.n = len(inside.AppendHops(w.hops[:0]))
	}
	return uint8(w.n)
}

// writeTelemetry moves the first queued records into the acknowledgement that leaves.
func (e *Endpoint) writeTelemetry(ack wire.Records) {
	w := e.records.at(0)
	for _, h := range w.hops[:w.n] {
		ack.Stamp(h)
	}
	e.records.pop()
}

// echo is a sender's state of the ports on its path. A nil echo means no telemetry.
type echo struct {
	path Path
	room uint8                  // number of switches on the path
	last [wire.MaxHops]wire.Hop // last records, with counters unwrapped
	told [wire.MaxHops]cc.Hop   // what read returned last
}

// newEcho returns the sender's side of telemetry on a path, or nil if telemetry is not wanted.
func newEcho(p Path, wanted bool) *echo {
	if !wanted {
		return nil
	}
	return &echo{path: p, room: p.room()}
}

// room returns the number of switches on the path, each of which writes a record.
func (p Path) room() uint8 { return uint8(len(p.Rates) - 1) }

// slots returns the number of records that data packets leave room for.
func (t *echo) slots() uint8 {
	if t == nil {
		return 0
	}
	return t.room
}

// read returns the telemetry of an acknowledgement with room for n records. It is an error if a
// switch has not written: a controller that asks for telemetry cannot work without it.
func (t *echo) read(inside wire.Records, n uint8) ([]cc.Hop, error) {
	if n != t.slots() {
		return nil, fmt.Errorf("telemetry of %d switches on a path across %d: %w", n, t.slots(), ErrProtocol)
	}
	if n == 0 {
		return nil, nil
	}
	var now [wire.MaxHops]wire.Hop
	hops := inside.AppendHops(now[:0])
	if len(hops) != int(n) {
		return nil, fmt.Errorf("telemetry of %d switches on a path across %d: %w", len(hops), n, ErrProtocol)
	}
	for i, h := range hops {
		h = h.Unwrap(t.last[i])
		t.last[i] = h
		t.told[i] = cc.Hop{At: h.At, Sent: h.Sent, Queued: h.Queued, Rate: t.path.Rates[i+1]}
	}
	return t.told[:n], nil
}
