package agent

import (
	"weft/clocksync/labtime"
	"weft/internal/clock"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// machine is what the loop drives: a host.Host, or a stand-in for it.
type machine interface {
	Start(now units.Time)
	Receive(now units.Time, in *transport.Incoming) (transport.Placement, error)
	Place(pl transport.Placement) []byte
	Placed(now units.Time, pl transport.Placement)
	Transmit(now units.Time, out *transport.Outgoing) bool
	TransmitControl(now units.Time, out *transport.Outgoing) bool
	Payload(out *transport.Outgoing) []byte
	Deadline() (units.Time, bool)
	Advance(now units.Time)
	Done() bool
}

// loop is the engine: one goroutine that owns the machine and the sockets.
type loop struct {
	machine machine
	clock   clock.Clock
	scale   labtime.Scale
	in      *receiver
	sync    []*receiver // of synchronization messages
	out     *senders
	hosts   map[uint32]transport.HostID // by address
	self    transport.HostID
	network uint32 // address from which pauses are told; 0: from none

	nic  nic
	last units.Time // the latest instant the machine was told
	due  units.Time // what the loop waits for: an instant of its own, or never
	full bool       // the card took no more for now

	holds   bool // the network holds what it gets ahead of time until it is due: not Config.Switched
	departs bool // packets with an instant say it apart from their stamp: Config.Departs
	trailer [wire.DepartureSize]byte

	offset    int64 // CLOCK_REALTIME - CLOCK_MONOTONIC
	offsetAge int64 // when it was read, monotonic

	packet   transport.Outgoing
	incoming transport.Incoming
	now      units.Time // while datagrams are taken
	err      error      // the first that ends the loop

	grid int64 // the distance of two instants at which the node wakes by itself, in nanoseconds

	results  Results
	obey     func() error          // take a message from the orchestrator
	report   func(done bool) error // tell it how far the machine is
	interval int64                 // between reports, nanoseconds
	next     int64                 // when the next is due, monotonic
	t0       int64                 // CLOCK_MONOTONIC of lab time 0; 0: not known yet
	done     bool
	stop     bool
	wake     int64         // when to turn at the latest, monotonic
	watched  map[int32]int // descriptors, by what they are
	left     bool          // and they are not watched any more
	awake    bool          // that has been: nothing is due before lab time 0
	called   bool          // something has come since the last turn
}

// What the poller watches of a node, each node from a multiple of tokens on.
const (
	socketToken int32 = iota
	controlToken
	keeperToken
	syncToken // of the first of loop.sync; the others follow
	tokens    = 16
)

// offsetLife is how long the offset of the wall clock is believed, in nanoseconds: slewing by the 500 ppm that
// adjtimex allows moves it by 50 us in that time.
const offsetLife = 100e6

// prepare does what the machine does at lab time 0, before that has come: filling buffers takes longer than any
// packet. What it wants to send waits for run.
func (l *loop) prepare() {
	l.machine.Start(0)
	l.due = 0
}

// begin is what follows the start message.
func (l *loop) begin(dilation float64) {
	l.scale = labtime.Scale{T0: l.t0, Dilation: dilation}
	l.grid = gridFor(l.scale.RealSpan(l.nic.ahead))
	l.next = l.clock.Now()
	l.housekeeping()
	l.wake = l.wakeUp()
}

// turn does everything that may be done now.
func (l *loop) turn() {
	l.called, l.awake = false, true
	l.pump(l.labNow())
	l.housekeeping()
	l.wake = l.wakeUp()
}

// heed takes what has come.
func (l *loop) heed(what int32) {
	l.called = true
	switch {
	case what == socketToken:
		l.receive(l.in)
	case what >= syncToken:
		l.receive(l.sync[what-syncToken])
	case what == keeperToken:
		l.fail(errKept) // it speaks only when it is asked
	default:
		l.fail(l.obey())
	}
}

// over says that the node does nothing more.
func (l *loop) over() bool { return l.stop || l.err != nil }

func (l *loop) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// labNow returns the present lab time.
func (l *loop) labNow() units.Time { return l.scale.Lab(l.clock.Now()) }

// tell returns now, or the latest instant that the machine was told if that is later: it looked ahead.
func (l *loop) tell(now units.Time) units.Time {
	l.last = max(l.last, now)
	return l.last
}

// early is how long before l.due there is something to do: the card is given packets ahead of time, and what else is due is done
// so where the network holds what comes too soon.
func (l *loop) early() units.Time {
	if l.holds || l.full {
		return l.nic.ahead
	}
	return 0
}

// pump lets the machine do what is due, up to nic.ahead from now if the network holds packets, and send while the card takes
// them. Each packet is told the instant at which it leaves.
func (l *loop) pump(now units.Time) {
	acted, transmit, woken := false, l.machine.Transmit, l.due-l.early()
	if l.nic.until != 0 && l.nic.held(l.clock.Now()) {
		transmit = l.machine.TransmitControl
	}
	l.full = false
	horizon := now + l.early()
	for l.err == nil {
		at, ok := l.nic.slot(now)
		if !ok {
			l.full = true
			break
		}
		at = l.tell(at)
		if d, ok := l.machine.Deadline(); ok && d <= at {
			l.machine.Advance(at)
			acted = true
		}
		if transmit(at, &l.packet) {
			l.send(at)
			acted = true
			continue
		}
		d, ok := l.machine.Deadline()
		if !ok || d <= at || d > horizon {
			break
		}
		l.machine.Advance(l.tell(d))
		acted = true
	}
	if acted && woken <= now { // it woke for that, not for a packet
		l.results.Timer.Record(max(now-l.due, 0))
	}
	l.due = units.Never
	if l.full {
		l.due = l.nic.free // whatever else is due before could not leave
	} else if d, ok := l.machine.Deadline(); ok {
		l.due = d
	}
}

// send hands the packet that leaves at the given instant to the kernel.
func (l *loop) send(at units.Time) {
	l.nic.sent(at, l.packet.Size)
	var payload []byte
	if l.packet.Payload > 0 {
		payload = l.machine.Payload(&l.packet)
	}
	var trailer []byte
	if l.departs && (l.packet.Payload > 0 || l.packet.DstPort != 0) {
		trailer = wire.AppendDeparture(l.trailer[:0], at)
	}
	taken, err := l.out.send(&l.packet, payload, trailer)
	if err != nil {
		l.fail(err)
	}
	if !taken {
		l.results.Unsent++
	}
}

// receive takes the datagrams that are there, a batch at a time, and lets the machine answer between two.
func (l *loop) receive(from *receiver) {
	for l.err == nil {
		l.now = l.labNow()
		n, err := from.receive(l.take)
		if err != nil {
			l.fail(err)
		}
		if n < batch {
			return
		}
		l.pump(l.labNow())
	}
}

// take gives a datagram to the machine and puts its payload where the machine says.
func (l *loop) take(d datagram) {
	if d.from == l.network && l.network != 0 {
		l.pause(d)
		return
	}
	src, known := l.hosts[d.from]
	if d.port != 0 {
		l.takeSync(d, src, known)
		return
	}
	if !known {
		l.results.Refused[transport.Stranger]++
		return
	}
	at := l.arrival(d)
	in := &l.incoming
	in.At, in.Src, in.Port, in.Header, in.CE = at, src, 0, d.data, d.tos&3 == 3
	in.Payload = transport.PayloadInHeader
	now := l.tell(l.now)
	pl, err := l.machine.Receive(now, in)
	if err != nil {
		l.results.Refused[transport.RefusalOf(err)]++
		return
	}
	if pl.Payload > 0 {
		copy(l.machine.Place(pl), d.data[len(d.data)-int(pl.Payload):])
		l.machine.Placed(now, pl)
	}
}

// takeSync gives a synchronization message to the machine.
func (l *loop) takeSync(d datagram, src transport.HostID, known bool) {
	if !known {
		l.results.Refused[transport.Stranger]++
		return
	}
	in := &l.incoming
	*in = transport.Incoming{At: l.arrival(d), Src: src, Port: d.port, Header: d.data}
	if _, err := l.machine.Receive(l.tell(l.now), in); err != nil {
		l.results.Refused[transport.RefusalOf(err)]++
	}
}

// arrival returns when the kernel got a datagram that is taken now, and records how long that took.
func (l *loop) arrival(d datagram) units.Time {
	at := l.now
	if d.at != 0 {
		at = min(at, max(0, l.scale.Lab(d.at-l.offset)))
	}
	l.results.Reaction.Record(l.now - at)
	return at
}

// pause takes a notice of the network.
func (l *loop) pause(d datagram) {
	var p wire.Pause
	switch err := p.Decode(d.data); {
	case err != nil:
		l.results.Refused[transport.Unreadable]++
		return
	case p.Host != uint32(l.self):
		l.results.Refused[transport.Foreign]++
		return
	case !l.nic.heed(&p, l.clock.Now()):
		l.results.Refused[transport.Impossible]++
		return
	}
	l.arrival(d)
}

// wakeUp returns when to wake at the latest: for what is due, a little early, or for the next report.
//
// What is due could be done from nic.ahead before; most of that is left for a packet to come and save a
// wake-up. Instants are rounded down to a grid that all nodes of a machine share: arming a timer that comes
// before all others of a processor is dear, one at the same time is not.
func (l *loop) wakeUp() int64 {
	if l.due == units.Never {
		return l.next
	}
	early := l.early()
	wake := l.scale.Mono(l.due - early/4)
	if early > 0 {
		wake &^= l.grid - 1
	}
	return min(l.next, wake)
}

// gridFor returns the distance of two instants at which nodes wake by themselves, in nanoseconds, when what is due may be
// done so many before: the largest power of two with which nothing is looked at too soon.
func gridFor(ahead int64) int64 {
	grid := int64(longestGrid)
	for grid > 1 && grid > ahead-ahead/4 {
		grid /= 2
	}
	return grid
}

// longestGrid bounds it: the sooner a node looks, the less it knows.
const longestGrid = 1 << 17

// housekeeping reports progress and keeps the offset of the wall clock fresh.
func (l *loop) housekeeping() {
	if !l.done && l.machine.Done() {
		l.done = true
		l.fail(l.report(true))
	}
	now := l.clock.Now()
	if now >= l.next {
		l.next = now + l.interval
		l.fail(l.report(false))
	}
	if now-l.offsetAge > offsetLife {
		l.refreshOffset()
	}
}

func (l *loop) refreshOffset() {
	l.offset, l.offsetAge = clock.RealtimeOffset(), l.clock.Now()
}
