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

// Host is what runs on a host of the network. After each call of another method, the engine calls
// Transmit once if the NIC is free, and then Deadline.
type Host interface {
	// Start begins the host's work. It is called once, at lab time 0.
	Start(now units.Time)
	// Receive handles a packet that has arrived. It must not keep the header. The Placement is for
	// drivers that move payload; here payload is virtual.
	Receive(now units.Time, in *transport.Incoming) (transport.Placement, error)
	// Transmit fills in the packet that leaves the NIC now. It returns false if there is none.
	Transmit(now units.Time, out *transport.Outgoing) bool
	// Deadline returns the instant at which the host wants Advance. ok is false if it waits only
	// for packets.
	Deadline() (at units.Time, ok bool)
	// Advance handles a deadline.
	Advance(now units.Time)
	// Done reports whether the host has nothing left to do but to answer. Once true it stays true.
	Done() bool
	// Failed returns why the host has given up, or nil. The error names the host.
	Failed() error
}

// A Lasting is a Host that is not done before an instant, whatever it has to send.
type Lasting interface {
	Until() units.Time
}

// Controls is a Host that can send only packets of class 0: acknowledgements and notifications.
// These leave while its NIC is paused for data. Other hosts are silent during a pause.
type Controls interface {
	// TransmitControl is Transmit for packets of class 0.
	TransmitControl(now units.Time, out *transport.Outgoing) bool
}

// A Resting is a Host that never stops acting by itself, for instance because it keeps a clock, and
// that reports when nothing else of it is scheduled. If all hosts rest and none makes progress, the
// run has stalled.
type Resting interface {
	// Resting reports whether nothing but such background activity of the host is scheduled.
	Resting() bool
	// Progress returns how much of the host's work is done; done grows while the host makes
	// progress.
	Progress() (done, total units.Bytes)
}

// Prefetching is a Host that asks the processor ahead for the memory that calls of it touch,
// because other hosts use the caches in between.
type Prefetching interface {
	// Prefetch asks for the host itself in step 0, and in steps 1 and 2 for what the memory points
	// to that was asked for in the step before. The engine makes each step of all hosts of a
	// partition before the next.
	Prefetch(step int)
}

// Action is a change of the network during a run: a link goes down, or gets worse.
type Action struct {
	At units.Time // at least 0
	Do func(now units.Time, net *fabric.Network) error
}

// Options are the optional parts of a run. The zero value has none of them.
type Options struct {
	Names []string   // of the hosts, for errors; nil: they are numbered
	Limit units.Time // the run fails when lab time passes this; 0: no limit

	// Stall is how long packets may wait in a port that is paused before the run fails: without a
	// resume for that long, ports wait for each other. The check runs at this interval. 0: never.
	Stall units.Time

	// Actions are made at their instants, in this order if those are equal, while hosts are not
	// done. An error of one ends the run.
	Actions []Action

	// Transparent makes every switch correct PTP's event messages for the time that they waited in
	// it.
	Transparent bool

	// PeerDelay makes every switch a peer-to-peer transparent clock: it measures its links once per
	// interval, and adds the delay of the link by which a Sync arrived. fabric.Config.Stations must
	// be PTP's event port. 0: off.
	PeerDelay units.Time
	Control   bool // these messages are of class 0

	From units.Time // QueueDelay has packets that are delivered from here on

	// Watch is called for every event of the queue of WatchPort: see fabric.Observers.Watch.
	WatchPort int
	Watch     func(now units.Time, queued units.Bytes)

	// Tick is called every TickEvery, first at TickEvery, before the events of that instant.
	TickEvery units.Time
	Tick      func(now units.Time)

	// Steps is called for every step of CCM in a partition, in order: see fabric.Observers.Follow.
	Steps func(partition int, s fabric.Step)

	// Sample is called with every queue that is not empty, every SampleEvery, first at SampleEvery.
	SampleEvery units.Time
	Sample      func(now units.Time, port int, queued units.Bytes)

	// Frame is called first at FrameAt and then at the instants that it returns, after the events
	// before that instant. It may look at the network and at hosts.
	FrameAt units.Time
	Frame   func(now units.Time) (next units.Time)

	// Parts is the partition of each node, and Count the number of partitions: see
	// fabric.Config.Partition. nil: one. Hosts of different partitions are called concurrently if
	// Each does so; they must not share anything that is not made for it. The results do not depend
	// on Each.
	Parts []int32
	Count int

	// Each calls work(i) for i from 0 to n-1, in any order or concurrently, and returns when all
	// calls have returned. nil: one after the other.
	Each func(n int, work func(i int))

	// Memo has the order of events follow from the beginning of the present step of the workload,
	// and steps skipped that were executed before: see memo.go. Hosts must be Stepping. nil: there
	// are no steps. Results do not depend on Memo.Off.
	Memo *Memo

	// After is called while no host is being called: after each stretch of time that the partitions
	// have worked through, and in a network in one piece every few thousand events.
	After func()

	// Progress is called about every ProgressEvery events.
	ProgressEvery int64
	Progress      func(now units.Time, events int64)
}

