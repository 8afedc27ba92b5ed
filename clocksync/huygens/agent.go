package huygens

import (
	"math"
	"math/rand/v2"

	"weft/clocksync"
	"weft/units"
)

// Agent is the protocol of one node. It implements clocksync.Protocol.
type Agent struct {
	setup  clocksync.Setup
	cfg    Config
	random *rand.Rand
	noise  units.Time // standard deviation of a stamp, by jitter and quantization

	neighbours []neighbour
	of         []int32 // by node: index in neighbours, or -1
	fitter     fitter

	out       clocksync.Queue[letter] // messages other than probes
	probes    clocksync.Queue[int32]  // neighbours whose probe waits for the NIC
	nextProbe units.Time              // the earliest pairAt
	pending   pendingProbe
	nextID    uint32 // of the last message

	again   repeats
	arrived int // probes since the last report

	join       joining
	window     uint32     // the current window
	closeAt    units.Time // when the agent reports it, by the monotonic clock
	x0         units.Time // middle of the window reported last, by the hardware clock
	reported   uint32     // the last window that was reported
	reportedOK bool       // x0 and reported are valid

	coordinator *coordinator // nil: this node is not a coordinator
	heard       [2]uint32    // by coordinator: window of its last solution
	heardOK     [2]bool      // heard is valid
	applied     uint32       // window of the solution applied last
	appliedOK   bool         // applied is valid
	missed      int          // windows since the last solution

	track      track
	anchor     bool       // the cluster follows this node's clock
	lone       bool       // the cluster's time is not the reference's, which this node never knew
	yielded    bool       // it was the anchor until the reference came back
	adrift     units.Time // bound of the distance of the cluster's time from the reference's, at adriftAt
	adriftAt   units.Time // by the monotonic clock
	off        units.Time // bound of this node's line when it last followed the reference's time
	away       float64    // growth of off since then
	correction clocksync.Correction
	apart      units.Time // hardware clock minus monotonic clock
	epoch      uint8      // counts steps of the hardware clock, modulo 4: neighbours drop older stamps
	lie        units.Time // see Lie
	counters   clocksync.Counters
}

// letter is a queued message.
type letter struct {
	to  clocksync.Node
	n   int // length
	b   [clocksync.MaxMessage]byte
	now bool // a join or welcome: the time of departure is written when it leaves
}

// pendingProbe is a probe that has left and whose stamp is not known yet.
type pendingProbe struct {
	neighbour int32
	sequence  uint32
	index     uint8
	ok        bool
}

var _ clocksync.Protocol = (*Agent)(nil)

// New returns an agent, or the errors of Config.Check.
func New(s clocksync.Setup, cfg Config) (*Agent, error) {
	if err := cfg.Check(s); err != nil {
		return nil, err
	}
	a := &Agent{setup: s, cfg: cfg, of: make([]int32, s.Nodes), nextProbe: units.Never, closeAt: units.Never,
		noise:  units.Time(math.Round(math.Hypot(float64(s.Jitter), float64(s.Quantum)/math.Sqrt(12)))),
		random: rand.New(rand.NewPCG(s.Seed, 0x4855_5947_0000_0000|uint64(s.Self)))}
	for i := range a.of {
		a.of[i] = -1
	}
	mesh := Mesh(s.Nodes, cfg.Degree, s.Seed)
	for _, e := range mesh {
		n := neighbour{pairAt: units.Never, spacing: cfg.Spacing}
		switch s.Self {
		case e.Owner:
			n.node, n.owned = e.Peer, true
		case e.Peer:
			n.node = e.Owner
		default:
			continue
		}
		a.of[n.node] = int32(len(a.neighbours))
		a.neighbours = append(a.neighbours, n)
	}
	a.track.slewEnd, a.again.at = units.Never, units.Never
	if r := a.rank(s.Self); r >= 0 {
		a.coordinator = newCoordinator(s.Nodes, mesh, cfg.Sigma)
	}
	return a, nil
}

// rank returns the rank of a coordinator, from 0, or -1 for another node.
func (a *Agent) rank(n clocksync.Node) int {
	r := (int(n) - int(a.setup.Reference) + a.setup.Nodes) % a.setup.Nodes
	if r >= min(a.cfg.Coordinators, a.setup.Nodes) {
		return -1
	}
	return r
}

// coordinatorOf returns the coordinator of a rank.
func (a *Agent) coordinatorOf(rank int) clocksync.Node {
	return clocksync.Node((int(a.setup.Reference) + rank) % a.setup.Nodes)
}

