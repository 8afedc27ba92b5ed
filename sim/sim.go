package sim

import (
	"cmp"
	"fmt"
	"slices"

	"weft/fabric"
	"weft/results/stats"
	"weft/timeline"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Host is what runs on a host of the network. After each call in, Transmit is asked once if the NIC is free,
// and Deadline is read.
type Host interface {
	// Start begins the host's work. It is called once, at lab time 0.
	Start(now units.Time)
	// Receive takes a packet that has arrived. The header is not kept. The placement is for drivers that move
	// payload; here payload is virtual.
	Receive(now units.Time, in *transport.Incoming) (transport.Placement, error)
	// Transmit fills in the packet that leaves the NIC now, or returns false when there is none.
	Transmit(now units.Time, out *transport.Outgoing) bool
	// Deadline returns when the host wants Advance; ok is false when it waits for packets only.
	Deadline() (at units.Time, ok bool)
	// Advance tells that a deadline has come.
	Advance(now units.Time)
	// Done tells whether the host has nothing left to do but to answer. Once true it stays true.
	Done() bool
	// Failed returns why the host has given up, if it has.
	Failed() error
}

// A Controls is a Host that can be asked for packets of class 0 alone: acknowledgements and notifications. They leave
// while its NIC is paused for data; hosts that cannot be asked are silent during a pause.
type Controls interface {
	// TransmitControl is Transmit for packets of class 0.
	TransmitControl(now units.Time, out *transport.Outgoing) bool
}

// A Resting is a Host that goes on by itself for ever, such as one that keeps a clock, and that tells when nothing else of it
// has an instant at which it goes on. When all hosts rest and none gets on, the run has stalled.
type Resting interface {
	Resting() bool
	// Progress is how far the host's work is; it grows while it gets on.
	Progress() (done, total units.Bytes)
}

// Action is something that happens to the network during a run: a link goes down, a line gets worse.
type Action struct {
	At units.Time // at least 0
	Do func(now units.Time, net *fabric.Network) error
}

// Options are what a run may do besides running. The zero value does none of it.
type Options struct {
	Names []string   // of the hosts, for errors; nil: they are numbered
	Limit units.Time // the run fails when lab time passes this; 0: never

	// Stall is how long packets may wait in a port that is paused, without a resume, before the run fails: they wait
	// for each other. It is looked at every so long. 0: never.
	Stall units.Time

	// Actions happen at their instants, in this order where those are equal, as long as hosts are not done. The error
	// of one ends the run.
	Actions []Action

	// Transparent has every switch correct PTP's event messages for the time that they waited in it.
	Transparent bool

	From units.Time // QueueDelay counts packets that are delivered from here on

	// Watch is told of every event of the queue of WatchPort: see fabric.Network.Watch.
	WatchPort int
	Watch     func(now units.Time, queued units.Bytes)

	// Tick is called every TickEvery from that instant on, before what happens at it.
	TickEvery units.Time
	Tick      func(now units.Time)

	// Sample is called with every port's queue that is not empty, every SampleEvery from that instant on.
	SampleEvery units.Time
	Sample      func(now units.Time, port int, queued units.Bytes)

	// Progress is called about every ProgressEvery events.
	ProgressEvery int64
	Progress      func(now units.Time, events int64)
}

// Sim is one run. Not safe for concurrent use: one goroutine owns it.
type Sim struct {
	timeline *timeline.Queue
	net      *fabric.Network
	hosts    []hostState
	controls []Controls  // by host; nil: nobody can be asked for control alone
	timers   timeline.ID // host h's entity is timers+h
	script   timeline.ID // armed for the next of the actions
	actions  []Action    // that are left
	opts     Options

	out transport.Outgoing       // the packet being asked for
	in  transport.Incoming       // the packet being handed over
	int [fabric.MaxHops]wire.Hop // what it carries

	events       int64
	end          units.Time // when the last host was done
	working      int        // hosts that are not done
	failure      error      // ends the run
	delay        *stats.Dist
	refused      int64      // packets that Receive returned an error for
	refusal      error      // the first of these errors
	nextLook     units.Time // the first of the next three
	nextTick     units.Time
	nextSample   units.Time
	nextStall    units.Time
	moved        units.Bytes // progress of all hosts at the last look for a stall
	nextProgress int64
	started      bool
}

// hostState is what the driver knows about a host.
type hostState struct {
	host     Host
	timer    units.Time // when its entity is armed for, or units.Never
	advanced units.Time // when Advance was called last
	spins    int32      // how often it was called at that same instant
	done     bool
}

// New builds a run of hosts over the network that cfg describes.
func New[H Host](cfg fabric.Config, hosts []H, opts Options) (*Sim, error) {
	if len(hosts) != cfg.Hosts {
		return nil, fmt.Errorf("sim: %d hosts for a network of %d", len(hosts), cfg.Hosts)
	}
	s := &Sim{
		timeline: timeline.New(0), hosts: make([]hostState, len(hosts)), working: len(hosts), opts: opts,
		delay: stats.NewDist(), moved: -1, nextSample: units.Never, nextStall: units.Never, nextTick: units.Never,
		nextProgress: opts.ProgressEvery, actions: slices.Clone(opts.Actions),
	}
	if opts.Sample != nil && opts.SampleEvery > 0 {
		s.nextSample = opts.SampleEvery
	}
	if opts.Stall > 0 {
		s.nextStall = opts.Stall
	}
	if opts.Tick != nil && opts.TickEvery > 0 {
		s.nextTick = opts.TickEvery
	}
	s.nextLook = min(s.nextSample, s.nextStall, s.nextTick)
	if s.opts.Limit == 0 {
		s.opts.Limit = units.Never
	}
	net, err := fabric.New(cfg, s.timeline, (*sink)(s))
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	s.net = net
	if opts.Watch != nil {
		if opts.WatchPort < 0 || opts.WatchPort >= len(cfg.Ports) {
			return nil, fmt.Errorf("sim: watching port %d of %d", opts.WatchPort, len(cfg.Ports))
		}
		net.Watch(opts.WatchPort, opts.Watch)
	}
	s.timers = s.timeline.Grow(len(hosts))
	for h := range hosts {
		s.hosts[h] = hostState{host: hosts[h], timer: units.Never, advanced: -1}
		if c, ok := any(hosts[h]).(Controls); ok {
			if s.controls == nil {
				s.controls = make([]Controls, len(hosts))
			}
			s.controls[h] = c
		}
	}
	if err := s.rehearse(); err != nil {
		return nil, err
	}
	return s, nil
}

// rehearse puts the actions in order and arms for the first.
func (s *Sim) rehearse() error {
	s.script = s.timeline.Grow(1)
	for i, a := range s.actions {
		if a.At < 0 || a.Do == nil {
			return fmt.Errorf("sim: action %d at %d ps", i, a.At)
		}
	}
	slices.SortStableFunc(s.actions, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
	s.armScript()
	return nil
}

func (s *Sim) armScript() {
	if len(s.actions) > 0 {
		s.timeline.Set(s.script, s.actions[0].At)
	}
}

// End returns the instant at which the last host was done; while one is not, the instant reached.
func (s *Sim) End() units.Time {
	if s.working > 0 {
		return s.timeline.Last()
	}
	return s.end
}

// Events returns how many events have been processed.
func (s *Sim) Events() int64 { return s.events }

// Counters returns the totals of the network.
func (s *Sim) Counters() fabric.Counters { return s.net.Counters() }

// PortCounters returns the counters of a port, by its index in fabric.Config.
func (s *Sim) PortCounters(port int) fabric.PortCounters { return s.net.PortCounters(port) }

// Waiting says who waits for whom in the network, a line each: see fabric.Network.Waiting.
func (s *Sim) Waiting() []string { return s.net.Waiting(s.opts.Names) }

// QueueDelay returns how long the data packets that were delivered waited in switches.
func (s *Sim) QueueDelay() *stats.Dist { return s.delay }

// Refused returns how many packets hosts returned an error for, and the first of the errors.
func (s *Sim) Refused() (packets int64, first error) { return s.refused, s.refusal }

// name returns the name of a host for errors.
func (s *Sim) name(h int) string {
	if h < len(s.opts.Names) {
		return s.opts.Names[h]
	}
	return fmt.Sprintf("host %d", h)
}