// Sim is one run. It is not safe for concurrent use: one goroutine owns it.
type Sim struct {
	partitions []*partition
	nets       *fabric.Partitions // the partitions of the network
	net        *fabric.Network    // of partition 0, for what concerns the whole network
	hosts      []hostState
	controls   []Controls // by host; nil: no host is a Controls
	actions    []Action   // to come, in order
	opts       Options

	steps        *steps     // nil without Options.Memo
	bridges      *bridges   // nil without Options.PeerDelay
	coordinated  bool       // switches read coordination tags: see fabric.CCM
	failure      error      // ends the run
	nextLook     units.Time // minimum of the instants that follow
	nextTick     units.Time
	nextSample   units.Time
	nextFrame    units.Time
	nextStall    units.Time
	nextAction   units.Time
	nextRecord   units.Time  // see steps.record
	moved        units.Bytes // progress of all hosts at the last check for a stall; -1: they did not all rest
	nextProgress int64       // number of events at which Options.Progress is called next
	started      bool
}

// partition is the run of one partition of the network and of its hosts.
type partition struct {
	sim    *Sim
	index  int
	queue  *eventqueue.Queue
	net    *fabric.Network
	timers eventqueue.ID // the entity of its first host; those of the others follow

	out transport.Outgoing       // storage of the packet that a host fills in
	in  transport.Incoming       // storage of the packet that is handed over
	int [fabric.MaxHops]wire.Hop // storage of its telemetry

	events    int64
	working   int                        // number of hosts that are not done
	end       units.Time                 // when the last of them was done
	failure   error                      // the first failure
	failed    units.Time                 // when it happened
	delay     *stats.Dist                // see Sim.QueueDelay
	marked    stats.Mark                 // of delay: see steps.measured
	refused   int64                      // number of packets for which Receive returned an error
	refusal   error                      // the first of these errors
	refusedBy map[int]transport.Refusals // by host; nil until a host refuses a packet
	posted    bool                       // others have posted something that this partition has not taken
	waiting   units.Time                 // earliest departure of a packet that waits for a remote link
	own       []int32                    // its hosts
	fired     int64                      // events of the last stretch of time
	_         [64]byte                   // partitions write to different cache lines
}

// hostState is the engine's state of a host.
type hostState struct {
	host      Host
	partition *partition
	waiting
	advanced units.Time // when Advance was last called
	spins    int32      // number of calls of Advance at that instant
	entity   eventqueue.ID
	_        int64 // one cache line each
}

// waiting is what a host waits for.
type waiting struct {
	timer units.Time // instant for which its entity is armed, or units.Never
	done  bool
}

