package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// Endpoint is the transport of one host: the halves of its connections, in a round of those that may send.
type Endpoint struct {
	// What every packet reads and writes comes first, in few lines of the cache.
	senders   []sender
	receivers []receiver
	sent      int32 // index in senders of the connection that was asked for last
	received  int32 // likewise in receivers
	round     round
	timers    timers // by sender
	replies   fifo[reply]
	expected  int // connections that the controller says are arriving or about to
	observed  int // connections that are arriving by what their packets say
	events    fifo[Event]
	shift     units.Time // see SetShift

	cfg      Config
	counters Counters
	conns    map[ConnID]int32 // index in senders, or ^index in receivers
	flows    map[flow]int32   // of senders whose packets have a coordination tag
	timedOut []TimedOut
	records  fifo[records]   // for those of the replies that have room for telemetry
	sacks    fifo[wire.Sack] // the replies that are selective acknowledgements
}

// Counters count what an endpoint did since it was made.
type Counters struct {
	DataPackets int64 // sent, those sent again included
	DataBytes   int64 // their payload
	Retransmits int64 // data packets sent again
	Timeouts    int64
	Recoveries  int64 // times that packets were given up as lost under selective repeat
	Probes      int64 // sent
	Acks        int64 // sent, NAKs included
	Naks        int64 // sent
	CNPs        int64 // congestion notifications sent
	Received    int64 // data packets that arrived, whatever became of them
	Delivered   int64 // payload bytes placed
	OutOfOrder  int64 // data packets dropped because an earlier one was missing
	Reordered   int64 // data packets placed although an earlier one was missing
	Duplicates  int64 // data packets dropped because they had arrived before
	AcksIn      int64 // acknowledgements that arrived, NAKs included
	CNPsIn      int64 // congestion notifications that arrived
	ProbesIn    int64 // probes that arrived
	BadPackets  int64 // refused: malformed, unknown connection, wrong host, impossible numbers
	AckDrops    int64 // acknowledgements dropped because too many were waiting
	Failed      int64 // connections given up
	Notices     int64 // of switches, heeded
	Refused     int64 // notices of switches that were not: forged, replayed, about unknown flows; among BadPackets
	Repaths     int64 // changes of the source port: that switches asked for, or after congested rounds (PLB)
}

// maxReplies bounds the acknowledgements that wait. A NIC that sends at all sends them faster than full packets
// arrive; the bound is for a driver that does not.
const maxReplies = 1 << 16

// New returns an endpoint without connections.
func New(cfg Config) (*Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Endpoint{cfg: cfg, conns: make(map[ConnID]int32), round: newRound()}, nil
}

// Open adds the half of a connection that lies at this host.
func (e *Endpoint) Open(s Spec) error {
	if err := s.check(e.cfg.Host); err != nil {
		return err
	}
	if _, ok := e.conns[s.ID]; ok {
		return fmt.Errorf("transport: connection %d is open already", s.ID)
	}
	sch, err := newScheme(&s)
	if err != nil {
		return err
	}
	if switches := len(s.Forward.Rates) - 1; sch.telemetry && (switches < 1 || switches > wire.MaxHops) {
		return fmt.Errorf("transport: connection %d: %s needs telemetry of 1 to %d switches, the path has %d", s.ID, s.Kind, wire.MaxHops, switches)
	}
	if s.Dst == e.cfg.Host {
		e.conns[s.ID] = ^int32(len(e.receivers))
		r := receiver{id: s.ID, src: s.Src, srcPort: s.SrcPort, feedback: sch.receiver(e.cfg.LineRate)}
		if sch.selective {
			r.arrivals = newArrivals(&s)
		}
		e.receivers = append(e.receivers, r)
		return nil
	}
	e.conns[s.ID] = int32(len(e.senders))
	if sch.tagged {
		e.name(&s, int32(len(e.senders)))
	}
	e.senders = append(e.senders, newSender(e.cfg, &s, sch))
	e.timers.add()
	return nil
}

func newSender(cfg Config, s *Spec, sch scheme) sender {
	echo := newEcho(s.Forward, sch.telemetry)
	beside := perPacket + echo.size()
	if sch.tagged {
		beside += wire.CoordinationSize
	}
	packet := cfg.MTU + beside
	l := cc.Link{
		Line: cfg.LineRate, MTU: cfg.MTU, Packet: packet, Baseline: s.Forward.Delay(packet), Hops: len(s.Forward.Rates),
	}
	ack := wire.AckSize + echo.size()
	if sch.selective {
		ack = wire.SackSize
	}
	l.BaseRTT = l.Baseline + s.Reverse.Delay(ack+wire.Overhead)
	l.NetRTT = s.NetRTT
	if l.NetRTT == 0 {
		l.NetRTT = l.BaseRTT
	}
	n := sender{
		id: s.ID, dst: s.Dst, srcPort: s.SrcPort, ect: sch.ect, spaced: sch.spaced, mtu: cfg.MTU, forward: s.Forward, full: l.Baseline,
		ctl: sch.controller(l), echo: echo, perPacket: beside, paths: sch.paths,
		rto: newRTO(s, l),
	}
	n.chooser = sch.chooser(l, cfg.Seed, n.ctl.Window())
	if sch.selective {
		n.flight = newFlight(s, l, sch)
	}
	n.timed, _ = n.ctl.(cc.Timed)
	n.held, _ = n.ctl.(cc.Held)
	if sch.tagged {
		n.coordinated, _ = n.ctl.(cc.Coordinated)
	}
	return n
}

