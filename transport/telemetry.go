package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// In-band telemetry on its way: switches write it into a data packet, the receiver puts it into the acknowledgement, the
// sender hands it to its controller. The sender leaves room for one record per switch of the path.

// records are what switches wrote into one packet.
type records struct {
	n    int
	hops [wire.MaxHops]wire.Hop
}

// queueTelemetry keeps what switches wrote into a data packet, for the acknowledgement that is queued next, and
// returns how many they were. A network hands it over apart from the header or has written into the header itself.
func (e *Endpoint) queueTelemetry(in *Incoming, inside wire.Records) uint8 {
	w := e.records.add()
	if len(in.INT) > 0 {
		w.n = copy(w.hops[:], in.INT)
	} else {
		w.n = len(inside.AppendHops(w.hops[:0]))
	}
	return uint8(w.n)
}

// writeTelemetry puts the first records that wait into the acknowledgement that leaves.
func (e *Endpoint) writeTelemetry(ack wire.Records) {
	w := e.records.at(0)
	for _, h := range w.hops[:w.n] {
		ack.Stamp(h)
	}
	e.records.pop()
}

// echo is what a sender knows of the ports on its path.
type echo struct {
	path Path
	room uint8                  // switches on it; 0: no telemetry is asked for
	last [wire.MaxHops]wire.Hop // counted on from the first, beyond what a record can say
	told [wire.MaxHops]cc.Hop   // for the controller
}

// newEcho returns the sender's side of telemetry on a path; it is nil where none is asked for.
func newEcho(p Path, asked bool) *echo {
	if !asked {
		return nil
	}
	return &echo{path: p, room: uint8(len(p.Rates) - 1)}
}

// size is what telemetry adds to a header of the connection.
func (t *echo) size() units.Bytes {
	if t == nil {
		return 0
	}
	return wire.TelemetrySize(int(t.room))
}

// slots is the room that data packets leave.
func (t *echo) slots() uint8 {
	if t == nil {
		return 0
	}
	return t.room
}

// read returns what an acknowledgement with room for n records tells the controller. Every switch must have written: a controller
// that asks for telemetry would run blind without it.
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
