package sim

import (
	"fmt"

	"weft/fabric"
	"weft/timeline"
	"weft/transport"
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

// Options are what a run may do besides running. The zero value does none of it.
type Options struct {
	Names []string   // of the hosts, for errors; nil: they are numbered
	Limit units.Time // the run fails when lab time passes this; 0: never

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
	timers   timeline.ID // host h's entity is timers+h
	opts     Options

	out transport.Outgoing // the packet being asked for
	in  transport.Incoming // the packet being handed over

	events       int64
	end          units.Time // when the last host was done
	working      int        // hosts that are not done
	failure      error      // ends the run
	delay        Delay
	refused      int64 // packets that Receive returned an error for
	refusal      error // the first of these errors
	nextSample   units.Time
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
		delay: newDelay(), nextSample: units.Never, nextProgress: opts.ProgressEvery,
	}
	if opts.Sample != nil && opts.SampleEvery > 0 {
		s.nextSample = opts.SampleEvery
	}
	if s.opts.Limit == 0 {
		s.opts.Limit = units.Never
	}
	net, err := fabric.New(cfg, s.timeline, (*sink)(s))
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	s.net = net
	s.timers = s.timeline.Grow(len(hosts))
	for h := range hosts {
		s.hosts[h] = hostState{host: hosts[h], timer: units.Never, advanced: -1}
	}
	return s, nil
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

// QueueDelay returns how long the data packets that were delivered waited in switches.
func (s *Sim) QueueDelay() *Delay { return &s.delay }

// Refused returns how many packets hosts returned an error for, and the first of the errors.
func (s *Sim) Refused() (packets int64, first error) { return s.refused, s.refusal }

// name returns the name of a host for errors.
func (s *Sim) name(h int) string {
	if h < len(s.opts.Names) {
		return s.opts.Names[h]
	}
	return fmt.Sprintf("host %d", h)
}