// sender returns the connection that begins here. Most packets are of the one that was asked for last.
func (e *Endpoint) sender(c ConnID) (int32, *sender, error) {
	if i := e.sent; int(i) < len(e.senders) && e.senders[i].id == c {
		return i, &e.senders[i], nil
	}
	i, ok := e.conns[c]
	if !ok || i < 0 {
		return 0, nil, ErrUnknownConn
	}
	e.sent = i
	return i, &e.senders[i], nil
}

// receiver returns the connection that ends here, likewise.
func (e *Endpoint) receiver(c ConnID) (*receiver, error) {
	if i := e.received; int(i) < len(e.receivers) && e.receivers[i].id == c {
		return &e.receivers[i], nil
	}
	i, ok := e.conns[c]
	if !ok || i >= 0 {
		return nil, ErrUnknownConn
	}
	e.received = ^i
	return &e.receivers[^i], nil
}

// Send queues a message on a connection that begins here.
func (e *Endpoint) Send(now units.Time, c ConnID, m Message) error {
	i, s, err := e.sender(c)
	switch {
	case err != nil:
		return fmt.Errorf("send on connection %d: %w", c, err)
	case s.failed:
		return fmt.Errorf("send on connection %d: %w", c, ErrFailed)
	case m.Size < 1:
		return fmt.Errorf("transport: connection %d: message %d of %d bytes", c, m.ID, m.Size)
	}
	if s.idle() {
		s.start(now)
		e.observe(now, s)
	}
	s.queue(now, m)
	e.schedule(i, now)
	return nil
}

// Expect is what the controller knows of connection c, which ends here: so many more flows are about to
// arrive on it, or, negative, are over. A connection counts once however many it carries, and a
// connection that is unknown or has none left to end is a broken invariant of the caller.
func (e *Endpoint) Expect(c ConnID, flows int) {
	r, err := e.receiver(c)
	if err != nil {
		panic(fmt.Sprintf("transport: host %d expects flows on connection %d: %v", e.cfg.Host, c, err))
	}
	before := r.expected > 0
	r.expected += flows
	if r.expected < 0 {
		panic(fmt.Sprintf("transport: connection %d: %d flows expected", c, r.expected))
	}
	switch after := r.expected > 0; {
	case after && !before:
		e.expected++
	case before && !after:
		e.expected--
	}
}

// Receive takes in a packet. Placement says where its payload belongs. An error means that the packet was
// refused and changed nothing but Counters.BadPackets.
func (e *Endpoint) Receive(now units.Time, in *Incoming) (Placement, error) {
	t, err := wire.Peek(in.Header)
	var pl Placement
	switch {
	case err != nil:
	case t == wire.TypeData:
		pl, err = e.receiveData(now, in)
	case t == wire.TypeSack:
		err = e.receiveSack(now, in)
	case t == wire.TypeCNP:
		err = e.receiveCNP(now, in)
	case t == wire.TypeProbe:
		err = e.receiveProbe(in)
	case t == wire.TypeNotice:
		if err = e.receiveNotice(now, in); err != nil {
			e.counters.Refused++
		}
	default:
		err = e.receiveAck(now, in)
	}
	if err != nil {
		e.counters.BadPackets++
	}
	return pl, err
}

// Transmit writes the packet that leaves now into out, acknowledgements first, then data of the connections that
// may send, in turn. It returns false when nothing may leave before the next call in or Deadline.
func (e *Endpoint) Transmit(now units.Time, out *Outgoing) bool {
	if at, ok := e.timers.next(); ok && at <= now {
		e.Advance(now)
	}
	if e.replies.len() > 0 {
		e.transmitReply(out)
		return true
	}
	for {
		i, ok := e.round.pop(e.senders)
		if !ok {
			return false
		}
		s := &e.senders[i]
		if s.flight != nil && s.flight.probing {
			e.counters.Probes++
			s.probe(now, e.shift, out)
			e.schedule(i, now)
			return true
		}
		if s.maySend() && s.paceAt() <= now {
			e.counters.DataPackets++
			if s.send(now, e.shift, out) {
				e.counters.Retransmits++
			}
			e.counters.DataBytes += int64(out.Payload)
			e.schedule(i, now)
			return true
		}
		e.schedule(i, now)
	}
}

// SetShift says what the host's clock will show beyond the instants that Transmit is told: packets are stamped by it.
// Everything else that an endpoint does goes by the instants themselves.
func (e *Endpoint) SetShift(shift units.Time) { e.shift = shift }

// roundTrip returns how long ago, by the host's clock, a packet was stamped that the packet in acknowledges. A clock that is
// not lab time may have been set in between; what is impossible then counts as least, and sample is false.
func (e *Endpoint) roundTrip(in *Incoming, stamp, least units.Time) (rtt units.Time, sample bool) {
	rtt = in.At + in.Shift - stamp
	if rtt <= 0 && e.cfg.OwnClock {
		return least, false
	}
	return rtt, true
}

