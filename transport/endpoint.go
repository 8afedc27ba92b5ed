package transport

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"weft/internal/prefetch"
	"weft/internal/splitmix"
	"weft/transport/cc"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// Endpoint is the transport of one host: the halves of its connections that lie there. Senders that
// may send take turns.
type Endpoint struct {
	// The fields of every packet come first, so that they share cache lines.
	senders      []sender
	receivers    []receiver
	timers       timers     // by index of sender
	expected     int        // receivers with announced flows; see Expect
	observed     int        // receivers with an unfinished flow, according to its packets
	clockOffset  units.Time `state:"span"` // see SetClockOffset
	outbox       `state:"-"`
	surroundings `state:"-"`
	counters     Counters `state:"count"`
}

// outbox is what waits in an endpoint, and means nothing while it is still.
type outbox struct {
	sent     int32             // index of the sender that was looked up last
	received int32             // index of the receiver that was looked up last
	round    round             // senders that may send
	replies  fifo[reply]       // acknowledgements and notifications that wait for the NIC
	events   fifo[Event]       // for Poll
	records  fifo[records]     // telemetry of the replies that have room for it, in order
	sacks    fifo[wire.Sack]   // the replies that are selective acknowledgements, in order
	rejects  fifo[wire.Reject] // the replies that are rejections, in order
	pacer    pacer             // of credits
}

// surroundings is what an endpoint looks things up in, and what it remembers for others.
type surroundings struct {
	cfg      Config
	arrivals ArrivalObserver   // cfg.Observer, if it is one
	conns    map[ConnID]int32  // index in senders, or ^index in receivers
	flows    map[flowKey]int32 // senders whose packets have a coordination tag
	timedOut []TimedOut        // the first maxTimedOut
}

// Counters count the packets and events of an endpoint since New.
type Counters struct {
	DataPackets int64 // sent, retransmissions included
	DataBytes   int64 // payload of DataPackets
	Retransmits int64 // data packets sent again
	Timeouts    int64
	Recoveries  int64 // rounds of recovery under selective repeat
	Probes      int64 // sent
	Acks        int64 // sent, NAKs included
	Naks        int64 // sent, rejections of trimmed packets included
	CNPs        int64 // congestion notifications sent
	Received    int64 // data packets that arrived, including those dropped later
	Delivered   int64 // payload bytes placed
	OutOfOrder  int64 // data packets dropped because an earlier one was missing
	Reordered   int64 // data packets placed although an earlier one was missing
	Trimmed     int64 // headers of trimmed packets that arrived
	Duplicates  int64 // data packets dropped because they had arrived before
	AcksIn      int64 // acknowledgements that arrived, NAKs included
	CNPsIn      int64 // congestion notifications that arrived
	Credits     int64 // sent
	CreditsIn   int64 // credits that arrived
	ProbesIn    int64 // probes that arrived
	BadPackets  int64 // rejected: malformed, unknown connection, wrong host, impossible numbers
	AckDrops    int64 // acknowledgements dropped because maxReplies were waiting
	Failed      int64 // connections whose retries are exhausted
	Notices     int64 // accepted notices of switches
	Refused     int64 // rejected notices of switches: forged, replayed, unknown flow; part of BadPackets
	Adjusted    int64 // changes of a window or rate after the start; counted with an Observer
	Repaths     int64 // changes of the source port: requested by switches, or after congested rounds (PLB)
}

// Add adds the counters of another endpoint.
func (c *Counters) Add(o Counters) {
	sum, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + from.Field(i).Int())
	}
}

// maxReplies bounds the acknowledgements that wait. A NIC sends them faster than full packets
// arrive; the bound guards against a driver that never drains Transmit. Ours.
const maxReplies = 1 << 16

// New returns an endpoint without connections.
func New(cfg Config) (*Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	arrivals, _ := cfg.Observer.(ArrivalObserver)
	return &Endpoint{
		outbox:       outbox{round: newRound()},
		surroundings: surroundings{cfg: cfg, arrivals: arrivals, conns: make(map[ConnID]int32)},
	}, nil
}

// Open adds the half of a connection that lies at this host. It returns an error if the Spec is
// invalid or its ID is in use.
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
		return fmt.Errorf("transport: connection %d: %s needs telemetry of 1 to %d switches, the path has %d", s.ID,
			s.Kind, wire.MaxHops, switches)
	}
	if s.Dst == e.cfg.Host {
		e.conns[s.ID] = ^int32(len(e.receivers))
		r := receiver{id: s.ID, src: s.Src, srcPort: s.SrcPort, replyPort: s.SrcPort,
			feedback: sch.receiver(e.cfg.LineRate)}
		if sch.selective {
			r.arrivals = newArrivals(&s, sch)
		}
		if sch.credit != nil {
			r.grants = sch.credit.receiving(linkOf(e.cfg, &s, sch), len(e.receivers))
		}
		e.receivers = append(e.receivers, r)
		return nil
	}
	e.conns[s.ID] = int32(len(e.senders))
	if sch.tagged {
		e.indexFlows(&s, int32(len(e.senders)))
	}
	n := newSender(e.cfg, &s, sch)
	if n.failing != nil && n.failing.Err() != nil {
		delete(e.conns, s.ID)
		return fmt.Errorf("transport: connection %d: %w", s.ID, n.failing.Err())
	}
	e.senders = append(e.senders, n)
	e.timers.add()
	return nil
}

