package ptp

import (
	"fmt"

	"weft/clocksync"
	"weft/units"
)

// PortState is the state of a port (IEEE 1588-2019, clause 9.2.5).
//
//	Listening -> PreMaster -> Master     no better master is known
//	Listening -> Uncalibrated -> Slave   the best master is behind this port
//	any       -> Passive                 a master as good is known, by another path
type PortState uint8

// States of a port.
const (
	Disabled PortState = iota
	Listening
	PreMaster
	Master
	Passive
	Uncalibrated
	Slave
)

// String returns the name of the state in the standard.
func (s PortState) String() string {
	names := [...]string{"DISABLED", "LISTENING", "PRE_MASTER", "MASTER", "PASSIVE", "UNCALIBRATED", "SLAVE"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("PortState(%d)", uint8(s))
}

// following reports whether the parent of the clock is behind the port.
func (s PortState) following() bool { return s == Uncalibrated || s == Slave }

// qualifyWindow is the number of announce intervals within which a foreign master must send two
// Announce messages to qualify (clause 9.3.2.4).
const qualifyWindow = 4

// port is one port of the clock.
type port struct {
	id      PortIdentity
	state   PortState
	peers   []peer    // the neighbours behind it
	foreign []foreign // the masters that announced themselves, at most maxForeign

	announceAt, syncAt units.Time // when to send next, as a master
	timeoutAt          units.Time // when Listening or Passive ends without an Announce, or PreMaster ends
	announceSeq        uint16     // sequence number of the next Announce
	syncSeq            uint16     // sequence number of the next Sync
}

// foreign is an entry of the table of foreign masters (clause 9.3.2.4).
type foreign struct {
	claim       claim
	peer        *peer
	sequence    window     // of its Announces
	announcedAt units.Time // when its last Announce came, or other proof of life
	count       int        // Announces since it was added, or dropped as parent
	trusted     bool       // it has qualified
}

// newPort returns a port that is Disabled, with all timers off.
func newPort(id PortIdentity, peers []peer) port {
	return port{
		id: id, state: Disabled, peers: peers,
		announceAt: units.Never, syncAt: units.Never, timeoutAt: units.Never,
	}
}

// maxForeign bounds the table of foreign masters.
func (p *port) maxForeign() int { return 4*len(p.peers) + 4 }

// window distinguishes new sequence numbers from old ones. After a silence any number is new, since
// the sender may have restarted. Such a message may still be a replay; peer.lastOrigin and
// peer.lastAnnounced detect that.
type window struct {
	last uint16     // the last number accepted
	at   units.Time // when
	ok   bool       // there is one
}

// accept reports whether a sequence number is new, and records it if so.
func (w *window) accept(now units.Time, sequence uint16, silence units.Time) bool {
	if w.ok && int16(sequence-w.last) <= 0 && now-w.at <= silence {
		return false
	}
	*w = window{last: sequence, at: now, ok: true}
	return true
}

// deadline returns the earliest timer of the port. wait is how long an Announce is valid.
func (p *port) deadline(wait units.Time) units.Time {
	at := min(p.announceAt, p.syncAt, p.timeoutAt)
	for i := range p.foreign {
		at = min(at, p.foreign[i].announcedAt+wait)
	}
	return at
}

// announceWait returns how long an Announce is valid (announceReceiptTimeout).
func (c *Clock) announceWait() units.Time {
	return units.Time(c.cfg.AnnounceTimeout) * c.cfg.AnnounceInterval
}

// listen moves a port to Listening.
func (c *Clock) listen(now clocksync.Now, p *port) {
	p.state = Listening
	p.announceAt, p.syncAt = units.Never, units.Never
	// The random part (clause 9.2.6.12) keeps clocks that start together from all becoming masters
	// at once.
	p.timeoutAt = now.Mono + c.announceWait() + c.randomDelay(c.cfg.AnnounceInterval)
}

// onAnnounce handles an Announce: it adds or refreshes the foreign master that sent it, and runs
// the best master clock algorithm once that has qualified.
func (c *Clock) onAnnounce(now clocksync.Now, from *peer, m *Message) error {
	set := &m.Announce
	if set.Steps >= maxSteps || set.Grandmaster == 0 || set.Grandmaster == c.id && set.Steps == 0 {
		return ErrRange
	}
	p := &c.ports[from.port]
	f := p.find(m.Source)
	if err := c.fresh(now, from, f, m); err != nil {
		return err
	}
	if f == nil {
		if len(p.foreign) >= p.maxForeign() {
			return ErrForeign
		}
		p.foreign = append(p.foreign, foreign{peer: from, sequence: window{last: m.Sequence, at: now.Mono, ok: true}})
		f = &p.foreign[len(p.foreign)-1]
	}
	f.claim = claim{set: m.Announce, sender: m.Source, receiver: p.id}
	if f.count > 0 && now.Mono-f.announcedAt <= qualifyWindow*c.cfg.AnnounceInterval {
		f.trusted = true
	}
	f.announcedAt = now.Mono
	f.count++
	if p.state == Listening || p.state == Passive {
		p.timeoutAt = now.Mono + c.announceWait() + c.randomDelay(c.cfg.AnnounceInterval)
	}
	if f.trusted {
		c.decideStates(now)
	}
	return nil
}

// fresh returns an error for an Announce that is older than an earlier one. A master puts its time
// into the Announce. If that time goes back while the sequence number advances, the master's clock
// was set back, and the message is accepted. If neither advances, it is a replay. For a master that
// sends no time, only the sequence number counts.
func (c *Clock) fresh(now clocksync.Now, from *peer, f *foreign, m *Message) error {
	if f != nil && f.peer != from {
		return ErrForeign
	}
	w := window{}
	if f != nil {
		w = f.sequence
	}
	if m.Timestamp == (Timestamp{}) {
		if !w.accept(now.Mono, m.Sequence, c.announceWait()) {
			return ErrStale
		}
	} else {
		at, ok := m.Timestamp.instant()
		later, counts := !from.lastAnnounced.ok || at > from.lastAnnounced.at, w.ok && int16(m.Sequence-w.last) > 0
		switch {
		case !ok:
			return ErrRange
		case !later && !counts:
			return ErrStale
		case counts && from.lastOrigin.ok && at+c.cfg.AnnounceInterval < from.lastOrigin.at:
			from.lastOrigin.at = at
		}
		from.lastAnnounced = clockReading{ok: true, at: at}
		w = window{last: m.Sequence, at: now.Mono, ok: true}
	}
	if f != nil {
		f.sequence = w
	}
	return nil
}

// find returns the foreign master with the given port identity, or nil.
func (p *port) find(source PortIdentity) *foreign {
	for i := range p.foreign {
		if p.foreign[i].claim.sender == source {
			return &p.foreign[i]
		}
	}
	return nil
}

// expire removes foreign masters that have fallen silent, and reports whether there were any.
func (c *Clock) expire(now clocksync.Now, p *port) bool {
	kept := p.foreign[:0]
	for _, f := range p.foreign {
		if now.Mono < f.announcedAt+c.announceWait() {
			kept = append(kept, f)
		}
	}
	gone := len(kept) < len(p.foreign)
	p.foreign = kept
	return gone
}

// best returns the best foreign master of the port that has qualified, or nil (Erbest).
func (p *port) best() *foreign {
	var best *foreign
	for i := range p.foreign {
		if f := &p.foreign[i]; f.trusted && (best == nil || f.claim.better(&best.claim)) {
			best = f
		}
	}
	return best
}

// decideStates runs the best master clock algorithm: it chooses the parent and the state of each
// port.
func (c *Clock) decideStates(now clocksync.Now) {
	d0 := claim{set: c.cfg.DataSet, sender: PortIdentity{Clock: c.id}, receiver: PortIdentity{Clock: c.id}}
	var best *foreign
	for i := range c.ports {
		if f := c.ports[i].best(); f != nil && (best == nil || f.claim.better(&best.claim)) {
			best = f
		}
	}
	c.follow(now, best, &d0)
	for i := range c.ports {
		p := &c.ports[i]
		var erbest, ebest *claim
		if f := p.best(); f != nil {
			erbest = &f.claim
		}
		if best != nil {
			ebest = &best.claim
		}
		state := decide(&d0, erbest, ebest, p.state == Listening)
		if c.cfg.SlaveOnly && (state == Master || state == Passive) {
			state = Listening
		}
		c.enter(now, p, state)
	}
}

// follow makes the best foreign master the parent, unless this clock is better. d0 is this clock's
// own claim.
func (c *Clock) follow(now clocksync.Now, best *foreign, d0 *claim) {
	if best != nil && !c.cfg.SlaveOnly && (d0.set.Class <= 127 || compare(d0, &best.claim) < 0) {
		best = nil
	}
	if best == nil {
		if c.parent.ok {
			c.parent = parent{}
			c.counters.Lost++
			c.holdOver(now)
			c.slave.stop()
		}
		return
	}
	if c.parent.ok && c.parent.source == best.claim.sender {
		c.parent.set = best.claim.set
		return
	}
	if c.parent.ok {
		c.counters.Lost++
		c.holdOver(now)
		c.abandon() // the servo keeps its frequency: two samples of the new parent would give a worse one
	}
	c.bound.Reset() // the offsets were to another clock
	c.parent = parent{
		ok: true, source: best.claim.sender, peer: best.peer, port: &c.ports[best.peer.port], set: best.claim.set,
	}
	c.slave.start(now.Mono, c)
}

// enter moves a port to the recommended state.
func (c *Clock) enter(now clocksync.Now, p *port, to PortState) {
	switch to {
	case Master:
		if p.state == Master || p.state == PreMaster {
			return
		}
		p.state, p.announceAt, p.syncAt = PreMaster, units.Never, units.Never
		p.timeoutAt = now.Mono // decisions M1 and M2 need no qualification
		if c.parent.ok {       // M3
			p.timeoutAt += c.cfg.AnnounceInterval * units.Time(c.parent.set.Steps+1)
		}
	case Slave:
		if !p.state.following() {
			p.state = Uncalibrated
		}
		p.announceAt, p.syncAt, p.timeoutAt = units.Never, units.Never, units.Never
	case Passive:
		p.state, p.announceAt, p.syncAt = Passive, units.Never, units.Never
		p.timeoutAt = now.Mono + c.announceWait()
	case Listening:
		if p.state != Listening {
			c.listen(now, p)
		}
	}
}

// advancePort runs the timers of a port that are due.
func (c *Clock) advancePort(now clocksync.Now, p *port) {
	if now.Mono >= p.timeoutAt {
		c.timeout(now, p)
	}
	if c.expire(now, p) {
		c.decideStates(now)
	}
	if now.Mono >= p.announceAt {
		c.announce(now, p)
		p.announceAt = after(now.Mono, p.announceAt, c.cfg.AnnounceInterval)
	}
	if now.Mono >= p.syncAt {
		for i := range p.peers {
			c.send(&p.peers[i], Message{Type: Sync, Flags: FlagTwoStep, Source: p.id, Sequence: p.syncSeq,
				LogInterval: logInterval(c.cfg.Interval)})
		}
		p.syncSeq++
		p.syncAt = after(now.Mono, p.syncAt, c.cfg.Interval)
	}
}

// after returns the next multiple of interval after at that is later than now. Missed instants are
// skipped.
func after(now, at, interval units.Time) units.Time {
	return at + (max(0, now-at)/interval+1)*interval
}

// timeout handles the timeoutAt of a port.
func (c *Clock) timeout(now clocksync.Now, p *port) {
	p.timeoutAt = units.Never
	switch {
	case p.state == PreMaster:
		p.state = Master
		p.announceAt, p.syncAt = now.Mono, now.Mono
	case c.cfg.SlaveOnly:
		c.listen(now, p)
	case p.state == Listening || p.state == Passive:
		p.state = Passive // decide would keep a port without masters in Listening
		c.expire(now, p)
		c.decideStates(now)
	}
}

// announce sends an Announce to all peers of a port: the grandmaster that this clock follows, or
// the clock itself, and how accurate it is.
func (c *Clock) announce(now clocksync.Now, p *port) {
	set := c.cfg.DataSet
	switch {
	case c.parent.ok:
		set = c.parent.set
		set.Steps++
	case c.setup.Self == c.setup.Reference:
		if c.correction.State == clocksync.Free {
			c.correction.State = clocksync.Locked // the reference defines the time
		}
		set.Accuracy = accuracyExact
	case c.correction.State != clocksync.Free: // it had the time until it lost the reference
		set.Accuracy = accuracyOf(c.correction.BoundAt(now.Hard))
	default:
		set.Accuracy = accuracyUnknown
	}
	at, _ := stampOf(c.correction.At(now.Hard) + c.lie)
	for i := range p.peers {
		c.send(&p.peers[i], Message{Type: Announce, Flags: FlagTimescale, Source: p.id, Sequence: p.announceSeq,
			LogInterval: logInterval(c.cfg.AnnounceInterval), Timestamp: at, Announce: set})
	}
	p.announceSeq++
}