// Start implements clocksync.Protocol.
func (a *Agent) Start(now clocksync.Now) {
	a.apart = now.Hard - now.Mono
	a.startJoining(now)
}

// Receive implements clocksync.Protocol.
func (a *Agent) Receive(now clocksync.Now, in *clocksync.Message) error {
	a.watch(now)
	err := a.receive(now, in)
	a.counters.Count(err, ErrForeign, ErrStale)
	return err
}

// receive handles a message by its kind.
func (a *Agent) receive(now clocksync.Now, in *clocksync.Message) error {
	if in.Port != clocksync.ProbePort || in.From < 0 || int(in.From) >= len(a.of) || in.From == a.setup.Self {
		return ErrForeign
	}
	k, err := peek(in.Data)
	if err != nil {
		return err
	}
	if in.Stamp >= maxTime || in.Stamp <= -maxTime {
		return ErrRange
	}
	switch k {
	case kindProbe:
		return a.onProbe(now, in)
	case kindJoin:
		return a.onJoin(now, in)
	case kindWelcome:
		return a.onWelcome(now, in)
	case kindReport:
		return a.onReport(now, in)
	case kindSolution:
		return a.onSolution(now, in)
	}
	return ErrMagic
}

// silence is the number of missing pairs after which a low sequence number means that the neighbour
// was restarted. A restart takes longer, since a node asks for the time first; and a probe that was
// in flight for that long is useless. Ours.
const silence = 8

// onProbe records the stamp of a probe and the stamps that it carries.
func (a *Agent) onProbe(now clocksync.Now, in *clocksync.Message) error {
	if a.of[in.From] < 0 {
		return ErrForeign
	}
	n := &a.neighbours[a.of[in.From]]
	var p probe
	if err := p.decode(in.Data); err != nil {
		return err
	}
	if n.received.begun {
		switch ahead := int32(p.sequence - n.received.last); {
		case ahead < -ringSize/2 && now.Mono-n.heard > silence*a.cfg.Window/units.Time(a.cfg.Pairs):
			n.forget() // the neighbour was restarted
		case ahead < -ringSize/2:
			return ErrStale
		case ahead > 0 && p.epoch != n.epoch:
			n.forget() // its clock was stepped
		case p.epoch != n.epoch:
			return ErrStale
		}
	}
	n.epoch = p.epoch
	if !n.received.note(p.sequence, p.index, in.Stamp) {
		return ErrStale
	}
	n.heard = now.Mono
	a.arrived++
	n.disperse(&p, &a.cfg)
	if n.owned && a.closeAt != units.Never {
		n.take(&p, &a.cfg, a.noise, &a.counters)
	}
	return nil
}

// Transmit implements clocksync.Protocol. Probes leave after other messages: those are few, and
// windows wait for them.
func (a *Agent) Transmit(now clocksync.Now, out *clocksync.Outgoing) bool {
	a.watch(now)
	a.nextID++
	*out = clocksync.Outgoing{Port: clocksync.ProbePort, ID: a.nextID}
	if l := a.out.Pop(); l != nil {
		if l.now {
			a.stampNow(now, l)
		}
		out.To, out.N = l.to, l.n
		copy(out.Data[:], l.b[:l.n])
	} else if i := a.probes.Pop(); i != nil {
		a.sendProbe(now, *i, out)
	} else {
		return false
	}
	a.counters.Sent++
	a.counters.SentBytes += int64(out.N)
	return true
}

// sendProbe writes the next probe to a neighbour and schedules the one after. Each pair leaves at a
// random time within its slot, a window divided by the number of pairs, so that pairs of different
// nodes do not stay in step.
func (a *Agent) sendProbe(now clocksync.Now, i int32, out *clocksync.Outgoing) {
	n := &a.neighbours[i]
	n.queued = false
	p := probe{sequence: n.sequence, epoch: a.epoch}
	if n.second {
		p.index = 1
	}
	var room [perProbe]reportedPair
	p.nsent = copy(p.sent[:], n.sent.recent(room[:0], int(p.index)*perProbe, perProbe))
	p.nrecv = copy(p.received[:], n.received.recent(room[:0], int(p.index)*perProbe, perProbe))
	for i := range perProbe {
		p.sent[i].at += a.lie
		p.received[i].at += a.lie
	}
	out.To, out.Event, out.N = n.node, true, p.encode(out.Data[:])
	a.pending = pendingProbe{neighbour: i, sequence: n.sequence, index: p.index, ok: true}
	if !n.second {
		n.second, n.pairAt = true, now.Mono+n.gap(n.sequence, &a.cfg)
	} else {
		n.second = false
		n.sequence++
		slot := a.cfg.Window / units.Time(a.cfg.Pairs)
		n.slot = max(n.slot+slot, now.Mono-slot)
		n.pairAt = max(now.Mono, n.slot+units.Time(a.random.Int64N(int64(slot-2*n.spacing)+1)))
	}
	a.nextProbe = min(a.nextProbe, n.pairAt)
}