// New builds a run of hosts over the network that cfg describes. hosts[h] is host h of cfg.
func New[H Host](cfg fabric.Config, hosts []H, opts Options) (*Sim, error) {
	if len(hosts) != cfg.Hosts {
		return nil, fmt.Errorf("sim: %d hosts for a network of %d", len(hosts), cfg.Hosts)
	}
	s := &Sim{
		hosts: make([]hostState, len(hosts)), opts: opts,
		nextSample: units.Never, nextStall: units.Never, nextTick: units.Never, nextAction: units.Never, moved: -1,
		nextFrame: units.Never, nextRecord: units.Never, nextProgress: opts.ProgressEvery,
		actions: slices.Clone(opts.Actions),
	}
	if opts.Sample != nil && opts.SampleEvery > 0 {
		s.nextSample = opts.SampleEvery
	}
	if opts.Frame != nil {
		s.nextFrame = opts.FrameAt
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
		s.hosts[h] = hostState{host: hosts[h], partition: p, waiting: waiting{timer: units.Never}, advanced: -1}
		p.own = append(p.own, int32(h))
		if c, ok := any(hosts[h]).(Controls); ok {
			if s.controls == nil {
				s.controls = make([]Controls, len(hosts))
			}
			s.controls[h] = c
		}
	}
	s.addTimers()
	if err := s.sortActions(); err != nil {
		return nil, err
	}
	return s, s.addSteps()
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
	}
	s.net = s.nets.Network(0)
	return s.attachBridges(&cfg)
}

// addTimers gives each host an entity in the event queue of its partition.
func (s *Sim) addTimers() {
	for _, p := range s.partitions {
		keys := make([]int32, len(p.own))
		for i, h := range p.own {
			keys[i] = int32(s.nets.Entities()) + h
		}
		p.timers = p.queue.GrowAs(keys)
		for i, h := range p.own {
			s.hosts[h].entity = p.timers + eventqueue.ID(i)
		}
	}
}

// sortActions checks the actions and puts them in order.
func (s *Sim) sortActions() error {
	for i, a := range s.actions {
		if a.At < 0 || a.Do == nil {
			return fmt.Errorf("sim: action %d at %d ps; expected a function and an instant of at least 0", i, a.At)
		}
	}
	slices.SortStableFunc(s.actions, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
	s.schedule()
	return nil
}

// schedule computes the instant of the next look.
func (s *Sim) schedule() {
	s.nextAction = units.Never
	if len(s.actions) > 0 {
		s.nextAction = s.actions[0].At
	}
	s.nextLook = min(s.nextSample, s.nextFrame, s.nextStall, s.nextTick, s.nextAction, s.nextRecord)
}

// End returns the instant at which the last host was done, or the instant reached while a host is
// not done.
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

// working returns the number of hosts that are not done.
func (s *Sim) working() (hosts int) {
	for _, p := range s.partitions {
		hosts += p.working
	}
	return hosts
}

// Events returns the number of events processed.
func (s *Sim) Events() (events int64) {
	for _, p := range s.partitions {
		events += p.events
	}
	return events
}

// Counters returns the totals of the network.
func (s *Sim) Counters() fabric.Counters { return s.net.Counters() }

// PortCounters returns the counters of a port, by index in fabric.Config.Ports.
func (s *Sim) PortCounters(port int) fabric.PortCounters { return s.net.PortCounters(port) }

// Survey calls f for every port that did something: see fabric.Network.Survey. It may be called by
// Options.Frame.
func (s *Sim) Survey(now units.Time, sent []units.Bytes, f func(port int, p fabric.PortState)) {
	s.net.Survey(now, sent, f)
}

// Waiting describes what keeps packets in the network from moving: see fabric.Network.Waiting.
func (s *Sim) Waiting() []string { return s.net.Waiting(s.opts.Names) }

// QueueDelay returns the distribution of the time that delivered data packets waited in switches,
// in ps.
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

// Refused returns the number of packets for which hosts returned an error, and the first error.
func (s *Sim) Refused() (packets int64, first error) {
	for _, p := range s.partitions {
		if packets += p.refused; first == nil {
			first = p.refusal
		}
	}
	return packets, first
}

// RefusedBy returns the number of packets that a host refused, by reason.
func (s *Sim) RefusedBy(h int) transport.Refusals { return s.hosts[h].partition.refusedBy[h] }

// refuse counts a packet that host h refused.
func (p *partition) refuse(h int, err error) {
	if p.refused++; p.refused == 1 {
		p.refusal, p.refusedBy = err, map[int]transport.Refusals{}
	}
	counts := p.refusedBy[h]
	counts[transport.RefusalOf(err)]++
	p.refusedBy[h] = counts
}

// name returns the name of a host, for errors.
func (s *Sim) name(h int) string {
	if h < len(s.opts.Names) {
		return s.opts.Names[h]
	}
	return fmt.Sprintf("host %d", h)
}
