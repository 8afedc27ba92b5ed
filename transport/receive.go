package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// Both halves of a connection under go-back-N, as RoCE NICs do it. gobackn.go has the numbers, and
// the verdicts on packets that decide here between a payload, an acknowledgement, a NAK and
// silence. The sending half has two numbers, acked and next. A NAK or a timeout sets next back to
// acked, and everything behind it leaves again, whichever of it arrived.

// receiveData handles a data packet at the receiving half: checks common to both kinds of recovery,
// then go-back-N. Selective repeat continues in receiveSelective. It returns where the payload
// belongs, and an empty Placement for a packet that is not accepted. Its errors are those of
// decoding, ErrForeign for a packet of another host than the connection's, and ErrProtocol.
func (e *Endpoint) receiveData(now units.Time, in *Incoming) (Placement, error) {
	var d wire.Data
	if err := d.Decode(in.Header); err != nil {
		return Placement{}, err
	}
	r, err := e.receiver(ConnID(d.Conn))
	switch {
	case err != nil:
		return Placement{}, fmt.Errorf("data on connection %d: %w", d.Conn, err)
	case in.Src != r.src:
		return Placement{}, fmt.Errorf("data on connection %d from host %d: %w", d.Conn, in.Src, ErrForeign)
	case in.payload(d.Len()) != d.Payload:
		return Placement{}, fmt.Errorf("data on connection %d: %d bytes of payload instead of %d: %w", d.Conn,
			in.payload(d.Len()), d.Payload, ErrProtocol)
	}
	r.replyPort = r.srcPort + d.Path
	if r.arrivals != nil {
		return e.receiveSelective(now, r, &d, in)
	}
	v := r.order.classify(d.PSN)
	// Only the packet in order has a message that it must continue. A duplicate was compared when
	// it came first, and the others are dropped.
	if v == inOrder && !r.fits(&d) {
		return Placement{}, fmt.Errorf("data on connection %d: message %d does not continue at %d: %w", d.Conn,
			d.Message, d.Offset, ErrProtocol)
	}
	e.counters.Received++
	// Before Fin the connection counts among the flows that share this receiver, by which
	// controllers choose rates. A duplicate may be a late copy after Fin, so it begins nothing.
	if v != duplicate && !r.active {
		r.active = true
		e.observed++
	}
	f := r.feedback.OnData(now, cc.Data{
		At: in.At + in.ClockOffset, SentAt: d.SentAt, Baseline: d.Baseline, Marked: in.CE,
		Size:     d.Payload + perPacket + wire.TelemetrySize(int(d.Room)),
		Expected: e.expected, Observed: e.observed,
	})
	e.arrived(now, r, f.OneWay)
	if f.CNP { // for dropped packets as well: they met the same congestion
		e.queueCNP(r, &d)
	}
	var pl Placement
	switch v {
	case inOrder:
		pl = e.accept(now, r, &d)
	case duplicate:
		e.counters.Duplicates++ // acknowledged again below: the first acknowledgement may be lost
	case gap:
		r.order.asked = true // the reply below is the NAK
		e.counters.OutOfOrder++
	case beyond:
		e.counters.OutOfOrder++
		return Placement{}, nil
	}
	if e.replies.len() >= maxReplies {
		e.counters.AckDrops++ // a later one is cumulative
		return pl, nil
	}
	w := e.replies.add()
	w.dst, w.srcPort, w.kind = r.src, r.replyPort, replyAck
	w.ack = wire.Ack{
		Nak: v == gap, CE: in.CE, Conn: d.Conn, Expected: uint32(r.order.expected), PSN: d.PSN,
		SentAt: d.SentAt, OneWay: f.OneWay, BaseRate: f.BaseRate, Path: d.Path, Count: 1,
	}
	if d.Room > 0 {
		w.ack.Room = e.queueTelemetry(in, d.Records(in.Header))
	}
	return pl, nil
}

// arrived reports a data packet to an observer that wants it.
func (e *Endpoint) arrived(now units.Time, r *receiver, oneWay units.Time) {
	if e.arrivals != nil {
		e.arrivals.Arrived(now, r.id, oneWay)
	}
}

// accept handles an in-order packet under go-back-N. Its message is complete with its last byte,
// and the flow ends with the packet that has Fin.
func (e *Endpoint) accept(now units.Time, r *receiver, d *wire.Data) Placement {
	if r.take(d) {
		e.events.push(Event{Kind: MessageReceived, Conn: r.id, Message: r.message, At: now})
	}
	if d.Flags&wire.Fin != 0 {
		r.active = false
		e.observed--
	}
	e.counters.Delivered += int64(d.Payload)
	return Placement{
		Conn: r.id, Message: d.Message, Tag: d.Tag, Size: d.Size, Offset: d.Offset, Payload: d.Payload,
	}
}

