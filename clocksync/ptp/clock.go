package ptp

import (
	"errors"
	"math/rand/v2"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// Clock is an ordinary or a boundary clock. It is a clocksync.Protocol.
type Clock struct {
	setup  clocksync.Setup
	cfg    Config
	id     ClockIdentity
	random *rand.Rand

	ports  []port
	peers  []peer
	of     []int32 // by node: index in peers, or -1
	link   *peer   // the bridge at the other end of the link; nil: there is none
	parent parent

	out     queue
	pending job    // event message that left last, whose stamp has not been told
	nextID  uint32 // of messages

	correction clocksync.Correction
	servo      servo.Servo
	bound      servo.Bound
	adrift     bool // what the servo knows is of a master that does not know the time
	slave      slave
	apart      units.Time // hardware clock minus monotonic clock
	lookAt     units.Time // when that is looked at next, by the monotonic clock, should nothing happen before
	lie        units.Time // see Lie
	counters   clocksync.Counters
}

// parent is the master that the clock follows.
type parent struct {
	ok     bool
	source PortIdentity
	peer   *peer
	port   *port
	set    DataSet
}

// Errors of Receive, one for each of the counters of refused messages.
var (
	ErrForeign = errors.New("ptp: message from a node, domain or clock that may not send it")
	ErrStale   = errors.New("ptp: message comes twice, out of order, or answers nothing that was asked")
	ErrRange   = errors.New("ptp: field out of range")
	ErrPort    = errors.New("ptp: message at the wrong port")
)

var _ clocksync.Protocol = (*Clock)(nil)

// New returns a clock. The error says what is wrong with the configuration.
func New(s clocksync.Setup, cfg Config) (*Clock, error) {
	if err := cfg.Check(s); err != nil {
		return nil, err
	}
	sv, err := cfg.newServo(s)
	if err != nil {
		return nil, err
	}
	c := &Clock{
		setup: s, cfg: cfg, id: IdentityOf(s.Self), servo: sv,
		random: rand.New(rand.NewPCG(s.Seed, 0x5054_5000_0000_0000|uint64(s.Self))),
		of:     make([]int32, s.Nodes),
	}
	c.cfg.DataSet.Grandmaster, c.cfg.DataSet.Steps = c.id, 0
	if cfg.SlaveOnly {
		c.cfg.DataSet.Class = 255
	}
	for i := range c.of {
		c.of[i] = -1
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
			c.of[n] = int32(len(c.peers))
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
	c.out.limit = 8*total + 16
	return c, nil
}

// Start implements clocksync.Protocol.
func (c *Clock) Start(now clocksync.Now) {
	c.apart = now.Hard - now.Mono
	for i := range c.ports {
		c.listen(now, &c.ports[i])
	}
	c.links(func(p *peer) { p.requestAt = now.Mono + c.spread(c.cfg.DelayInterval) })
	c.decideStates(now)
}

// links calls f for everybody the way to whom is measured by the peer delay mechanism.
func (c *Clock) links(f func(*peer)) {
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

// spread returns an instant within an interval, so that clocks that start together do not speak together.
func (c *Clock) spread(interval units.Time) units.Time {
	return units.Time(c.random.Int64N(int64(interval))) + 1
}

// Receive implements clocksync.Protocol.
func (c *Clock) Receive(now clocksync.Now, in *clocksync.Message) error {
	c.watch(now)
	err := c.receive(now, in)
	switch {
	case err == nil:
		c.counters.Received++
	case errors.Is(err, ErrForeign):
		c.counters.Foreign++
	case errors.Is(err, ErrStale):
		c.counters.Stale++
	default:
		c.counters.Malformed++
	}
	return err
}

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
	if _, ok := m.corrected(); !ok || !soundInterval(m.LogInterval) {
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

// sender returns who sent a message; nil: it is nobody who may. A bridge is in all domains, but answers in that of who asks.
func (c *Clock) sender(from clocksync.Node, m *Message) *peer {
	switch {
	case m.Source.Clock == c.id:
	case c.link != nil && from == c.link.node:
		if m.Type == PDelayReq || (m.Type == PDelayResp || m.Type == PDelayRespFollowUp) && m.Domain == c.cfg.Domain {
			return c.link
		}
	case from >= 0 && int(from) < len(c.of) && c.of[from] >= 0 && m.Domain == c.cfg.Domain:
		return &c.peers[c.of[from]]
	}
	return nil
}

// Transmit implements clocksync.Protocol.
func (c *Clock) Transmit(now clocksync.Now, out *clocksync.Outgoing) bool {
	c.watch(now)
	j, ok := c.out.pop()
	if !ok {
		return false
	}
	c.nextID++
	m := &j.message
	*out = clocksync.Outgoing{To: j.peer.node, Port: clocksync.GeneralPort, ID: c.nextID, Event: m.Type.Event()}
	if out.Event {
		out.Port = clocksync.EventPort
		c.pending = j
	}
	out.N = m.Encode(out.Data[:])
	if c.cfg.PeerDelay && m.Type == Sync {
		out.N = pad(out.Data[:], out.N)
	}
	c.counters.Sent++
	c.counters.SentBytes += int64(out.N)
	return true
}

// Sent implements clocksync.Protocol.
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
		m.Type, m.LogInterval = FollowUp, logInterval(c.cfg.SyncInterval)
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

// send queues a message; with a full queue it is lost, as it could be on the way.
func (c *Clock) send(to *peer, m Message) { c.sendOwing(to, m, 0) }

// sendOwing is send for an event message whose Follow_Up has to carry a correction.
func (c *Clock) sendOwing(to *peer, m Message, owed int64) {
	if to != c.link {
		m.Domain = c.cfg.Domain
	}
	m.Flags |= FlagUnicast
	c.out.push(job{peer: to, message: m, owed: owed})
}

// Deadline implements clocksync.Protocol.
func (c *Clock) Deadline() (units.Time, bool) {
	at := min(c.slave.deadline(), c.lookAt)
	for i := range c.ports {
		at = min(at, c.ports[i].deadline(c.announceWait()))
	}
	c.links(func(p *peer) { at = min(at, p.requestAt) })
	return at, at != units.Never
}

// Advance implements clocksync.Protocol.
func (c *Clock) Advance(now clocksync.Now) {
	c.watch(now)
	for i := range c.ports {
		c.advancePort(now, &c.ports[i])
	}
	c.links(func(p *peer) { c.advancePeer(now, p) })
	c.advanceSlave(now)
}

// Correction implements clocksync.Protocol.
func (c *Clock) Correction() clocksync.Correction { return c.correction }

// Counters implements clocksync.Protocol.
func (c *Clock) Counters() clocksync.Counters { return c.counters }

// PortState returns the state of a port, counted from 1; Disabled if there is none.
func (c *Clock) PortState(n int) PortState {
	if n < 1 || n > len(c.ports) {
		return Disabled
	}
	return c.ports[n-1].state
}

// Grandmaster returns whom the clock follows, itself if nobody.
func (c *Clock) Grandmaster() ClockIdentity {
	if c.parent.ok {
		return c.parent.set.Grandmaster
	}
	return c.id
}

// Lie makes the clock a falseticker, of an experiment: as a master it tells others a time that is wrong by so much from now
// on, and goes by the right one itself. 0: the truth.
func (c *Clock) Lie(by units.Time) { c.lie = by }

// watch compares the hardware clock with the monotonic one. One oscillator drives both, so a change of their
// difference is a step of the hardware clock, and synchronized time goes on as if there had been none: as exactly as
// the two can be compared, which is what the alarm says. What was measured against the clock before is worthless.
func (c *Clock) watch(now clocksync.Now) {
	c.lookAt = units.Never
	if c.cfg.StepAlarm == 0 {
		return
	}
	c.lookAt = now.Mono + max(1, c.cfg.SyncInterval/looks)
	step := now.Hard - now.Mono - c.apart
	if step <= c.cfg.StepAlarm && step >= -c.cfg.StepAlarm {
		return
	}
	c.apart += step
	k := &c.correction
	k.From += step
	k.Offset -= step
	k.Bound += c.cfg.StepAlarm
	if k.State == clocksync.Locked && c.parent.ok {
		k.State = clocksync.Holdover
	}
	c.forget()
}

// looks is how often per interval a clock looks for a step of itself, at least: messages alone may leave it a whole interval for what it
// stamps to be wrong.
const looks = 8

// forget throws away what has been measured, but not the rate.
func (c *Clock) forget() {
	c.abandon()
	c.servo.Reset()
	c.counters.Resets++
}

// abandon ends the measurements that have begun.
func (c *Clock) abandon() {
	c.slave.flush()
	c.links(func(p *peer) { p.exchange = exchange{} })
	c.pending = job{}
}
