package transport

import (
	"weft/transport/cc"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// perPacket is the overhead of every data packet on the wire, without telemetry and tag.
const perPacket = wire.DataSize + wire.Overhead

// sender is the sending half of a connection.
type sender struct {
	// The fields that every packet and every acknowledgement read come first, so that they share
	// cache lines.
	id        ConnID
	dst       HostID
	srcPort   uint16
	ect       bool
	ready     bool          // in the endpoint's round
	failed    bool          // retries are exhausted
	spaced    bool          // timeouts follow the pacing rate
	sawCC     bool          // the CC indicator that the observer saw last
	next      int32         // next sender in the round
	ctl       cc.Controller `state:",congestion control"`
	sequence  `state:"-"`
	flight    *flight      `state:",loss recovery"` // selective repeat; nil: go-back-N
	credits   *credits     // nil: no credits
	echo      *echo        // telemetry; nil: none
	chooser   path.Chooser `state:",paths"`
	abilities `state:"-"`
	mtu       units.Bytes
	perPacket units.Bytes // overhead of every data packet on the wire

	// Pacing: the last packet occupies [paced, paced + pacedSize at the pacing rate].
	paced     units.Time
	pacedSize units.Bytes // 0: nothing has left yet

	sawWindow units.Bytes // the window that the observer saw last; 0: none
	sawRate   units.Bandwidth
	rto       rto `state:"span,loss recovery"`

	sendings `state:"-"`

	resent int `state:"count"` // retransmissions
	route  `state:"span"`
}

// route is the path of a sender's packets while it is idle, and how many there are.
type route struct {
	full    units.Time // delay of a full packet on the idle path
	forward Path
	paths   int // number of source ports
}

// sequence is where a sender is in its packets. A sender that is idle goes on from any number in
// the same way.
type sequence struct {
	order  sendOrder
	queued uint64 // 1 + the last packet of all messages
}

// abilities is what the controller of a connection can do beside cc.Controller; nil: it cannot.
type abilities struct {
	timed       cc.Timed
	held        cc.Held
	failing     cc.Failing
	coordinated cc.Coordinated
}

// sendings is the messages of a sender. That of an idle one is empty.
type sendings struct {
	messages fifo[sending] // from the one that holds packet order.acked
	cursor   int           // index of the message that holds packet order.next
	offset   units.Bytes   // of packet order.next in that message
	bytes    units.Bytes   // size on the wire of all packets queued so far
}

// sending is a message that is not completely acknowledged.
type sending struct {
	Message
	first   uint64      // number of its first packet
	packets uint64      // number of packets
	before  units.Bytes // size on the wire of all packets before it
	at      units.Time  // when Send was called
}

// wireBefore returns the size on the wire of all packets before psn, which is in the message or the
// first after it.
func (m *sending) wireBefore(psn uint64, s *sender) units.Bytes {
	k := units.Bytes(psn - m.first)
	return m.before + min(k*s.mtu, m.Size) + k*s.perPacket
}

// queue appends a message.
func (s *sender) queue(now units.Time, m Message) {
	n := uint64((m.Size + s.mtu - 1) / s.mtu)
	s.messages.push(sending{Message: m, first: s.queued, packets: n, before: s.bytes, at: now})
	s.queued += n
	s.bytes += m.Size + units.Bytes(n)*s.perPacket
}

// idle reports whether everything queued was acknowledged.
func (s *sender) idle() bool { return s.order.acked == s.queued }

// maySend reports whether there is a packet and room in the window; pacing may still hold it back.
func (s *sender) maySend() bool {
	if s.flight != nil {
		return s.maySelect()
	}
	return s.order.next < s.queued && !s.failed && s.order.inFlight() < s.ctl.Window()
}

// start begins a busy period: the controller restarts, and pacing does not make up for idle time.
func (s *sender) start(now units.Time) {
	s.ctl.OnStart(now)
	if s.flight != nil {
		s.flight.left = now
	}
	if rate := s.ctl.PacingRate(); rate > 0 && s.pacedSize > 0 {
		s.paced = max(s.paced, now-rate.TransmitTime(s.pacedSize))
	}
}

// paceAt returns the earliest instant at which pacing lets the next packet leave; minTime if it
// does not hold it back.
func (s *sender) paceAt() units.Time {
	at := minTime
	if rate := s.ctl.PacingRate(); rate > 0 && s.pacedSize > 0 {
		at = s.paced + rate.TransmitTime(s.pacedSize)
	}
	if s.held != nil {
		at = max(at, s.held.NotBefore())
	}
	return at
}

// minTime is before every instant.
const minTime units.Time = -1 << 63

// pace records that a packet of the given size leaves now. The next packet may make up for one that
// the NIC delayed, so that a paced connection gets its rate on a busy NIC; only for one, so that
// there are no bursts. Ours.
func (s *sender) pace(now units.Time, size units.Bytes) {
	start := now
	if rate := s.ctl.PacingRate(); rate > 0 && s.pacedSize > 0 {
		start = max(s.paced+rate.TransmitTime(s.pacedSize), now-rate.TransmitTime(size))
	}
	s.paced, s.pacedSize = start, size
}

// send writes the next packet into out, with the timestamp now + clockOffset. The caller has
// checked maySend and paceAt. resent is true for a retransmission.
// others is the number of the host's other senders that may send.
func (s *sender) send(now, clockOffset units.Time, others int, out *Outgoing) (resent bool) {
	m, psn, offset := s.messages.at(s.cursor), s.order.next, s.offset
	again := s.flight != nil && s.flight.waiting > 0
	if again {
		psn = s.flight.firstLost()
		m = s.find(psn)
		offset = units.Bytes(psn-m.first) * s.mtu
	}
	payload := min(s.mtu, m.Size-offset)
	size := payload + s.perPacket
	baseline := s.full
	if payload != s.mtu {
		baseline = s.forward.Delay(size)
	}
	d := wire.Data{
		Conn: uint32(s.id), PSN: uint32(psn), Payload: payload, Message: m.ID, Tag: m.Tag, Offset: offset, Size: m.Size,
		SentAt: now + clockOffset, Baseline: baseline, Path: s.chooser.Choose(now), Room: s.echo.slots(),
		Coordination: s.tag(), Request: s.request(now, size, others),
	}
	if offset == 0 {
		d.Flags |= wire.Announce
	}
	if psn+1 == s.queued {
		d.Flags |= wire.Fin
	}
	first := !s.outstanding()
	if s.flight != nil && s.recordSent(now, psn, size, again) {
		d.Flags |= wire.AckNow
	}
	d.Encode(out.Header[:])
	out.Dst, out.SrcPort, out.DstPort, out.ECT, out.Class = s.dst, s.srcPort+d.Path, 0, s.ect, 1
	out.Size, out.N = size, int(size-payload-wire.Overhead)
	out.Conn, out.Message, out.Offset, out.Payload = s.id, m.ID, offset, payload

	resent = again
	if !again {
		s.offset += payload
		if s.offset == m.Size {
			s.cursor, s.offset = s.cursor+1, 0
		}
		resent = s.order.sent(size)
	}
	if resent {
		s.resent++
	}
	if first {
		s.rto.since = now
		s.rto.restart(now, s.pacingTimeout())
	}
	s.pace(now, size)
	s.ctl.OnSent(now, cc.Sent{Size: size, InFlight: s.inFlight(), Resent: resent})
	return resent
}

// advance records that all packets before psn have arrived, and calls complete for each message
// that this completes.
func (s *sender) advance(psn uint64, complete func(*sending)) {
	bytes := s.order.ackedBytes
	behind := s.order.next < psn
	for s.messages.len() > 0 {
		m := s.messages.at(0)
		end := m.first + m.packets
		bytes = m.wireBefore(min(psn, end), s)
		if psn < end {
			break
		}
		complete(m)
		s.messages.pop()
		s.cursor--
	}
	s.order.advance(psn, bytes)
	if behind {
		s.rewind()
	}
}

// back declares everything in flight lost and returns its size on the wire.
func (s *sender) back() units.Bytes {
	lost := s.order.inFlight()
	s.order.back()
	s.rewind()
	return lost
}

// rewind moves cursor and offset to packet order.next, which is in the first message.
func (s *sender) rewind() {
	s.cursor, s.offset = 0, 0
	if s.messages.len() > 0 {
		s.offset = units.Bytes(s.order.next-s.messages.at(0).first) * s.mtu
	}
}
