package transport

import (
	"fmt"
	"math"
	"math/bits"

	"weft/transport/cc"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// The sending half under selective repeat: bytes in flight, and three detectors of losses (STrack,
// section 3.3.2).
//
//	          more than a window out of order, or
//	          a probe came back alone, or a timeout
//	 sending ───────────────────────────────────────► recovering
//	    ▲                                                 │
//	    └─────────────────────────────────────────────────┘
//	          all of it has arrived
//
// A recovery claims the missing packets up to the highest one that arrived (probe, timeout: that
// was sent), and retransmits them before new ones, within the window.

// outstanding reports whether something was sent and not acknowledged.
func (s *sender) outstanding() bool {
	if s.flight == nil {
		return s.order.inFlight() > 0
	}
	return s.order.acked < s.order.next && !s.failed
}

// inFlight returns the bytes on the wire that count against the window.
func (s *sender) inFlight() units.Bytes {
	if s.flight == nil {
		return s.order.inFlight()
	}
	return s.flight.inFlight()
}

// maySelect is maySend under selective repeat.
func (s *sender) maySelect() bool {
	f := s.flight
	return (f.waiting > 0 || s.order.next < s.queued && s.order.next-s.order.acked < f.span) &&
		!s.failed && f.inFlight() < s.ctl.Window() && (s.credits == nil || s.credits.have > 0)
}

// find returns the message of packet psn, which is not acknowledged.
func (s *sender) find(psn uint64) *sending {
	lo, hi := 0, s.messages.len()
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.messages.at(mid).first <= psn {
			lo = mid
		} else {
			hi = mid
		}
	}
	return s.messages.at(lo)
}

// wireSize returns the size on the wire of packet psn, which is not acknowledged.
func (s *sender) wireSize(psn uint64) units.Bytes {
	m := s.find(psn)
	return min(s.mtu, m.Size-units.Bytes(psn-m.first)*s.mtu) + s.perPacket
}

// reorderBound returns the bytes out of order that are no sign of a loss (STrack, section 3.3.2:
// "the maximum of the current congestion window's worth of packet number and min_threshold").
func (s *sender) reorderBound() units.Bytes {
	minimum := units.Bytes(s.flight.threshold) * (s.mtu + s.perPacket)
	if !s.flight.windowed {
		return minimum // one path, without a window
	}
	return max(s.ctl.Window(), minimum)
}

// wantsAck reports whether a packet that leaves requests an acknowledgement: if nothing else may
// leave and less is in flight than the receiver waits for, or if waiting for that much would take
// until a probe, because the NIC serves many connections or the rate is low. since is the time
// since the packet before.
func (s *sender) wantsAck(more bool, size units.Bytes, since units.Time) bool {
	f := s.flight
	if !more {
		return true
	}
	if in := f.inFlight(); in < f.every && in >= s.ctl.Window() {
		return true
	}
	return float64(since)*float64(f.every) > float64(f.probeAfter)*float64(size)
}

// recordSent records that packet psn left, and reports whether it requests an acknowledgement.
func (s *sender) recordSent(now units.Time, psn uint64, size units.Bytes, again bool) (wantsAck bool) {
	f := s.flight
	if again {
		f.resend(psn, size, s.reorderBound())
	} else {
		if f.departures == nil && !s.outstanding() {
			f.probeAt = now + f.probeAfter
		}
		f.sent += size
		f.arrived.reach(s.order.acked, psn+1)
		f.lost.reach(s.order.acked, psn+1)
	}
	next := s.order.next
	if !again {
		next++
	}
	since := now - f.left
	f.left = now
	if f.departures != nil {
		f.departures.sent(psn, now)
		f.probeAt = min(f.probeAt, now+s.rto.floor)
		left := s.bytes - s.order.nextBytes
		if !again {
			left -= size
		}
		if s.wantsSack(again, left) {
			f.asking = psn
			return true
		}
		return false
	}
	return s.wantsAck(f.waiting > 0 || next < s.queued && next-s.order.acked < f.span, size, since)
}

