package node

import (
	"errors"
	"fmt"

	"weft/clocksync"
	"weft/clocksync/clock"
	"weft/clocksync/noise"
	"weft/transport/wire"
	"weft/units"
)

// Node is the clocks of one host. It is not safe for concurrent use. The instants in its calls
// never decrease.
type Node struct {
	cfg   Config
	build func() (clocksync.Protocol, error) // for each start of the process
	clock *clock.Clock

	event stamps           // for messages of the protocol
	data  stamps           // for packets of the transport
	delay *noise.Generator // noise of measured one-way delays

	protocol   clocksync.Protocol // nil: none, or its process does not run
	correction clocksync.Correction
	outage     int        // index in cfg.Outages of the current outage, or of the next one
	down       bool       // an outage is on
	lie        int        // number of lies that have begun
	deadline   units.Time // the protocol's deadline, by the monotonic clock
	wake       units.Time // true time of deadline, or earlier; units.Never: no deadline
	armed      bool       // deadline and wake are up to date

	next   units.Time // when the next sample of the interval is due
	also   int        // number of instants in cfg.Also that have come
	report Report
}

// stamps generates the stamps for one purpose.
type stamps struct{ sent, received *noise.Stamper }

// ErrDown is the error for a message that arrives while no protocol runs.
var ErrDown = errors.New("node: no synchronization runs here")

// New returns the clocks of a host. It returns an error if the configuration is invalid.
func New(cfg Config) (*Node, error) {
	return newNode(cfg, func() (clocksync.Protocol, error) { return cfg.protocol() })
}

// newNode is New with another source of protocols.
func newNode(cfg Config, build func() (clocksync.Protocol, error)) (*Node, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c, err := clock.New(cfg.Clock)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, build: build, clock: c}
	source := func(purpose string) *noise.Stamper {
		return noise.NewStamper(cfg.Stamp, noise.Seed(cfg.Setup.Seed, int(cfg.Setup.Self), purpose))
	}
	n.event = stamps{source("message sent"), source("message received")}
	n.data = stamps{source("packet sent"), source("packet received")}
	n.delay = noise.NewGenerator(cfg.Delay, noise.Seed(cfg.Setup.Seed, int(cfg.Setup.Self), "measured delay"))
	if cfg.Sample == 0 {
		n.next = units.Never
	}
	if n.protocol, err = build(); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	return n, nil
}

// now returns the readings of the clocks at true time t.
func (n *Node) now(t units.Time) clocksync.Now {
	return clocksync.Now{Mono: n.clock.Mono(t), Hard: n.clock.Hard(t)}
}

// Start starts the protocol at true time t.
func (n *Node) Start(t units.Time) {
	if n.protocol != nil {
		n.protocol.Start(n.now(t))
		n.learn()
	}
	n.turn(t)
}

// learn takes over the protocol's correction. It must follow every call that may change it. After a
// crash the old correction stays until the new process is synchronized.
func (n *Node) learn() {
	n.armed = false
	c := n.protocol.Correction()
	if c.Check() != nil {
		return
	}
	if c.State == clocksync.Free && n.correction.State != clocksync.Free && n.protocol.Counters().Updates == 0 {
		return
	}
	n.correction = c
}

// A liar is a protocol that can be made to tell others a wrong time, off by the given amount from
// now on.
type liar interface{ Lie(by units.Time) }

// pretend tells the protocol its current lie.
func (n *Node) pretend() {
	if l, ok := n.protocol.(liar); ok && n.lie > 0 {
		l.Lie(n.cfg.Lies[n.lie-1].By)
	}
}

// turn begins and ends the outages and lies that are due by t. A lie that begins reaches the
// process that runs after them.
func (n *Node) turn(t units.Time) {
	if n.lie < len(n.cfg.Lies) && n.cfg.Lies[n.lie].At <= t {
		for n.lie < len(n.cfg.Lies) && n.cfg.Lies[n.lie].At <= t {
			n.lie++
		}
		defer n.pretend()
	}
	for n.outage < len(n.cfg.Outages) {
		o := n.cfg.Outages[n.outage]
		switch {
		case !n.down && o.At <= t:
			n.down = true
			n.crash(t)
		case n.down && o.For > 0 && o.At+o.For <= t:
			n.down = false
			n.outage++
			n.restart(t)
		default:
			return
		}
	}
}

// crash removes the protocol. The correction continues in holdover.
func (n *Node) crash(t units.Time) {
	n.sample(t)
	if n.protocol == nil {
		return
	}
	n.report.Counters.Add(n.protocol.Counters())
	n.protocol, n.armed = nil, false
	n.correction = n.correction.Hold(n.clock.Hard(t))
	if n.cfg.Setup.Self == n.cfg.Setup.Reference { // the others continue at an unknown rate
		n.correction.Drift += 2 * n.cfg.Setup.Skew
	}
}

// restart starts a new protocol without state.
func (n *Node) restart(t units.Time) {
	n.sample(t)
	p, err := n.build()
	if err != nil || p == nil { // impossible: the same configuration was built before
		return
	}
	n.protocol = p
	n.pretend()
	p.Start(n.now(t))
	n.learn()
}

