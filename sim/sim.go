package sim

import (
	"cmp"
	"fmt"
	"slices"

	"weft/eventqueue"
	"weft/fabric"
	"weft/results/stats"
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
	// Failed returns why the host has given up, if it has. The error names the host.
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

	// PeerDelay has every switch measure its links once per interval and add the delay of the link that a Sync came by as well: they
	// are peer-to-peer transparent clocks. The network is made for it (fabric.Config.Stations is PTP's event port). 0: they do not.
	PeerDelay units.Time
	Control   bool // what they send is of class 0

	From units.Time // QueueDelay counts packets that are delivered from here on

	// Watch is told of every event of the queue of WatchPort: see fabric.Observers.Watch.
	WatchPort int
	Watch     func(now units.Time, queued units.Bytes)

	// Tick is called every TickEvery from that instant on, before what happens at it.
	TickEvery units.Time
	Tick      func(now units.Time)

	// Steps is told of every step of coordinated congestion management in a partition, in order: see fabric.Observers.Follow.
	Steps func(partition int, s fabric.Step)

	// Sample is called with every port's queue that is not empty, every SampleEvery from that instant on.
	SampleEvery units.Time
	Sample      func(now units.Time, port int, queued units.Bytes)

	// Parts is the partition of each node, and Count how many there are: see fabric.Config.Partition. nil: one. Hosts of
	// different partitions are called at the same time if Each does that, and share nothing that is not made for it. The
	// results do not depend on Each.
	Parts []int32
	Count int

	// Each calls work(i) for i from 0 to n-1, in any order or at the same time, and returns when all calls have. nil: one
	// after the other.
	Each func(n int, work func(i int))

	// After is called after each stretch that the partitions have worked through, in a network in one piece every few thousand
	// events, while no host is being called.
	After func()

	// Progress is called about every ProgressEvery events.
	ProgressEvery int64
	Progress      func(now units.Time, events int64)
}

// Sim is one run. Not safe for concurrent use: one goroutine owns it.
type Sim struct {
	partitions []*partition
	nets       *fabric.Partitions
	net        *fabric.Network // of any partition: for what concerns all
	hosts      []hostState
	controls   []Controls // by host; nil: nobody can be asked for control alone
	actions    []Action   // that are left
	opts       Options

	bridges      *bridges   // nil: see Options.PeerDelay
	coordinated  bool       // switches read tags: see fabric.CCM
	failure      error      // ends the run
	nextLook     units.Time // the first of the next four
	nextTick     units.Time
	nextSample   units.Time
	nextStall    units.Time
	nextAction   units.Time
	moved        units.Bytes // progress of all hosts at the last look for a stall
	nextProgress int64
	started      bool
}

// partition is the run of a partition of the network and of its hosts.
type partition struct {
	sim    *Sim
	index  int
	queue  *eventqueue.Queue
	net    *fabric.Network
	timers eventqueue.ID // host h's entity is timers+h

	out transport.Outgoing       // the packet being asked for
	in  transport.Incoming       // the packet being handed over
	int [fabric.MaxHops]wire.Hop // what it carries

	events    int64
	working   int        // hosts that are not done
	end       units.Time // when the last of them was
	failure   error      // the first
	failed    units.Time // when that was
	delay     *stats.Dist
	refused   int64                      // packets that Receive returned an error for
	refusal   error                      // the first of these errors
	refusedBy map[int]transport.Refusals // by host, as soon as one refuses a packet
	posted    bool                       // others have posted something that it has not taken
	waiting   units.Time                 // when a packet that waits for a line to another partition starts, at the earliest
	_         [64]byte                   // what partitions write lies in different lines of the cache
}

// hostState is what the driver knows about a host.
type hostState struct {
	host      Host
	partition *partition
	timer     units.Time // when its entity is armed for, or units.Never
	advanced  units.Time // when Advance was called last
	spins     int32      // how often it was called at that same instant
	done      bool
	_         [2]int64 // a line of the cache each
}