// advanceFlight records that all packets before psn have arrived.
func (s *sender) advanceFlight(psn uint64) {
	f := s.flight
	for f.waiting > 0 {
		n := f.firstLost()
		if n >= psn {
			break
		}
		s.unclaim(n)
	}
	f.arrived.drop(s.order.acked, psn)
	f.lowestLost = max(f.lowestLost, psn)
	f.highest = max(f.highest, psn)
}

// markArrived records that packet base+i has arrived for every bit i of mask.
func (s *sender) markArrived(base, mask uint64) {
	f := s.flight
	if base < s.order.acked { // a later acknowledgement overtook this one
		if s.order.acked-base >= 64 {
			return
		}
		mask >>= s.order.acked - base
		base = s.order.acked
	}
	fresh := mask &^ f.arrived.get(base)
	if fresh == 0 {
		return
	}
	f.arrived.add(base, fresh)
	f.highest = max(f.highest, base+uint64(bits.Len64(mask)))
	if f.waiting == 0 {
		return
	}
	for w := fresh & f.lost.get(base); w != 0; w &= w - 1 {
		s.unclaim(base + uint64(bits.TrailingZeros64(w)))
	}
}

// claim declares lost all packets before until that have not arrived and do not wait already. It
// returns their size.
func (s *sender) claim(until uint64) (size units.Bytes) {
	f := s.flight
	for n := s.order.acked; n < until; n += 64 {
		fresh := ones(until-n) &^ (f.arrived.get(n) | f.lost.get(n))
		if fresh == 0 {
			continue
		}
		f.lost.add(n, fresh)
		f.waiting += bits.OnesCount64(fresh)
		for ; fresh != 0; fresh &= fresh - 1 {
			size += s.wireSize(n + uint64(bits.TrailingZeros64(fresh)))
		}
	}
	f.lowestLost = s.order.acked
	f.claimed += size
	return size
}

// unclaim withdraws the claim that packet psn is lost: it arrived before its retransmission left.
func (s *sender) unclaim(psn uint64) {
	s.flight.lost.clear(psn)
	s.flight.waiting--
	s.flight.claimed -= s.wireSize(psn)
}

// receiveSack handles a selective acknowledgement at the sending half (STrack, Algorithm 1).
func (e *Endpoint) receiveSack(now units.Time, in *Incoming) error {
	var a wire.Sack
	if err := a.Decode(in.Header); err != nil {
		return err
	}
	i, s, err := e.sender(ConnID(a.Conn))
	if err != nil {
		return fmt.Errorf("ack on connection %d: %w", a.Conn, err)
	}
	expected, ok := s.order.expand(a.Expected)
	base := expected + uint64(a.Base-a.Expected)
	rtt, sample := e.roundTrip(in, a.Due-s.full, s.rto.baseRTT)
	switch {
	case in.Src != s.dst:
		return fmt.Errorf("ack on connection %d from host %d: %w", a.Conn, in.Src, ErrForeign)
	case s.flight == nil || in.payload(a.Len()) != 0 || !ok || rtt <= 0,
		base+uint64(bits.Len64(a.Bitmap)) > s.order.next, a.Received > s.order.nextBytes,
		a.Rated != (s.flight.rated && !a.Probe), a.Probe && a.Room > 0:
		return fmt.Errorf("ack on connection %d for %d, round trip %d ps: %w", a.Conn, a.Expected, rtt, ErrProtocol)
	}
	var hops []cc.Hop
	if !a.Probe {
		if hops, err = s.echo.read(a.Records(in.Header), a.Room); err != nil {
			return fmt.Errorf("ack on connection %d: %w", a.Conn, err)
		}
	}
	e.counters.AcksIn++
	if s.failed {
		return nil
	}
	f := s.flight
	appLimited := s.order.next == s.queued && f.waiting == 0 && f.inFlight() < s.ctl.Window()
	before := f.received
	if sample {
		s.rto.sample(rtt)
	}
	if expected > s.order.acked {
		s.advanceFlight(expected) // its messages are still there
		e.progress(now, s, expected)
	}
	s.markArrived(base, a.Bitmap)
	f.received = max(f.received, a.Received, s.order.ackedBytes)
	size, full := f.received-before, s.mtu+s.perPacket
	if size > 0 {
		f.probes = 0
	}
	if f.departures == nil {
		f.probeAt, f.probing = f.nextProbe(now, s.rto.floor), false
	} else if s.credits != nil {
		s.credits.stopSpeculating()
	}
	switch {
	case f.departures == nil:
	case size > 0: // the first packet may be missing for long
		f.asked = false
		s.rto.progress(now)
		if s.outstanding() {
			s.rto.restart(now, s.pacingTimeout())
		}
	case a.Probe:
		f.asked = false
		s.rto.alive(now, s.pacingTimeout())
	}
	s.ctl.OnAck(now, cc.Ack{
		Size: size, Packets: int((size + full - 1) / full), InFlight: f.inFlight(), SentAt: in.At - rtt, RTT: rtt,
		OneWay: a.OneWay, BaseRate: a.BaseRate, Marked: a.CE, Path: a.Path, INT: hops, AppLimited: appLimited,
		Probe: a.Probe,
	})
	if f.departures == nil || !a.Probe { // else it says nothing about the queues of the data
		s.chooser.OnFeedback(now, path.Feedback{Path: a.Path, Marked: a.CE, Window: s.ctl.Window()})
	}
	if f.departures == nil {
		e.detect(now, s, &a, expected, rtt)
	}
	if e.cfg.Observer != nil {
		e.cfg.Observer.Acked(now, s.id, Acked{RTT: rtt, Marked: a.CE})
		e.observe(now, s)
	}
	e.schedule(i, now)
	return nil
}

