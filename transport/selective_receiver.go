package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// The receiving half under selective repeat (STrack, section 3.3.2). Its state is arrivals
// (selective.go). A packet moves it as follows:
//
//	impossible      too far ahead, or in the place of another message: ErrProtocol, no change
//	arrived before  counted as a duplicate; acknowledged at once, as the sender does not know
//	next in order   expected moves past it, and past all that follow it without a gap
//	beyond a gap    its bit is set in have; its payload is placed all the same
//
// Acknowledgements coalesce: one is due after arrivals.every bytes, for a marked packet, for one
// that asks (AckNow), for a duplicate, and when a gap closes. Each has the number of the first
// missing packet and the segment of the bitmap that holds the lowest packet that arrived since the
// last acknowledgement. A probe gets the segment that it asks about.
//
// With trimming (arrivals.patient) losses are rejected by name, and a closed gap needs no
// acknowledgement: see trimmed.go.

// receiveSelective handles a data packet after the checks that receiveData makes for both kinds of
// recovery. It returns where the payload belongs, and an empty Placement for a duplicate. d is the
// decoded header. The error is ErrProtocol.
func (e *Endpoint) receiveSelective(now units.Time, r *receiver, d *wire.Data, in *Incoming) (Placement, error) {
	x := r.arrivals
	// A number far from the expected one is none that the sender can have in flight. A packet that
	// has arrived before is not compared again: its message may be complete and forgotten.
	psn, ok := x.expand(d.PSN)
	fresh := ok && x.fresh(psn)
	if !ok || fresh && !x.fits(psn, d, e.cfg.MTU) {
		return Placement{}, fmt.Errorf("data on connection %d: packet %d of message %d at %d: %w", d.Conn, d.PSN,
			d.Message, d.Offset, ErrProtocol)
	}
	e.counters.Received++
	if fresh && !r.active {
		r.active = true
		e.observed++
	}
	size := d.Payload + d.Len() + wire.Overhead
	f := r.feedback.OnData(now, cc.Data{
		At: in.At + in.ClockOffset, SentAt: d.SentAt, Baseline: d.Baseline, Marked: in.CE, Size: size,
		Expected: e.expected, Observed: e.observed,
	})
	e.arrived(now, r, f.OneWay)
	if f.CNP {
		e.queueCNP(r, d)
	}
	var pl Placement
	due := in.CE || d.Flags&wire.AckNow != 0 // a mark is news, and a request is obeyed; others coalesce
	if fresh {
		if psn != x.expected {
			e.counters.Reordered++
		}
		if x.patient {
			due = x.takePatiently(psn, size, d.Flags&wire.AckNow != 0) || due
		} else {
			due = x.take(psn, size) || due
		}
		pl = e.place(now, r, psn, d)
	} else {
		e.counters.Duplicates++
		due = true // the sender does not know that it has arrived
	}
	if r.grants != nil {
		e.want(now, r, d.Request.Target)
	}
	x.lowest = min(x.lowest, psn) // the next acknowledgement covers the segment of this packet
	if due || x.since >= x.every {
		a := e.queueSack(r, x.lowest, &wire.Sack{
			CE: in.CE, PSN: d.PSN, Due: d.SentAt + d.Baseline, OneWay: f.OneWay, Path: d.Path,
			Rated: x.rated, BaseRate: f.BaseRate,
		})
		if a != nil && d.Room > 0 {
			a.Room = e.queueTelemetry(in, d.Records(in.Header))
		}
	}
	return pl, nil
}

// place returns where the payload of a fresh packet belongs, even if earlier packets are missing. A
// message is complete when none of its bytes is missing, so a later one may complete first. The
// flow is active from its first packet until all up to the one with Fin have arrived.
func (e *Endpoint) place(now units.Time, r *receiver, psn uint64, d *wire.Data) Placement {
	x := r.arrivals
	if x.place(psn, uint64(d.Offset/e.cfg.MTU), d) {
		e.events.push(Event{
			Kind: MessageReceived, Conn: r.id, Message: Message{ID: d.Message, Tag: d.Tag, Size: d.Size}, At: now,
		})
	}
	if d.Flags&wire.Fin != 0 {
		x.fin = max(x.fin, psn+1)
	}
	// The last packet may arrive before others, so a flow ends when nothing is missing before Fin.
	if r.active && x.expected == x.fin && x.outOfOrder == 0 {
		r.active = false
		e.observed--
	}
	e.counters.Delivered += int64(d.Payload)
	return Placement{
		Conn: r.id, Message: d.Message, Tag: d.Tag, Size: d.Size, Offset: d.Offset, Payload: d.Payload,
	}
}

// queueSack queues an acknowledgement with the segment that holds packet psn. The caller has filled
// in what caused it: mark, due time (ps of the sender's clock), one-way delay and path of the
// packet that is acknowledged or of the probe. It returns the queued one, or nil if there is no
// room for another reply.
func (e *Endpoint) queueSack(r *receiver, psn uint64, a *wire.Sack) *wire.Sack {
	if e.replies.len() >= maxReplies {
		e.counters.AckDrops++ // the next one has the same bitmap and more; a probe asks if none follows
		return nil
	}
	x := r.arrivals
	base, mask := x.segment(psn)
	a.Conn, a.Expected, a.Base, a.Bitmap = uint32(r.id), uint32(x.expected), uint32(base), mask
	a.Received, a.OutOfOrder = x.bytes, uint16(x.outOfOrder)
	w := e.replies.add()
	w.dst, w.srcPort, w.kind = r.src, r.replyPort, replySack
	queued := e.sacks.add()
	*queued = *a
	if !a.Probe { // what a probe asks about does not answer the data that waits for an acknowledgement
		x.since, x.lowest = 0, noPacket
	}
	return queued
}

// receiveProbe answers a probe at once (STrack, section 3.3.2). The answer has the segment around
// the packet that the sender asks about. Its errors are those of decoding, ErrForeign for a probe
// of another host than the sender, and ErrProtocol.
func (e *Endpoint) receiveProbe(now units.Time, in *Incoming) error {
	var p wire.Probe
	if err := p.Decode(in.Header); err != nil {
		return err
	}
	r, err := e.receiver(ConnID(p.Conn))
	switch {
	case err != nil:
		return fmt.Errorf("probe on connection %d: %w", p.Conn, err)
	case in.Src != r.src:
		return fmt.Errorf("probe on connection %d from host %d: %w", p.Conn, in.Src, ErrForeign)
	case in.payload(p.Len()) != 0 || r.arrivals == nil || p.Request.On != (r.grants != nil):
		return fmt.Errorf("probe on connection %d: %w", p.Conn, ErrProtocol)
	}
	psn, ok := r.arrivals.expand(p.PSN)
	if !ok {
		return fmt.Errorf("probe on connection %d for %d: %w", p.Conn, p.PSN, ErrProtocol)
	}
	r.replyPort = r.srcPort + p.Path
	e.counters.ProbesIn++
	if r.grants != nil {
		e.want(now, r, p.Request.Target)
		e.pace(now, r)
	}
	e.queueSack(r, psn, &wire.Sack{
		CE: in.CE, Probe: true, PSN: p.PSN, Due: p.SentAt + p.Baseline,
		OneWay: in.At + in.ClockOffset - p.SentAt - p.Baseline, Path: p.Path,
	})
	return nil
}