// New builds a run of hosts over the network that cfg describes.
func New[H Host](cfg fabric.Config, hosts []H, opts Options) (*Sim, error) {
	if len(hosts) != cfg.Hosts {
		return nil, fmt.Errorf("sim: %d hosts for a network of %d", len(hosts), cfg.Hosts)
	}
	s := &Sim{
		hosts: make([]hostState, len(hosts)), opts: opts,
		nextSample: units.Never, nextStall: units.Never, nextTick: units.Never, nextAction: units.Never, moved: -1,
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
	if s.opts.Limit == 0 {
		s.opts.Limit = units.Never
	}
	s.coordinated = cfg.CCM != nil
	if err := s.split(cfg); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	if opts.Watch != nil {
		if opts.WatchPort < 0 || opts.WatchPort >= len(cfg.Ports) {
			return nil, fmt.Errorf("sim: watching port %d of %d", opts.WatchPort, len(cfg.Ports))
		}
		s.net.Observers.Watch(opts.WatchPort, opts.Watch)
	}
	for h := range hosts {
		p := s.partitions[0]
		if opts.Parts != nil {
			p = s.partitions[opts.Parts[h]]
		}
		p.working++
		s.hosts[h] = hostState{host: hosts[h], partition: p, timer: units.Never, advanced: -1}
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

// split builds the network and the partitions of the run.
func (s *Sim) split(cfg fabric.Config) error {
	count := max(1, s.opts.Count)
	queues, sinks := make([]*eventqueue.Queue, count), make([]fabric.Sink, count)
	for k := range count {
		p := &partition{sim: s, queue: eventqueue.New(0), delay: stats.NewDist(), waiting: units.Never}
		s.partitions = append(s.partitions, p)
		queues[k], sinks[k] = p.queue, p
	}
	var err error
	s.nets, err = fabric.Split(cfg, s.opts.Parts, queues, sinks)
	if err != nil {
		return err
	}
	for k, p := range s.partitions {
		p.net, p.index = s.nets.Network(k), k
		if s.opts.Steps != nil {
			p.net.Observers.Follow(func(step fabric.Step) { s.opts.Steps(k, step) })
		}
		p.timers = p.queue.Grow(cfg.Hosts)
	}
	s.net = s.nets.Network(0)
	return s.attachBridges(&cfg)
}

// rehearse puts the actions in order.
func (s *Sim) rehearse() error {
	for i, a := range s.actions {
		if a.At < 0 || a.Do == nil {
			return fmt.Errorf("sim: action %d at %d ps", i, a.At)
		}
	}
	slices.SortStableFunc(s.actions, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
	s.schedule()
	return nil
}

// schedule finds out when to look next.
func (s *Sim) schedule() {
	s.nextAction = units.Never
	if len(s.actions) > 0 {
		s.nextAction = s.actions[0].At
	}
	s.nextLook = min(s.nextSample, s.nextStall, s.nextTick, s.nextAction)
}

// End returns the instant at which the last host was done; while one is not, the instant reached.
func (s *Sim) End() units.Time {
	var last, end units.Time
	for _, p := range s.partitions {
		last, end = max(last, p.queue.Last()), max(end, p.end)
	}
	if s.working() > 0 {
		return last
	}
	return end
}

// working returns how many hosts are not done.
func (s *Sim) working() (hosts int) {
	for _, p := range s.partitions {
		hosts += p.working
	}
	return hosts
}

// Events returns how many events have been processed.
func (s *Sim) Events() (events int64) {
	for _, p := range s.partitions {
		events += p.events
	}
	return events
}

// Counters returns the totals of the network.
func (s *Sim) Counters() fabric.Counters { return s.net.Counters() }

// PortCounters returns the counters of a port, by its index in fabric.Config.
func (s *Sim) PortCounters(port int) fabric.PortCounters { return s.net.PortCounters(port) }

// Waiting says who waits for whom in the network, a line each: see fabric.Network.Waiting.
func (s *Sim) Waiting() []string { return s.net.Waiting(s.opts.Names) }

// QueueDelay returns how long the data packets that were delivered waited in switches.
func (s *Sim) QueueDelay() *stats.Dist {
	all := s.partitions[0].delay
	if len(s.partitions) > 1 {
		all = stats.NewDist()
		for _, p := range s.partitions {
			all.Merge(p.delay)
		}
	}
	return all
}

// Refused returns how many packets hosts returned an error for, and the first of the errors.
func (s *Sim) Refused() (packets int64, first error) {
	for _, p := range s.partitions {
		if packets += p.refused; first == nil {
			first = p.refusal
		}
	}
	return packets, first
}

// RefusedBy returns how many packets a host refused, by why.
func (s *Sim) RefusedBy(h int) transport.Refusals { return s.hosts[h].partition.refusedBy[h] }

// refuse counts that host h refused a packet.
func (p *partition) refuse(h int, err error) {
	if p.refused++; p.refused == 1 {
		p.refusal, p.refusedBy = err, map[int]transport.Refusals{}
	}
	counts := p.refusedBy[h]
	counts[transport.RefusalOf(err)]++
	p.refusedBy[h] = counts
}

// name returns the name of a host for errors.
func (s *Sim) name(h int) string {
	if h < len(s.opts.Names) {
		return s.opts.Names[h]
	}
	return fmt.Sprintf("host %d", h)
}