// Receive handles a message at true time t that arrived at true time at, not after t. Data is not
// kept. An error means that the message was rejected.
func (n *Node) Receive(t, at units.Time, from clocksync.Node, port uint16, data []byte) error {
	n.before(t)
	if n.protocol == nil {
		n.report.Rejected++
		return ErrDown
	}
	m := clocksync.Message{From: from, Port: port, Stamp: n.event.received.Received(n.clock.Hard(at)), Data: data}
	err := n.protocol.Receive(n.now(t), &m)
	if err != nil {
		n.report.Rejected++
	}
	n.learn()
	return err
}

// before takes the samples and begins or ends the faults that are due by t.
func (n *Node) before(t units.Time) {
	n.sample(t)
	n.turn(t)
}

// Transmit fills in the message that leaves at true time t, or returns false.
func (n *Node) Transmit(t units.Time, out *clocksync.Outgoing) bool {
	if n.protocol == nil {
		return false
	}
	now := n.now(t)
	if !n.protocol.Transmit(now, out) {
		return false
	}
	n.sample(t)
	if out.Event {
		n.protocol.Sent(now, out.ID, n.event.sent.Sent(now.Hard))
	}
	n.report.Packets++
	n.report.Wire += Size(out)
	n.learn()
	return true
}

// minFrame is the shortest Ethernet frame, with its check sequence (IEEE 802.3).
const minFrame units.Bytes = 64

// Size returns the size of a message on the wire.
func Size(out *clocksync.Outgoing) units.Bytes { return SizeOf(out.N) }

// SizeOf returns the size on the wire of a message of n bytes.
func SizeOf(n int) units.Bytes { return max(minFrame, wire.Overhead+units.Bytes(n)) }

// Control reports whether messages are served before data.
func (n *Node) Control() bool { return n.cfg.Control }

// Deadline returns the true time at which Advance must be called, or an earlier one; ok is false if
// nothing is due.
func (n *Node) Deadline() (t units.Time, ok bool) {
	t = units.Never
	if n.lie < len(n.cfg.Lies) {
		t = n.cfg.Lies[n.lie].At
	}
	if n.outage < len(n.cfg.Outages) {
		o := n.cfg.Outages[n.outage]
		switch {
		case !n.down:
			t = min(t, o.At)
		case o.For > 0:
			t = min(t, o.At+o.For)
		}
	}
	if n.protocol != nil {
		t = min(t, n.wakeTime())
	}
	return t, t != units.Never
}

// wakeTime returns the true time of the protocol's deadline, or an earlier one: the clock cannot
// predict its own wander. Advance asks again when it was too early.
func (n *Node) wakeTime() units.Time {
	if !n.armed {
		n.armed = true
		mono, ok := n.protocol.Deadline()
		switch {
		case !ok:
			n.wake = units.Never
		case mono != n.deadline || n.wake == units.Never:
			n.deadline, n.wake = mono, n.clock.When(mono)
		}
	}
	return n.wake
}

// Advance handles everything that is due by true time t.
func (n *Node) Advance(t units.Time) {
	n.before(t)
	if n.protocol == nil || n.wakeTime() > t {
		return
	}
	if now := n.now(t); now.Mono >= n.deadline {
		n.protocol.Advance(now)
		n.learn()
		return
	}
	n.wake = n.clock.When(n.deadline) // the prediction was too early
}

// Sent returns the error of the stamp of a packet that leaves at true time t: the synchronized time
// that the transport reads, minus t.
func (n *Node) Sent(t units.Time) units.Time {
	return n.correction.At(n.data.sent.Sent(n.clock.Hard(t))) - t
}

// Received returns the error of the stamp of a packet that arrives at true time t.
func (n *Node) Received(t units.Time) units.Time {
	return n.correction.At(n.data.received.Received(n.clock.Hard(t))) - t
}

// Measured is Received for a packet whose one-way delay is measured: with the noise of the lab.
func (n *Node) Measured(t units.Time) units.Time { return n.Received(t) + n.delay.Next() }

// sample takes the samples that are due by t.
func (n *Node) sample(t units.Time) {
	for at := n.due(); at <= t; at = n.due() {
		n.report.Samples = append(n.report.Samples, n.look(at))
		if at == n.next {
			n.next += n.cfg.Sample
		}
		for n.also < len(n.cfg.Also) && n.cfg.Also[n.also] <= at {
			n.also++
		}
	}
}

// due returns when the next sample is due.
func (n *Node) due() units.Time {
	if n.also < len(n.cfg.Also) && n.cfg.Sample > 0 {
		return min(n.next, n.cfg.Also[n.also])
	}
	return n.next
}

// look returns the sample at true time t. Without a bound, when the clock is free, Bound is 0.
func (n *Node) look(t units.Time) Sample {
	hard := n.clock.Hard(t)
	s := Sample{At: t, Error: n.correction.At(hard) - t, State: n.correction.State, Down: n.down}
	if s.State != clocksync.Free {
		s.Bound = n.correction.BoundAt(hard)
	}
	return s
}

// Correction returns the current correction of the hardware clock.
func (n *Node) Correction() clocksync.Correction { return n.correction }

// Report ends the node at true time t and returns its result.
func (n *Node) Report(t units.Time) Report {
	n.sample(t)
	r := n.report
	if n.protocol != nil {
		r.Counters.Add(n.protocol.Counters())
	}
	return r
}
