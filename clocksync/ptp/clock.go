package ptp

import (
	"errors"
	"math/rand/v2"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// Clock is an ordinary or a boundary clock. It implements clocksync.Protocol.
//
// Its parts: ports run the best master clock algorithm and send as masters; parent is the master
// that the algorithm chose; slave measures offset and delay to it; servo turns offsets into a rate;
// bound estimates the error. Everything else is the correction that these publish, and a queue of
// messages.
type Clock struct {
	setup  clocksync.Setup
	cfg    Config
	id     ClockIdentity
	random *rand.Rand

	ports  []port
	peers  []peer
	peerOf []int32 // index in peers of each node, -1 if it is no neighbour
	link   *peer   // the bridge at the other end of the link, nil if there is none
	parent parent

	out     clocksync.Queue[job]
	most    int    // jobs in out beyond which new ones are lost, as in the network
	pending job    // the event message that left last, until its stamp is known
	nextID  uint32 // Outgoing.ID of the message that left last

	correction    clocksync.Correction
	servo         servo.Servo
	bound         servo.Bound // of the offsets
	untraced      bool        // the servo has followed a master that does not know the time
	slave         slave
	hardMinusMono units.Time // hardware clock minus monotonic clock, when last compared
	watchAt       units.Time // when watch must run next, by the monotonic clock
	lie           units.Time // error in what it tells others; see Lie
	counters      clocksync.Counters
}

// job is a message to send.
type job struct {
	peer    *peer // its receiver
	message Message
	owed    int64 // correction that the follow-up of the message must carry
}

// parent is the master that the clock follows.
type parent struct {
	ok     bool         // there is one
	source PortIdentity // the port that sends its messages
	peer   *peer
	port   *port   // the port of this clock that it is behind
	set    DataSet // what it announces
}

// Errors of Receive. Each has its counter of refused messages; ErrRange and ErrPort share
// Malformed.
var (
	ErrForeign = errors.New("ptp: message from a node, domain or clock that may not send it")
	ErrStale   = errors.New("ptp: message comes twice, out of order, or answers nothing that was asked")
	ErrRange   = errors.New("ptp: field out of range")
	ErrPort    = errors.New("ptp: message at the wrong port")
)

var _ clocksync.Protocol = (*Clock)(nil)

// New returns a clock that has not started. It returns an error if the configuration is invalid.
func New(s clocksync.Setup, cfg Config) (*Clock, error) {
	if err := cfg.Check(s); err != nil {
		return nil, err
	}
	sv, err := cfg.newServo()
	if err != nil {
		return nil, err
	}
	c := &Clock{
		setup: s, cfg: cfg, id: IdentityOf(s.Self), servo: sv,
		random: rand.New(rand.NewPCG(s.Seed, 0x5054_5000_0000_0000|uint64(s.Self))),
		peerOf: make([]int32, s.Nodes),
	}
	c.cfg.DataSet.Grandmaster, c.cfg.DataSet.Steps = c.id, 0
	if cfg.SlaveOnly {
		c.cfg.DataSet.Class = 255
	}
	for i := range c.peerOf {
		c.peerOf[i] = -1
	}
	total := 0
	for _, p := range cfg.Ports {
		total += len(p)
	}
	c.peers = make([]peer, 0, total)
	c.ports = make([]port, len(cfg.Ports))
	for i, nodes := range cfg.Ports {
		first := len(c.peers)
		for _, n := range nodes {
			f, err := servo.NewFilter(cfg.Filter, cfg.FilterSize)
			if err != nil {
				return nil, err
			}
			c.peerOf[n] = int32(len(c.peers))
			c.peers = append(c.peers, peer{node: n, port: i, delay: f})
		}
		c.ports[i] = newPort(PortIdentity{Clock: c.id, Port: uint16(i + 1)}, c.peers[first:])
	}
	if cfg.Bridge != 0 && len(c.ports) > 0 {
		f, err := servo.NewFilter(cfg.Filter, cfg.FilterSize)
		if err != nil {
			return nil, err
		}
		c.link = &peer{node: cfg.Bridge, delay: f}
	}
	c.most = 8*total + 16
	return c, nil
}

// Start implements clocksync.Protocol. Every port begins in Listening.
func (c *Clock) Start(now clocksync.Now) {
	c.hardMinusMono = now.Hard - now.Mono
	for i := range c.ports {
		c.listen(now, &c.ports[i])
	}
	c.eachMeasured(func(p *peer) { p.requestAt = now.Mono + c.randomDelay(c.cfg.Interval) })
	c.decideStates(now)
}

// eachMeasured calls f for every peer whose link the peer delay mechanism measures: the bridge, or
// all neighbours. With the end-to-end mechanism there are none.
func (c *Clock) eachMeasured(f func(*peer)) {
	switch {
	case !c.cfg.PeerDelay:
	case c.link != nil:
		f(c.link)
	default:
		for i := range c.peers {
			f(&c.peers[i])
		}
	}
}

// randomDelay returns a random time from 1 ps to interval, so that clocks that start together do
// not send together.
func (c *Clock) randomDelay(interval units.Time) units.Time {
	return units.Time(c.random.Int64N(int64(interval))) + 1
}

// Receive implements clocksync.Protocol. It returns one of the errors of this package if it refuses
// the message, and counts it.
func (c *Clock) Receive(now clocksync.Now, in *clocksync.Message) error {
	c.watch(now)
	err := c.receive(now, in)
	c.counters.Count(err, ErrForeign, ErrStale)
	return err
}

// receive decodes a message, checks that it may come from its sender, and dispatches it by type.
func (c *Clock) receive(now clocksync.Now, in *clocksync.Message) error {
	var m Message
	if err := m.Decode(in.Data); err != nil {
		return err
	}
	if event := in.Port == clocksync.EventPort; event != m.Type.Event() || !event && in.Port != clocksync.GeneralPort {
		return ErrPort
	}
	from := c.sender(in.From, &m)
	if from == nil {
		return ErrForeign
	}
	if _, ok := m.corrected(); !ok || !validInterval(m.LogInterval) {
		return ErrRange
	}
	switch m.Type {
	case Announce:
		return c.onAnnounce(now, from, &m)
	case Sync:
		return c.onSync(now, from, &m, in.Stamp)
	case FollowUp:
		return c.onFollowUp(now, from, &m)
	case DelayReq:
		return c.onDelayReq(now, from, &m, in.Stamp)
	case DelayResp:
		return c.onDelayResp(now, from, &m)
	case PDelayReq:
		return c.onPeerRequest(now, from, &m, in.Stamp)
	case PDelayResp:
		return c.onPeerResponse(now, from, &m, in.Stamp)
	default:
		return c.onPeerFollowUp(now, from, &m)
	}
}

// sender returns the peer that sent a message, or nil if the sender may not send it. A bridge
// belongs to no domain, but answers in the domain of the request.
func (c *Clock) sender(from clocksync.Node, m *Message) *peer {
	switch {
	case m.Source.Clock == c.id:
	case c.link != nil && from == c.link.node:
		if m.Type == PDelayReq || (m.Type == PDelayResp || m.Type == PDelayRespFollowUp) && m.Domain == c.cfg.Domain {
			return c.link
		}
	case from >= 0 && int(from) < len(c.peerOf) && c.peerOf[from] >= 0 && m.Domain == c.cfg.Domain:
		return &c.peers[c.peerOf[from]]
	}
	return nil
}

// Transmit implements clocksync.Protocol. It takes the next message from the queue. An event
// message is kept as pending until Sent tells its stamp.
func (c *Clock) Transmit(now clocksync.Now, out *clocksync.Outgoing) bool {
	c.watch(now)
	j := c.out.Pop()
	if j == nil {
		return false
	}
	c.nextID++
	m := &j.message
	*out = clocksync.Outgoing{To: j.peer.node, Port: clocksync.GeneralPort, ID: c.nextID, Event: m.Type.Event()}
	if out.Event {
		out.Port = clocksync.EventPort
		c.pending = *j
	}
	out.N = m.Encode(out.Data[:])
	if c.cfg.PeerDelay && m.Type == Sync {
		out.N = pad(out.Data[:], out.N)
	}
	c.counters.Sent++
	c.counters.SentBytes += int64(out.N)
	return true
}

// Sent implements clocksync.Protocol. The stamp becomes t1 or t3 of a measurement, or leaves in the
// follow-up message.
func (c *Clock) Sent(now clocksync.Now, id uint32, stamp units.Time) {
	c.watch(now)
	j := c.pending
	if j.peer == nil || id != c.nextID {
		return
	}
	c.pending = job{}
	at := c.correction.At(stamp)
	m := Message{Domain: j.message.Domain, Source: j.message.Source, Sequence: j.message.Sequence}
	switch j.message.Type {
	case Sync:
		m.Type, m.LogInterval = FollowUp, logInterval(c.cfg.Interval)
		at += c.lie
	case DelayReq:
		c.slave.requested(m.Sequence, at)
		return
	case PDelayReq:
		j.peer.exchange.t1, j.peer.exchange.sent = at, true
		return
	case PDelayResp:
		m.Type, m.LogInterval, m.Requesting = PDelayRespFollowUp, noInterval, j.message.Requesting
	}
	var rest int64
	m.Timestamp, rest = stampOf(at)
	m.Correction = rest + j.owed
	c.send(j.peer, m)
}

// send queues a message. If the queue is full the message is lost, as it could be in the network.
func (c *Clock) send(to *peer, m Message) { c.sendOwing(to, m, 0) }

// sendOwing queues an event message whose follow-up carries the correction owed, in the units of
// the correctionField. A message to a bridge keeps its domain: the bridge belongs to none.
func (c *Clock) sendOwing(to *peer, m Message, owed int64) {
	if to != c.link {
		m.Domain = c.cfg.Domain
	}
	m.Flags |= FlagUnicast
	if c.out.Len() < c.most {
		c.out.Push(job{peer: to, message: m, owed: owed})
	}
}

// Deadline implements clocksync.Protocol. It is the earliest timer of ports, peers and slave.
func (c *Clock) Deadline() (units.Time, bool) {
	at := min(c.slave.deadline(), c.watchAt)
	for i := range c.ports {
		at = min(at, c.ports[i].deadline(c.announceWait()))
	}
	c.eachMeasured(func(p *peer) { at = min(at, p.requestAt) })
	return at, at != units.Never
}

// Advance implements clocksync.Protocol. It runs the timers that are due.
func (c *Clock) Advance(now clocksync.Now) {
	c.watch(now)
	for i := range c.ports {
		c.advancePort(now, &c.ports[i])
	}
	c.eachMeasured(func(p *peer) { c.advancePeer(now, p) })
	c.advanceSlave(now)
}

// Correction implements clocksync.Protocol.
func (c *Clock) Correction() clocksync.Correction { return c.correction }

// Counters implements clocksync.Protocol.
func (c *Clock) Counters() clocksync.Counters { return c.counters }

// Lie makes the clock a falseticker, for experiments: as a master it sends others a time that is
// wrong by the given amount, and keeps the right one for itself. 0 ends the lie.
func (c *Clock) Lie(by units.Time) { c.lie = by }

// watch detects steps of the hardware clock by comparing it with the monotonic clock. One
// oscillator drives both, so any change of their difference is a step. The correction is moved by
// the step, so that synchronized time continues as if there had been none, to within StepAlarm, the
// accuracy of the comparison. Stamps and measurements from before the step are discarded.
func (c *Clock) watch(now clocksync.Now) {
	c.watchAt = units.Never
	if c.cfg.StepAlarm == 0 {
		return
	}
	c.watchAt = now.Mono + max(1, c.cfg.Interval/watchesPerInterval)
	step := now.Hard - now.Mono - c.hardMinusMono
	if step <= c.cfg.StepAlarm && step >= -c.cfg.StepAlarm {
		return
	}
	c.hardMinusMono += step
	k := &c.correction
	k.From += step
	k.Offset -= step
	k.Bound += c.cfg.StepAlarm
	if k.State == clocksync.Locked && c.parent.ok {
		k.State = clocksync.Holdover
	}
	c.forget()
}

// watchesPerInterval is the least number of times per sync interval that a clock checks itself for
// a step. Without it a clock could stamp with a stepped clock for a whole interval between two
// messages.
const watchesPerInterval = 8

// forget discards all measurements, but keeps the rate.
func (c *Clock) forget() {
	c.abandon()
	c.servo.Reset()
	c.counters.Resets++
}

// abandon discards the measurements in progress.
func (c *Clock) abandon() {
	c.slave.flush()
	c.eachMeasured(func(p *peer) { p.exchange = exchange{} })
	c.pending = job{}
}
