package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// Selective repeat on networks that trim packets (UEC; uet-htsim, uec.cpp). A switch without room
// for a packet sends its header on, and the receiver rejects it by name. So the sender need not
// infer losses from the order of arrival, which says nothing when packets take all paths. Only a
// header can get lost in silence. For those each packet has a timer of its own: if it was neither
// acknowledged nor rejected after the retransmission timeout, it leaves again.
//
// The receiver acknowledges after a number of bytes, and at once marked packets, duplicates, and
// what asks for it (UecSink::processData).

// departures are the transmissions of a connection, for their timers.
type departures struct {
	all   fifo[departure]
	stale map[uint64]int // by packet: its transmissions in all that a claim has ended
}

// departure is one transmission of a packet.
type departure struct {
	psn uint64
	at  units.Time
}

// sent records a transmission.
func (d *departures) sent(psn uint64, now units.Time) { d.all.push(departure{psn, now}) }

// claimed records that the last transmission of a packet was given up. expired says that it was the
// first of all, and is removed.
func (d *departures) claimed(psn uint64, expired bool) {
	if expired {
		d.all.pop()
		return
	}
	if d.stale == nil {
		d.stale = map[uint64]int{}
	}
	d.stale[psn]++
}

// first returns the oldest transmission that is neither acknowledged nor given up.
func (d *departures) first(s *sender) (departure, bool) {
	for d.all.len() > 0 {
		t := *d.all.at(0)
		n := d.stale[t.psn]
		if n == 0 && t.psn >= s.order.acked && !s.flight.arrived.has(t.psn) {
			return t, true
		}
		if n == 1 {
			delete(d.stale, t.psn)
		} else if n > 1 {
			d.stale[t.psn] = n - 1
		}
		d.all.pop()
	}
	return departure{}, false
}

// armFirst sets the timer of the oldest transmission.
func (s *sender) armFirst() {
	s.flight.probeAt = units.Never
	if t, ok := s.flight.departures.first(s); ok {
		s.flight.probeAt = t.at + s.rto.floor
	}
}

// expire gives up the transmissions whose time is over, and asks for credit if there is none to
// send them again.
func (e *Endpoint) expire(now units.Time, s *sender) {
	f := s.flight
	f.asked = false
	for {
		t, ok := f.departures.first(s)
		if !ok || t.at+s.rto.floor > now {
			break
		}
		e.counters.Timeouts++
		if len(e.timedOut) < maxTimedOut {
			e.timedOut = append(e.timedOut, TimedOut{s.id, now, now - t.at})
		}
		e.giveUp(now, s, t.psn, true, cc.Loss{Kind: cc.Timeout, Try: 1})
		s.chooser.OnFeedback(now, path.Feedback{Lost: true, Window: s.ctl.Window()})
		if c := s.credits; c != nil {
			c.stopSpeculating()
			f.probing = f.probing || c.have <= 0 && now-c.asked >= f.netRTT
		}
	}
	s.armFirst()
}

// giveUp claims packet psn, which is outstanding, and tells the controller about the loss l.
func (e *Endpoint) giveUp(now units.Time, s *sender, psn uint64, expired bool, l cc.Loss) {
	f := s.flight
	f.departures.claimed(psn, expired)
	l.Size, l.InFlight = s.wireSize(psn), f.inFlight()
	f.lost.set(psn)
	f.waiting++
	f.lowestLost = min(f.lowestLost, psn)
	if f.waiting == 1 {
		f.lowestLost = psn
	}
	f.claimed += l.Size
	s.ctl.OnLoss(now, l)
	e.observe(now, s)
}

// wantsSack is wantsAck where packets are trimmed: nothing more can leave (sendNewPacket).
func (s *sender) wantsSack(again bool, left units.Bytes) bool {
	switch {
	case again || left == 0:
		return true
	case s.credits != nil && s.credits.have <= 0:
		return true
	}
	return s.flight.inFlight()+1 >= s.ctl.Window()
}

// askForSack has a probe request an acknowledgement if nothing else will cause one: the window
// shrank after the last packet left, so none could ask, and the receiver waits for more bytes than
// are outstanding. The simulator waits for a timeout then; UET has control packets that request an
// acknowledgement. The answer may overtake data, and is followed by another request then.
func (s *sender) askForSack() {
	f := s.flight
	if f == nil || f.departures == nil || f.asked || s.failed || f.waiting == 0 && s.order.next == s.queued {
		return
	}
	in := f.inFlight()
	asking := f.asking >= s.order.acked && s.outstanding() && !f.arrived.has(f.asking) && !f.lost.has(f.asking)
	if in > 0 && in < f.every && in >= s.ctl.Window() && !asking {
		f.asked, f.probing = true, true
	}
}