// newSender returns the sending half of a connection, with its controller, paths and timers.
func newSender(cfg Config, s *Spec, sch scheme) sender {
	echo := newEcho(s.Forward, sch.telemetry)
	l := linkOf(cfg, s, sch)
	n := sender{
		id: s.ID, dst: s.Dst, srcPort: s.SrcPort, ect: sch.ect, spaced: sch.spaced, mtu: cfg.MTU,
		ctl: sch.controller(l), echo: echo, perPacket: l.Packet - cfg.MTU, rto: newRTO(s, l),
		route: route{full: l.Baseline, forward: s.Forward, paths: sch.paths},
	}
	n.chooser = sch.chooser(l, cfg.Seed, n.ctl.Window())
	if sch.selective {
		n.flight = newFlight(s, l, sch)
	}
	if sch.credit != nil {
		n.credits = sch.credit.sending(l)
	}
	n.timed, _ = n.ctl.(cc.Timed)
	n.held, _ = n.ctl.(cc.Held)
	n.failing, _ = n.ctl.(cc.Failing)
	if sch.tagged {
		n.coordinated, _ = n.ctl.(cc.Coordinated)
	}
	return n
}

// linkOf returns what the congestion control of a connection knows about its path.
func linkOf(cfg Config, s *Spec, sch scheme) cc.Link {
	facts, switches := FactsFor(s.Kind, s.CC), len(s.Forward.Rates)-1
	packet := cfg.MTU + perPacket + facts.Data(switches)
	l := cc.Link{
		Line: cfg.LineRate, Slowest: slices.Min(s.Forward.Rates), MTU: cfg.MTU, Packet: packet,
		Baseline: s.Forward.Delay(packet), Hops: len(s.Forward.Rates),
		Seed: splitmix.Mix(cfg.Seed ^ uint64(s.ID+1)*splitmix.Gamma),
	}
	l.BaseRTT = l.Baseline + s.Reverse.Delay(facts.Reply(sch.selective, switches)+wire.Overhead)
	l.NetRTT = s.NetRTT
	if l.NetRTT == 0 {
		l.NetRTT = l.BaseRTT
	}
	return l
}

// sender returns the sending half of a connection and its index. Most packets belong to the
// connection that was looked up last, so that one is tried first.
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

// receiver returns the receiving half of a connection.
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

// Prefetch asks the processor for what packets touch: in step 0 of the endpoint itself, and in step
// 1 of the connections that were used last.
func (e *Endpoint) Prefetch(step int) {
	if step == 0 {
		prefetch.Lines(unsafe.Pointer(e), 4)
		return
	}
	if i := e.sent; int(i) < len(e.senders) {
		prefetch.Lines(unsafe.Pointer(&e.senders[i]), 6)
	}
	if i := e.received; int(i) < len(e.receivers) {
		prefetch.Lines(unsafe.Pointer(&e.receivers[i]), 3)
	}
}

// Send queues a message on a connection from this host. It returns ErrUnknownConn, ErrFailed, or an
// error for an empty message.
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

// Expect announces flows that are about to arrive on connection c, or ends announced ones if flows
// is negative. Receivers learn the number of connections with announced flows (PC4 divides the line
// by it); a connection counts once. Expect panics if c does not end here or more flows end than
// were announced: the caller has broken its own accounting.
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

// Receive handles a packet and returns where its payload belongs. An error means that the packet
// was rejected and changed nothing but Counters.BadPackets.
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
		err = e.receiveProbe(now, in)
	case t == wire.TypeTrimmed:
		err = e.receiveTrimmed(now, in)
	case t == wire.TypeReject:
		err = e.receiveReject(now, in)
	case t == wire.TypeCredit:
		err = e.receiveCredit(now, in)
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

// Transmit writes the packet that leaves now into out: acknowledgements first, then data of the
// connections that may send, in turn. It returns false if nothing may leave before the next call or
// Deadline.
func (e *Endpoint) Transmit(now units.Time, out *Outgoing) bool {
	if at, ok := e.Deadline(); ok && at <= now {
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
			s.probe(now, e.clockOffset, out)
			e.schedule(i, now)
			return true
		}
		if s.maySend() && s.paceAt() <= now {
			e.counters.DataPackets++
			if s.send(now, e.clockOffset, e.round.n, out) {
				e.counters.Retransmits++
			}
			e.counters.DataBytes += int64(out.Payload)
			e.schedule(i, now)
			return true
		}
		e.schedule(i, now)
	}
}

// SetClockOffset sets the offset of the host's clock from the lab time that Transmit gets. Only the
// timestamps of packets use it.
func (e *Endpoint) SetClockOffset(offset units.Time) { e.clockOffset = offset }