// receiveAck handles an acknowledgement under go-back-N at the sending half. In this order it
// samples the round trip, moves the window, tells the controller and the chooser of paths what was
// acknowledged, and goes back if a NAK demands it. The controller so sees the state behind the
// acknowledgement, and a loss after the acknowledgement that reports it.
func (e *Endpoint) receiveAck(now units.Time, in *Incoming) error {
	var a wire.Ack
	if err := a.Decode(in.Header); err != nil {
		return err
	}
	i, s, err := e.sender(ConnID(a.Conn))
	if err != nil {
		return fmt.Errorf("ack on connection %d: %w", a.Conn, err)
	}
	expected, ok := s.order.expand(a.Expected)
	rtt, sample := e.roundTrip(in, a.SentAt, s.rto.baseRTT)
	switch {
	case in.Src != s.dst:
		return fmt.Errorf("ack on connection %d from host %d: %w", a.Conn, in.Src, ErrForeign)
	case s.flight != nil || in.payload(a.Len()) != 0 || !ok || rtt <= 0:
		return fmt.Errorf("ack on connection %d for %d, round trip %d ps: %w", a.Conn, a.Expected, rtt, ErrProtocol)
	}
	hops, err := s.echo.read(a.Records(in.Header), a.Room)
	if err != nil {
		return fmt.Errorf("ack on connection %d: %w", a.Conn, err)
	}
	e.counters.AcksIn++
	if s.failed { // what is on the way when a connection is given up still arrives
		return nil
	}
	// The state before this acknowledgement: whether the window or the application was the limit,
	// and from where to count what it acknowledges.
	appLimited := s.order.next == s.queued && s.order.inFlight() < s.ctl.Window()
	before := s.order
	if sample {
		s.rto.sample(rtt)
	}
	if expected > s.order.acked {
		e.progress(now, s, expected)
	}
	s.ctl.OnAck(now, cc.Ack{
		Size: s.order.ackedBytes - before.ackedBytes, Packets: int(s.order.acked - before.acked),
		InFlight: s.order.inFlight(), SentAt: in.At - rtt, RTT: rtt, OneWay: a.OneWay, BaseRate: a.BaseRate,
		Marked: a.CE, Path: a.Path, INT: hops, AppLimited: appLimited,
	})
	s.chooser.OnFeedback(now, path.Feedback{Path: a.Path, Marked: a.CE, Window: s.ctl.Window()})
	// An older NAK, below acked, is about a hole that is filled. A second one for the same packet
	// is a copy: going back again would only repeat what is in flight.
	if a.Nak && expected == s.order.acked && s.order.wentBack != expected+1 {
		s.order.wentBack = expected + 1
		e.lose(now, s, cc.Gap)
	}
	if e.cfg.Observer != nil {
		e.cfg.Observer.Acked(now, s.id, Acked{RTT: rtt, Marked: a.CE})
		e.observe(now, s)
	}
	e.schedule(i, now)
	return nil
}

// progress records that all packets before psn have arrived, and restarts the retransmission timer.
func (e *Endpoint) progress(now units.Time, s *sender, psn uint64) {
	s.advance(psn, func(m *sending) {
		e.events.push(Event{Kind: MessageAcked, Conn: s.id, Message: m.Message, At: now, Queued: m.at,
			Resent: s.resent})
	})
	s.rto.progress(now)
	s.rto.restart(now, s.pacingTimeout())
}

// lose declares everything in flight lost under go-back-N, and tells the controller.
func (e *Endpoint) lose(now units.Time, s *sender, k cc.LossKind) {
	size := s.back()
	s.ctl.OnLoss(now, cc.Loss{Kind: k, Size: size, Try: int(s.rto.tries)})
	e.observe(now, s)
}

// timeout handles a retransmission timeout: nothing new was acknowledged for that long. The timeout
// doubles each time, and after the last of its tries the connection fails (RFC 6298, section 5).
// Where switches trim packets, the timer only detects that the peer is silent.
func (e *Endpoint) timeout(now units.Time, s *sender) {
	trims := s.flight != nil && s.flight.departures != nil // every packet has a timer of its own, which counts
	if !trims {
		e.counters.Timeouts++
		if len(e.timedOut) < maxTimedOut {
			e.timedOut = append(e.timedOut, TimedOut{s.id, now, s.rto.wait})
		}
	}
	if !s.rto.expire() {
		e.fail(now, s, nil)
		return
	}
	if s.flight != nil {
		s.rto.restart(now, s.pacingTimeout())
		if !trims {
			e.recover(now, s, s.order.next, cc.Timeout)
		}
		return
	}
	e.lose(now, s, cc.Timeout)
}

// fail gives up the connection: its retries are exhausted, or err says why its controller cannot
// continue. The application gets ConnFailed, so that even the loss of the last packets is not
// silent.
func (e *Endpoint) fail(now units.Time, s *sender, err error) {
	e.counters.Failed++
	failed := Event{Kind: ConnFailed, Conn: s.id, At: now, Resent: s.resent, Tries: int(s.rto.tries), Err: err}
	if s.messages.len() > 0 {
		m := s.messages.at(0)
		failed.Message, failed.Queued = m.Message, m.at
	}
	e.events.push(failed)
	s.failed = true
	if s.flight != nil {
		s.flight.probing = false
	} else {
		s.back() // nothing is in flight any more, so no timer is needed
	}
	s.messages.drop()
}