// takePatiently is take where packets are trimmed. It reports whether an acknowledgement is due:
// for the first packet, and when no packet is missing any more and one was requested before
// (UecSink::processData).
func (x *arrivals) takePatiently(psn uint64, size units.Bytes, requested bool) (due bool) {
	due = x.bytes == 0
	x.asked = x.asked || requested
	inOrder := psn == x.expected
	x.take(psn, size)
	if inOrder && x.outOfOrder == 0 && x.asked {
		x.asked, due = false, true
	}
	return due
}

// receiveTrimmed handles the header of a trimmed packet at the receiving half
// (UecSink::processTrimmed).
func (e *Endpoint) receiveTrimmed(now units.Time, in *Incoming) error {
	var d wire.Data
	if err := d.Decode(in.Header); err != nil {
		return err
	}
	r, err := e.receiver(ConnID(d.Conn))
	switch {
	case err != nil:
		return fmt.Errorf("trimmed packet on connection %d: %w", d.Conn, err)
	case in.Src != r.src:
		return fmt.Errorf("trimmed packet on connection %d from host %d: %w", d.Conn, in.Src, ErrForeign)
	case in.payload(d.Len()) != 0 || r.arrivals == nil || !r.arrivals.patient:
		return fmt.Errorf("trimmed packet on connection %d: %w", d.Conn, ErrProtocol)
	}
	x := r.arrivals
	psn, ok := x.expand(d.PSN)
	if !ok {
		return fmt.Errorf("trimmed packet on connection %d: packet %d: %w", d.Conn, d.PSN, ErrProtocol)
	}
	r.replyPort = r.srcPort + d.Path
	e.counters.Trimmed++
	if !x.fresh(psn) {
		e.counters.Duplicates++
		e.queueSack(r, psn, &wire.Sack{PSN: d.PSN, Due: d.SentAt + d.Baseline, Path: d.Path})
		return nil
	}
	if e.replies.len() >= maxReplies {
		e.counters.AckDrops++
	} else {
		w := e.replies.add()
		w.dst, w.srcPort, w.kind = r.src, r.replyPort, replyReject
		e.rejects.push(wire.Reject{
			CE: in.CE, LastHop: d.LastHop, Conn: d.Conn, PSN: d.PSN, Due: d.SentAt + d.Baseline, Path: d.Path,
		})
	}
	if r.grants != nil {
		e.want(now, r, d.Request.Target)
		e.pace(now, r)
	}
	return nil
}

// receiveReject handles a rejection at the sending half (UecSrc::processNack).
func (e *Endpoint) receiveReject(now units.Time, in *Incoming) error {
	var a wire.Reject
	if err := a.Decode(in.Header); err != nil {
		return err
	}
	i, s, err := e.sender(ConnID(a.Conn))
	if err != nil {
		return fmt.Errorf("rejection on connection %d: %w", a.Conn, err)
	}
	psn, ok := s.order.expand(a.PSN)
	rtt, _ := e.roundTrip(in, a.Due-s.full, s.rto.baseRTT)
	switch {
	case in.Src != s.dst:
		return fmt.Errorf("rejection on connection %d from host %d: %w", a.Conn, in.Src, ErrForeign)
	case in.payload(wire.RejectSize) != 0 || s.flight == nil || s.flight.departures == nil || !ok ||
		psn >= s.order.next || rtt <= 0:
		return fmt.Errorf("rejection on connection %d of packet %d: %w", a.Conn, a.PSN, ErrProtocol)
	}
	e.counters.AcksIn++
	f := s.flight
	if s.failed || psn < s.order.acked || f.arrived.has(psn) || f.lost.has(psn) {
		return nil // it has arrived since, or leaves again already
	}
	s.rto.alive(now, s.pacingTimeout())
	e.giveUp(now, s, psn, false, cc.Loss{Kind: cc.Trimmed, RTT: rtt, LastHop: a.LastHop})
	if s.credits != nil {
		s.credits.stopSpeculating()
	}
	s.chooser.OnFeedback(now, path.Feedback{
		Path: a.Path, Marked: a.CE, Cut: !a.LastHop, Window: s.ctl.Window(),
	})
	e.schedule(i, now)
	return nil
}