// TransmitControl is Transmit for a NIC that is told to pause data: only what is of class 0 leaves.
func (e *Endpoint) TransmitControl(now units.Time, out *Outgoing) bool {
	if at, ok := e.timers.next(); ok && at <= now {
		e.Advance(now)
	}
	if e.replies.len() == 0 {
		return false
	}
	e.transmitReply(out)
	return true
}

func (e *Endpoint) transmitReply(out *Outgoing) {
	r := e.replies.at(0)
	out.Dst, out.SrcPort, out.DstPort, out.ECT, out.Class = r.dst, r.srcPort, 0, false, 0
	out.Conn, out.Message, out.Offset, out.Payload = ConnID(r.ack.Conn), 0, 0, 0
	size := wire.AckSize + wire.TelemetrySize(int(r.ack.Room))
	switch r.kind {
	case replyCNP:
		c := wire.CNP{Conn: r.ack.Conn, PSN: r.ack.PSN, Path: r.ack.Path}
		c.Encode(out.Header[:])
		e.counters.CNPs++
		size = wire.CNPSize
	case replySack:
		a := e.sacks.at(0)
		a.Encode(out.Header[:])
		out.Conn = ConnID(a.Conn)
		e.sacks.pop()
		e.counters.Acks++
		size = wire.SackSize
	case replyAck:
		r.ack.Encode(out.Header[:])
		e.counters.Acks++
		if r.ack.Nak {
			e.counters.Naks++
		}
		if r.ack.Room > 0 {
			e.writeTelemetry(r.ack.Records(out.Header[:]))
		}
	}
	out.Size, out.N = size+wire.Overhead, int(size)
	e.replies.pop()
}

// Deadline returns when Advance or Transmit should be called next if nothing else happens before.
func (e *Endpoint) Deadline() (units.Time, bool) { return e.timers.next() }

// Advance lets everything happen that is due by now.
func (e *Endpoint) Advance(now units.Time) {
	for {
		at, ok := e.timers.next()
		if !ok || at > now {
			return
		}
		i := e.timers.heap[0].id
		e.timers.clear(i)
		s := &e.senders[i]
		if s.timed != nil {
			if at, ok := s.timed.Deadline(); ok && at <= now {
				s.timed.Advance(now)
				e.observe(now, s)
			}
		}
		if s.outstanding() && s.rto.at <= now {
			e.timeout(now, s)
		}
		if f := s.flight; f != nil && s.outstanding() && f.probeAt <= now {
			f.probing, f.probeAt = true, now+f.probeAfter
		}
		e.schedule(i, now)
	}
}

// Poll returns the next event that the application has not heard of.
func (e *Endpoint) Poll() (Event, bool) {
	if e.events.len() == 0 {
		return Event{}, false
	}
	return e.events.pop(), true
}

// Counters returns what the endpoint did so far.
func (e *Endpoint) Counters() Counters {
	c := e.counters
	for i := range e.senders {
		if p, ok := e.senders[i].chooser.(*path.PLB); ok {
			c.Repaths += p.Left()
		}
	}
	return c
}

// TimedOut returns the first retransmission timers that ran out; Counters.Timeouts counts all.
func (e *Endpoint) TimedOut() []TimedOut { return e.timedOut }

// schedule puts sender i into the round if it may send, and arms its timer for whatever comes first: the end
// of its pacing wait, its retransmission timeout, its controller's deadline. The timer may be armed too
// early, never too late: a timeout that moves with every acknowledgement is not worth moving the timer for.
func (e *Endpoint) schedule(i int32, now units.Time) {
	s := &e.senders[i]
	at, armed := units.Never, false
	if !s.ready && s.flight != nil && s.flight.probing {
		e.round.push(e.senders, i)
	}
	if !s.ready && s.maySend() {
		if p := s.paceAt(); p > now {
			at, armed = p, true
		} else {
			e.round.push(e.senders, i)
		}
	}
	if s.outstanding() {
		at, armed = min(at, s.rto.at), true
		if s.flight != nil {
			at = min(at, s.flight.probeAt)
		}
	}
	if s.timed != nil && !s.failed {
		if d, ok := s.timed.Deadline(); ok {
			at, armed = min(at, d), true
		}
	}
	switch was, ok := e.timers.at(i); {
	case !armed:
		e.timers.clear(i)
	case !ok || at < was:
		e.timers.set(i, at)
	}
}

func (e *Endpoint) observe(now units.Time, s *sender) {
	if e.cfg.Observer == nil {
		return
	}
	if c := s.coordinated; c != nil && c.Indicated() != s.sawCC {
		s.sawCC = !s.sawCC
		e.coordination(now, s, s.sawCC, false)
	}
	if w, r := s.ctl.Window(), s.ctl.PacingRate(); w != s.sawWindow || r != s.sawRate {
		s.sawWindow, s.sawRate = w, r
		e.cfg.Observer.Window(now, s.id, w, r)
	}
}
