package agent

import (
	"weft/clocksync/labtime"
	"weft/internal/clock"
	"weft/results/frames"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// machine is the state machine that the loop drives: a host.Host, or a fake in tests.
type machine interface {
	Start(now units.Time)
	Receive(now units.Time, in *transport.Incoming) (transport.Placement, error)
	Deliver(now units.Time, pl transport.Placement, payload []byte)
	Transmit(now units.Time, out *transport.Outgoing) bool
	TransmitControl(now units.Time, out *transport.Outgoing) bool
	Payload(out *transport.Outgoing, room []byte) []byte
	Deadline() (units.Time, bool)
	Advance(now units.Time)
	Done() bool
	Failed() error
}

// inlet is where datagrams come from: a socket, or a bypass NIC.
type inlet interface {
	// receive gives the waiting datagrams, at most batch, to f, which must not keep them.
	receive(f func(datagram)) (n int, err error)
}

// outlet is where packets leave: sockets, or a bypass NIC.
type outlet interface {
	// room returns memory for the payload of the next packet, which send then need not copy; nil:
	// there is none.
	room(out *transport.Outgoing) []byte
	// send takes a packet that departs at an instant. taken is false if there was no room for it.
	send(out *transport.Outgoing, payload, trailer []byte, at units.Time) (taken bool, err error)
	// opened returns the number of sockets opened while a packet waited.
	opened() int64
	close()
}

// loop is the engine of a node. One goroutine owns the machine and the sockets.
type loop struct {
	machine machine
	clock   clock.Clock
	scale   labtime.Clock
	in      *receiver
	sync    []*receiver // of synchronization messages
	out     outlet
	bypass  *bypassNIC                  // the node's bypass NIC, which is out; nil: it sends from sockets
	hosts   map[uint32]transport.HostID // by address
	self    transport.HostID
	// source address of pause notices; 0: there are none
	network uint32

	nic nic
	// the last instant that was given to the machine
	last units.Time
	// next instant at which the loop acts by itself, or never
	due  units.Time
	full bool // the NIC accepts no more packets for now
	// last instant at which the network held data back: what was due before waited rightly
	paused units.Time

	// the network holds early packets until they are due: not Config.Switched
	holds bool
	hold  *holding // packets that wait for the end of their transit; nil: links take their time
	// packets with a departure time carry it apart from their stamp: Config.Departs
	departs bool
	trailer [wire.DepartureSize]byte

	standing bool // Config.Standing

	offset    int64 // CLOCK_REALTIME - CLOCK_MONOTONIC
	offsetAge int64 // monotonic time at which it was read

	packet   transport.Outgoing
	incoming transport.Incoming
	now      units.Time // while datagrams are handled
	err      error      // the first error, which ends the loop

	// interval between instants at which the node wakes by itself, in nanoseconds
	grid int64

	results  Results
	command  func() error          // handles a message from the orchestrator
	report   func(done bool) error // reports progress to the orchestrator
	lost     func(error) error     // tells the orchestrator why the node ends alone
	interval int64                 // between reports, in nanoseconds
	next     int64                 // monotonic time of the next report
	frame    func(at units.Time)   // records a frame of the host's connections; nil: there are none
	frames   frames.Schedule       // of frame
	framed   units.Time            // lab time of the next frame
	steer    func() (bool, error)  // reports a new correction of the host's clock; nil: nobody reads it
	steered  int64                 // monotonic time of the last such report
	t0       int64                 // CLOCK_MONOTONIC of lab time 0; 0: not known yet
	done     bool
	failed   bool // the machine has failed, and a report says so
	stop     bool
	wake     int64         // latest monotonic time of the next turn
	watched  map[int32]int // watched descriptors and their tokens
	left     bool          // the descriptors are not watched any more
	// lab time 0 has passed; nothing is due before
	awake  bool
	called bool // input has arrived since the last turn
}

// Tokens of a node's descriptors in the poller, relative to the node's first.
const (
	socketToken int32 = iota
	controlToken
	keeperToken
	syncToken // token of loop.sync[0]; the others follow
	tokens    = 16
)

// offsetLife is how long a reading of the wall clock's offset is used, in nanoseconds. Slewing by
// the 500 ppm that adjtimex allows changes it by 50 us in that time.
const offsetLife = 100e6

// prepare runs the machine's actions of lab time 0 in advance, since filling buffers takes longer
// than any packet. Its packets wait for run.
func (l *loop) prepare() {
	l.machine.Start(0)
	l.due = 0
}

// begin sets up lab time after the start message.
func (l *loop) begin(dilation float64) {
	l.scale = labtime.NewClock(labtime.Scale{T0: l.t0, Dilation: dilation})
	l.grid = gridFor(l.scale.RealSpan(l.nic.ahead))
	l.next = l.clock.Now()
	l.results.Stalls.Record(0, l.scale.Lab(l.next)) // what is due at 0 leaves in the first turn
	l.housekeeping(l.next)
	l.wake = l.wakeUp()
}

// turn does everything that is due.
func (l *loop) turn() {
	l.called, l.awake = false, true
	mono := l.clock.Now()
	now := l.scale.Now(mono)
	l.look(now)
	l.release(now)
	l.pump(now)
	l.housekeeping(mono)
	l.wake = l.wakeUp()
}

// look records the frame that was due first, if one is due. The loop looks before it acts, and does
// not wake for frames: nothing has changed since that instant, nor at later ones until now.
func (l *loop) look(now units.Time) {
	if l.frame == nil || now < l.framed {
		return
	}
	l.frame(l.framed)
	l.framed = l.frames.After(now)
}

// handle reads the input of one descriptor.
func (l *loop) handle(what int32) {
	l.called = true
	switch {
	case what == socketToken:
		l.receive(l.in)
	case what >= syncToken:
		l.receive(l.sync[what-syncToken])
	case what == keeperToken:
		l.fail(errKept) // the keeper speaks only when asked
	default:
		l.fail(l.command())
	}
}

// over reports that the node has ended.
func (l *loop) over() bool { return l.stop || l.err != nil }

func (l *loop) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// labNow returns the present lab time.
func (l *loop) labNow() units.Time { return l.scale.Now(l.clock.Now()) }

// monotonic returns the later of now and the last instant given to the machine, which may be ahead
// of now.
func (l *loop) monotonic(now units.Time) units.Time {
	l.last = max(l.last, now)
	return l.last
}

// early returns how long before l.due the loop acts. The NIC accepts packets ahead of time. Other
// deadlines are early only if the network holds early packets.
func (l *loop) early() units.Time {
	if l.holds || l.full {
		return l.nic.ahead
	}
	return 0
}

// pump runs the machine up to now, or up to nic.ahead later if the network holds packets, and sends
// while the NIC accepts packets. Each packet carries its departure time.
func (l *loop) pump(now units.Time) {
	acted, transmit, woken := false, l.machine.Transmit, l.due-l.early()
	if l.nic.until != 0 && l.nic.held(l.clock.Now()) {
		transmit, l.paused = l.machine.TransmitControl, now
	}
	l.full = false
	horizon := now + l.early()
	for l.err == nil {
		at, ok := l.nic.slot(now)
		if !ok {
			l.full = true
			break
		}
		at = l.monotonic(at)
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
		l.machine.Advance(l.monotonic(d))
		acted = true
	}
	if acted && woken <= now { // the loop woke for this, not for a packet
		l.results.Timer.Record(max(now-l.due, 0))
		l.results.Stalls.Record(max(l.due, l.paused), now)
	}
	l.due = units.Never
	if l.full {
		l.due = l.nic.free // nothing that is due earlier could leave
	} else if d, ok := l.machine.Deadline(); ok {
		l.due = d
	}
}

// send hands the packet that departs at the given instant to the kernel.
func (l *loop) send(at units.Time) {
	l.nic.sent(at, l.packet.Size)
	var payload []byte
	if l.packet.Payload > 0 {
		payload = l.machine.Payload(&l.packet, l.out.room(&l.packet))
	}
	var trailer []byte
	if l.departs && (l.packet.Payload > 0 || l.packet.DstPort != 0) {
		trailer = wire.AppendDeparture(l.trailer[:0], at)
	}
	taken, err := l.out.send(&l.packet, payload, trailer, at)
	if err != nil && !l.standing {
		l.fail(err)
	}
	if !taken {
		l.results.Unsent++
	}
}

// receive handles the waiting datagrams in batches, and lets the machine answer between two.
func (l *loop) receive(from inlet) {
	for l.err == nil {
		l.now = l.labNow()
		l.look(l.now)
		n, err := from.receive(l.accept)
		if err != nil {
			l.fail(err)
		}
		if n < batch {
			return
		}
		l.pump(l.labNow())
	}
}

// take gives a datagram to the machine.
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
	now := l.monotonic(l.now)
	pl, err := l.machine.Receive(now, in)
	if err != nil {
		l.refuse(src, transport.RefusalOf(err))
		return
	}
	if pl.Payload > 0 {
		l.machine.Deliver(now, pl, d.data[len(d.data)-int(pl.Payload):])
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
	if _, err := l.machine.Receive(l.monotonic(l.now), in); err != nil {
		l.refuse(src, transport.RefusalOf(err))
	}
}

// refuse counts a refused datagram of a host.
func (l *loop) refuse(src transport.HostID, why transport.Refusal) {
	l.results.Refused[why]++
	of, known := l.results.RefusedFrom[src]
	if !known && len(l.results.RefusedFrom) == maxSenders {
		return
	}
	if l.results.RefusedFrom == nil {
		l.results.RefusedFrom = map[transport.HostID]transport.Refusals{}
	}
	of[why]++
	l.results.RefusedFrom[src] = of
}

// arrival returns when the node's NIC received a datagram, and records how long it waited for the
// node. A bypass NIC has stamped it with the instant at which it arrived in the model. The kernel's
// stamp is of when it was written.
func (l *loop) arrival(d datagram) units.Time {
	if d.mono != 0 {
		written := l.scale.Lab(d.mono)
		l.results.Reaction.Record(max(0, l.now-written))
		l.results.Stalls.Record(written, l.now)
		return min(l.now, max(0, d.lab))
	}
	at := min(l.now, d.held)
	if d.held == 0 {
		at = l.stamped(d)
	}
	l.results.Reaction.Record(l.now - at)
	l.results.Stalls.Record(at, l.now)
	return at
}

// stamped returns when the kernel received a datagram: now, if it does not say.
func (l *loop) stamped(d datagram) units.Time {
	if d.at == 0 {
		return l.now
	}
	return min(l.now, max(0, l.scale.Lab(d.at-l.offset)))
}

// pause handles a pause notice of the network.
func (l *loop) pause(d datagram) {
	var p wire.Pause
	switch err := p.Decode(d.data); {
	case err != nil:
		l.results.Refused[transport.Unreadable]++
		return
	case p.Host != uint32(l.self):
		l.results.Refused[transport.Foreign]++
		return
	case !l.nic.update(&p, l.clock.Now()):
		l.results.Refused[transport.Impossible]++
		return
	}
	l.arrival(d)
}

// wakeUp returns the latest monotonic time to wake: a little before the next deadline, or for the
// next report.
//
// The deadline could be handled from nic.ahead before it. Most of that time is left for a packet to
// arrive and save the wake-up. Instants are rounded down to a grid that all nodes of a machine
// share: arming a timer that precedes all others of a processor is expensive, and one at the same
// instant is not.
func (l *loop) wakeUp() int64 {
	wake := l.next
	if held := l.heldUntil(); held != units.Never {
		wake = min(wake, l.scale.Mono(held))
	}
	if l.due == units.Never {
		return wake
	}
	early := l.early()
	due := l.scale.Mono(l.due - early/4)
	if early > 0 {
		due &^= l.grid - 1
	}
	return min(wake, due)
}

// gridFor returns the interval between two instants at which nodes wake by themselves, in
// nanoseconds, for deadlines that may be handled ahead nanoseconds early: the largest power of two
// with which nothing is handled too early.
func gridFor(ahead int64) int64 {
	grid := int64(longestGrid)
	for grid > 1 && grid > ahead-ahead/4 {
		grid /= 2
	}
	return grid
}

// longestGrid bounds the grid: the earlier a node acts, the less input it has seen.
const longestGrid = 1 << 17

// housekeeping reports progress, a failure at once, and refreshes the offset of the wall clock. now
// is CLOCK_MONOTONIC in nanoseconds.
func (l *loop) housekeeping(now int64) {
	if !l.done && l.machine.Done() {
		l.done = true
		l.fail(l.report(true))
	}
	if !l.failed && l.machine.Failed() != nil {
		l.failed, l.next = true, now // the run ends: the others need not wait for the next report
	}
	if now >= l.next {
		l.next = now + l.interval
		l.fail(l.report(false))
	}
	if l.steer != nil && now-l.steered >= steerEvery {
		sent, err := l.steer()
		if l.fail(err); sent {
			l.steered = now
		}
	}
	if now-l.offsetAge > offsetLife {
		l.refreshOffset()
	}
}

// steerEvery is the least time between two reports of corrections, in nanoseconds. Our own choice:
// a protocol that updates its correction more often than its host wakes must not cost more than the
// messages that it measures with.
const steerEvery = 1e6

func (l *loop) refreshOffset() {
	l.offset, l.offsetAge = clock.RealtimeOffset(), l.clock.Now()
}