// detect looks for losses after an acknowledgement.
func (e *Endpoint) detect(now units.Time, s *sender, a *wire.Sack, expected uint64, rtt units.Time) {
	f := s.flight
	answer := a.Probe && a.Due == f.probeDue
	switch {
	case answer && f.others == 0 && rtt-f.baseRTT < 2*f.netRTT: // Algorithm 1, line 10
		e.recover(now, s, f.probeNext, cc.Probed)
	case expected < s.order.acked: // a later acknowledgement overtook it
	case f.recovering(s.order.acked):
		if f.waiting == 0 && f.received > f.mark {
			e.recover(now, s, f.highest, cc.Gap)
		}
	case units.Bytes(a.OutOfOrder)*(s.mtu+s.perPacket) > s.reorderBound():
		e.recover(now, s, f.highest, cc.Gap)
	}
	if answer {
		f.probeDue = minTime // ignore copies of it
	} else {
		f.others++
	}
}

// recover begins a recovery, or another round of one: the missing packets before until are to leave
// again.
func (e *Endpoint) recover(now units.Time, s *sender, until uint64, k cc.LossKind) {
	f := s.flight
	size := s.claim(until)
	f.until = max(f.until, until)
	if size == 0 {
		return
	}
	f.mark = math.MaxInt64
	e.counters.Recoveries++
	s.ctl.OnLoss(now, cc.Loss{Kind: k, Size: size, Try: int(s.rto.tries)})
	e.observe(now, s)
}

// probe writes a probe into out.
func (s *sender) probe(now, clockOffset units.Time, out *Outgoing) {
	f := s.flight
	const size = wire.ProbeSize + wire.Overhead
	psn, class := s.order.acked, uint8(1) // in the queue of the data
	if f.departures != nil {
		class = 0 // where it would be trimmed otherwise
		if t, ok := f.departures.first(s); ok {
			psn = t.psn
		}
	}
	p := wire.Probe{
		Conn: uint32(s.id), PSN: uint32(psn), SentAt: now + clockOffset, Baseline: s.forward.Delay(size),
		Path: s.chooser.Choose(now),
	}
	if s.credits != nil {
		p.Request, s.credits.asked = s.request(now, 0, 0), now
	}
	p.Encode(out.Header[:])
	out.Dst, out.SrcPort, out.DstPort, out.ECT, out.Class = s.dst, s.srcPort+p.Path, 0, s.ect && class == 1, class
	out.Size, out.N = wire.Overhead+p.Len(), int(p.Len())
	out.Conn, out.Message, out.Offset, out.Payload = s.id, 0, 0, 0
	f.probing = false
	if f.departures == nil {
		f.probes++
		f.probeAt = f.nextProbe(now, s.rto.floor)
	}
	f.probeDue, f.probeNext, f.others = p.SentAt+p.Baseline, s.order.next, 0
}