// Sent implements clocksync.Protocol.
func (a *Agent) Sent(now clocksync.Now, id uint32, stamp units.Time) {
	a.watch(now)
	p := a.pending
	if !p.ok || id != a.nextID {
		return
	}
	a.pending = pendingProbe{}
	a.neighbours[p.neighbour].sent.note(p.sequence, p.index, stamp)
}

// post queues a message. If the queue is longer than a node can need, the message is dropped, as
// the network might do.
func (a *Agent) post(to clocksync.Node, now bool, write func(b []byte) int) {
	if a.out.Len() <= 4*a.setup.Nodes+64 {
		l := a.out.Push(letter{to: to, now: now})
		l.n = write(l.b[:])
	}
}

// Deadline implements clocksync.Protocol. It is the earliest timer: the next probe, the end of the
// window, the next question while joining, the end of a slew, a repetition, or the coordinator's
// solution.
func (a *Agent) Deadline() (units.Time, bool) {
	at := min(a.nextProbe, a.closeAt, a.join.at, a.track.slewEnd, a.again.at)
	if a.coordinator != nil {
		at = min(at, a.coordinator.solveAt)
	}
	return at, at != units.Never
}

// Advance implements clocksync.Protocol.
func (a *Agent) Advance(now clocksync.Now) {
	a.watch(now)
	if now.Mono >= a.join.at {
		a.advanceJoin(now)
	}
	if now.Mono >= a.nextProbe {
		a.queueProbes(now)
	}
	if now.Mono >= a.track.slewEnd {
		a.track.slewEnd = units.Never
		k := a.correction.Rebase(now.Hard)
		k.Rate, k.Slew = a.track.target.Rate, 0
		a.publish(k)
	}
	if now.Mono >= a.again.at {
		a.repeat(now)
	}
	if now.Mono >= a.closeAt {
		a.closeWindow(now)
	}
	if c := a.coordinator; c != nil && now.Mono >= c.solveAt {
		a.solve(now)
	}
}

// queueProbes queues the probes that are due and finds the time of the next one.
func (a *Agent) queueProbes(now clocksync.Now) {
	a.nextProbe = units.Never
	for i := range a.neighbours {
		n := &a.neighbours[i]
		if n.queued {
			continue
		}
		if now.Mono >= n.pairAt {
			n.queued = true
			a.probes.Push(int32(i))
			continue
		}
		a.nextProbe = min(a.nextProbe, n.pairAt)
	}
}

// Correction implements clocksync.Protocol.
func (a *Agent) Correction() clocksync.Correction { return a.correction }

// Lie falsifies everything that the node tells others of its clock by the same amount: stamps, and
// the edges that it computes. It keeps the right values itself. It is the fault of a falseticker.
func (a *Agent) Lie(by units.Time) { a.lie = by }

// Counters implements clocksync.Protocol.
func (a *Agent) Counters() clocksync.Counters { return a.counters }

// publish replaces the correction, unless the new one is invalid.
func (a *Agent) publish(k clocksync.Correction) { a.counters.Publish(&a.correction, k) }

// watch detects steps of the hardware clock by the monotonic clock, which has none. Synchronized
// time continues as if there had been no step, within StepAlarm, and measurements against the old
// clock are discarded.
func (a *Agent) watch(now clocksync.Now) {
	step := now.Hard - now.Mono - a.apart
	if a.cfg.StepAlarm == 0 || step <= a.cfg.StepAlarm && step >= -a.cfg.StepAlarm {
		return
	}
	a.apart += step
	a.track.step(step)
	a.correction.From += step
	a.correction.Offset -= step
	a.correction.Bound += a.cfg.StepAlarm
	if a.correction.State == clocksync.Locked && !a.anchor {
		a.correction.State = clocksync.Holdover
	}
	for i := range a.neighbours {
		a.neighbours[i].forget()
	}
	a.pending = pendingProbe{}
	a.reportedOK = false
	a.epoch = (a.epoch + 1) & 3
	a.counters.Resets++
}