// roundTrip returns the round trip of the packet with the given timestamp, which in acknowledges.
// A clock that is not lab time may have stepped in between: an impossible round trip then becomes
// baseRTT, and sample is false.
func (e *Endpoint) roundTrip(in *Incoming, stamp, baseRTT units.Time) (rtt units.Time, sample bool) {
	rtt = in.At + in.ClockOffset - stamp
	if rtt <= 0 && e.cfg.OwnClock {
		return baseRTT, false
	}
	return rtt, true
}

// TransmitControl is Transmit for a NIC whose data class is paused (PFC): only class 0 leaves.
func (e *Endpoint) TransmitControl(now units.Time, out *Outgoing) bool {
	if at, ok := e.Deadline(); ok && at <= now {
		e.Advance(now)
	}
	if e.replies.len() == 0 {
		return false
	}
	e.transmitReply(out)
	return true
}

// transmitReply writes the first reply into out. There must be one.
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
		e.counters.Acks++
		size = a.Len()
		if a.Room > 0 {
			e.writeTelemetry(a.Records(out.Header[:]))
		}
		e.sacks.pop()
	case replyReject:
		a := e.rejects.at(0)
		a.Encode(out.Header[:])
		out.Conn = ConnID(a.Conn)
		e.rejects.pop()
		e.counters.Acks++
		e.counters.Naks++
		size = wire.RejectSize
	case replyCredit:
		c := wire.Credit{Conn: r.ack.Conn, Granted: r.ack.PSN}
		c.Encode(out.Header[:])
		e.counters.Credits++
		size = wire.CreditSize
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

// Deadline returns the time by which Advance or Transmit must be called. ok is false if no timer
// runs.
func (e *Endpoint) Deadline() (units.Time, bool) {
	at, ok := e.timers.next()
	if e.pacer.on && (!ok || e.pacer.at < at) {
		return e.pacer.at, true
	}
	return at, ok
}

// Advance fires every timer that is due at now.
func (e *Endpoint) Advance(now units.Time) {
	e.grant(now)
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
			if f.departures != nil {
				e.expire(now, s)
			} else {
				f.probing, f.probeAt = true, f.nextProbe(now, s.rto.floor)
			}
		}
		if s.starved() && s.credits.askAt <= now {
			e.ask(now, s)
		}
		e.schedule(i, now)
	}
}

// Poll returns the next event, or false if there is none.
func (e *Endpoint) Poll() (Event, bool) {
	if e.events.len() == 0 {
		return Event{}, false
	}
	return e.events.pop(), true
}

// Counters returns the counters of the endpoint.
func (e *Endpoint) Counters() Counters {
	c := e.counters
	for i := range e.senders {
		if p, ok := e.senders[i].chooser.(*path.PLB); ok {
			c.Repaths += p.Left()
		}
	}
	return c
}

// TimedOut returns the first retransmission timers that expired, at most maxTimedOut.
// Counters.Timeouts counts all.
func (e *Endpoint) TimedOut() []TimedOut { return e.timedOut }

// Printed passes what the controllers of the connections printed to f, in the order of the
// connections.
func (e *Endpoint) Printed(f func(c ConnID, first []string, more int)) {
	for i := range e.senders {
		if p, ok := e.senders[i].ctl.(cc.Printing); ok {
			if first, more := p.Printed(); len(first) > 0 {
				f(e.senders[i].id, first, more)
			}
		}
	}
}

// schedule puts sender i into the round if it may send, and arms its timer for the earliest of its
// pacing, its retransmission timeout and its controller's deadline. A timer may fire early, never
// late: a timeout moves with every acknowledgement, and moving the heap's entry each time is not
// worth it.
func (e *Endpoint) schedule(i int32, now units.Time) {
	s := &e.senders[i]
	if s.failing != nil && !s.failed && s.failing.Err() != nil {
		e.fail(now, s, s.failing.Err())
	}
	at, armed := units.Never, false
	s.askForSack()
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
	if s.starved() {
		at, armed = min(at, s.credits.askAt), true
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

// observe reports to the Observer what has changed at a sender since the last call.
func (e *Endpoint) observe(now units.Time, s *sender) {
	if e.cfg.Observer == nil {
		return
	}
	if c := s.coordinated; c != nil && c.Indicated() != s.sawCC {
		s.sawCC = !s.sawCC
		e.coordination(now, s, s.sawCC, false)
	}
	l := Limits{Window: limited(s.ctl.Window()), Rate: s.ctl.PacingRate()}
	adjusted := l.Window != s.sawWindow || l.Rate != s.sawRate
	changed := adjusted
	if c := s.credits; c != nil {
		l.Credited, l.Credit = true, c.have
		changed = changed || c.have != c.saw
		c.saw = c.have
	}
	if !changed {
		return
	}
	if adjusted && (s.sawWindow != 0 || s.sawRate != 0) {
		e.counters.Adjusted++
	}
	s.sawWindow, s.sawRate = l.Window, l.Rate
	e.cfg.Observer.Limited(now, s.id, l)
}
