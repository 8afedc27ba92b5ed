package ptp

import (
	"fmt"

	"weft/clocksync"
	"weft/units"
)

// PortState is the state of a port (IEEE 1588-2019, clause 9.2.5).
//
//	Listening -> PreMaster -> Master    nobody better is heard
//	Listening -> Uncalibrated -> Slave  the best master is behind this port
//	any       -> Passive                a master as good is heard, by another way
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

// String names the state as the standard does.
func (s PortState) String() string {
	names := [...]string{"DISABLED", "LISTENING", "PRE_MASTER", "MASTER", "PASSIVE", "UNCALIBRATED", "SLAVE"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("PortState(%d)", uint8(s))
}

// following reports whether the port is behind the master that the clock follows.
func (s PortState) following() bool { return s == Uncalibrated || s == Slave }

// Foreign masters qualify with two Announce messages within four intervals (clause 9.3.2.4).
const qualifyWindow = 4

// port is one port of the clock.
type port struct {
	id    PortIdentity
	state PortState
	peers []peer
	// foreign are the masters heard, at most as many as mostForeign allows.
	foreign []foreign

	announceAt, syncAt units.Time // when to send, as master
	timeoutAt          units.Time // when Listening or Passive ends without an Announce; PreMaster becomes Master
	announceSeq        uint16
	syncSeq            uint16
}

// foreign is a master that has been heard.
type foreign struct {
	claim    claim
	peer     *peer
	sequence window
	heard    units.Time // last Announce
	count    int        // Announces since it was first heard, or given up
	trusted  bool       // qualified
}

func newPort(id PortIdentity, peers []peer) port {
	return port{id: id, state: Disabled, peers: peers, announceAt: units.Never, syncAt: units.Never, timeoutAt: units.Never}
}

// mostForeign bounds the table of masters.
func (p *port) mostForeign() int { return 4*len(p.peers) + 4 }

// window tells new sequence numbers from old ones. After a silence any number is new: its sender was restarted. Whether
// what it says is new as well is for who reads it to find out: see peer.told and peer.announced.
type window struct {
	last uint16
	at   units.Time
	ok   bool
}

// accept reports whether a number is new, and takes it if so.
func (w *window) accept(now units.Time, sequence uint16, silence units.Time) bool {
	if w.ok && int16(sequence-w.last) <= 0 && now-w.at <= silence {
		return false
	}
	*w = window{last: sequence, at: now, ok: true}
	return true
}

func (p *port) deadline(wait units.Time) units.Time {
	at := min(p.announceAt, p.syncAt, p.timeoutAt)
	for i := range p.foreign {
		at = min(at, p.foreign[i].heard+wait)
	}
	return at
}

// announceWait is how long an Announce is good.
func (c *Clock) announceWait() units.Time {
	return units.Time(c.cfg.AnnounceTimeout) * c.cfg.AnnounceInterval
}

// listen puts a port at the beginning.
func (c *Clock) listen(now clocksync.Now, p *port) {
	p.state = Listening
	p.announceAt, p.syncAt = units.Never, units.Never
	// The random part (clause 9.2.6.12) keeps clocks that start together from all becoming masters at once.
	p.timeoutAt = now.Mono + c.announceWait() + c.spread(c.cfg.AnnounceInterval)
}

// onAnnounce learns of a master.
func (c *Clock) onAnnounce(now clocksync.Now, from *peer, m *Message) error {
	if m.Announce.Steps >= maxSteps || m.Announce.Grandmaster == 0 || m.Announce.Grandmaster == c.id && m.Announce.Steps == 0 {
		return ErrRange
	}
	p := &c.ports[from.port]
	f := p.find(m.Source)
	if err := c.fresh(now, from, f, m); err != nil {
		return err
	}
	if f == nil {
		if len(p.foreign) >= p.mostForeign() {
			return ErrForeign
		}
		p.foreign = append(p.foreign, foreign{peer: from, sequence: window{last: m.Sequence, at: now.Mono, ok: true}})
		f = &p.foreign[len(p.foreign)-1]
	}
	f.claim = claim{set: m.Announce, sender: m.Source, receiver: p.id}
	if f.count > 0 && now.Mono-f.heard <= qualifyWindow*c.cfg.AnnounceInterval {
		f.trusted = true
	}
	f.heard = now.Mono
	f.count++
	if p.state == Listening || p.state == Passive {
		p.timeoutAt = now.Mono + c.announceWait() + c.spread(c.cfg.AnnounceInterval)
	}
	if f.trusted {
		c.decideStates(now)
	}
	return nil
}

// fresh refuses an Announce that is older than one that came. Masters say when they announce; one that says an
// earlier time than it did has to go on counting while it is heard: then its clock was set back. After a silence
// that would be a message of long ago that comes again. Of a master that does not say, the number alone counts.
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
		later, counts := !from.announced.ok || at > from.announced.at, w.ok && int16(m.Sequence-w.last) > 0
		switch {
		case !ok:
			return ErrRange
		case !later && !counts:
			return ErrStale
		case counts && from.told.ok && at+c.cfg.AnnounceInterval < from.told.at:
			from.told.at = at
		}
		from.announced = reading{ok: true, at: at}
		w = window{last: m.Sequence, at: now.Mono, ok: true}
	}
	if f != nil {
		f.sequence = w
	}
	return nil
}

func (p *port) find(source PortIdentity) *foreign {
	for i := range p.foreign {
		if p.foreign[i].claim.sender == source {
			return &p.foreign[i]
		}
	}
	return nil
}

// expire drops masters that have fallen silent, and reports whether there were any.
func (c *Clock) expire(now clocksync.Now, p *port) bool {
	kept := p.foreign[:0]
	for _, f := range p.foreign {
		if now.Mono < f.heard+c.announceWait() {
			kept = append(kept, f)
		}
	}
	gone := len(kept) < len(p.foreign)
	p.foreign = kept
	return gone
}

// best returns the best claim that the port has heard of, or nil.
func (p *port) best() *foreign {
	var best *foreign
	for i := range p.foreign {
		if f := &p.foreign[i]; f.trusted && (best == nil || f.claim.better(&best.claim)) {
			best = f
		}
	}
	return best
}

// decideStates runs the best master clock algorithm over all ports.
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

// follow makes the best master the parent, unless this clock is better.
func (c *Clock) follow(now clocksync.Now, best *foreign, d0 *claim) {
	if best != nil && !c.cfg.SlaveOnly && (d0.set.Class <= 127 || compare(d0, &best.claim) < 0) {
		best = nil
	}
	if best == nil {
		if c.parent.ok {
			c.parent = parent{}
			c.counters.Lost++
			c.coast(now)
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
		c.coast(now)
		c.abandon() // the frequency that is known is of the same time: no two samples would say it as well
	}
	c.bound.Reset() // it was of offsets from another clock
	c.parent = parent{ok: true, source: best.claim.sender, peer: best.peer, port: &c.ports[best.peer.port], set: best.claim.set}
	c.slave.start(now.Mono, c)
}

// enter moves a port to what the decision recommends.
func (c *Clock) enter(now clocksync.Now, p *port, to PortState) {
	switch to {
	case Master:
		if p.state == Master || p.state == PreMaster {
			return
		}
		p.state, p.announceAt, p.syncAt = PreMaster, units.Never, units.Never
		p.timeoutAt = now.Mono // M1 and M2 qualify at once
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

// advancePort does what is due at a port.
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
				LogInterval: logInterval(c.cfg.SyncInterval)})
		}
		p.syncSeq++
		p.syncAt = after(now.Mono, p.syncAt, c.cfg.SyncInterval)
	}
}

// after returns the next multiple of an interval after at that lies after now: what was missed is not made up for.
func after(now, at, interval units.Time) units.Time {
	return at + (max(0, now-at)/interval+1)*interval
}

// timeout ends a wait of a port.
func (c *Clock) timeout(now clocksync.Now, p *port) {
	p.timeoutAt = units.Never
	switch {
	case p.state == PreMaster:
		p.state = Master
		p.announceAt, p.syncAt = now.Mono, now.Mono
	case c.cfg.SlaveOnly:
		c.listen(now, p)
	case p.state == Listening || p.state == Passive:
		p.state = Passive // so that the decision is not held back
		c.expire(now, p)
		c.decideStates(now)
	}
}

// announce tells everybody behind a port whom this clock follows, and how well that one knows the time.
func (c *Clock) announce(now clocksync.Now, p *port) {
	set := c.cfg.DataSet
	switch {
	case c.parent.ok:
		set = c.parent.set
		set.Steps++
	case c.setup.Self == c.setup.Reference:
		if c.correction.State == clocksync.Free {
			c.correction.State = clocksync.Locked // it is the time that others follow
		}
		set.Accuracy = accuracyExact
	case c.correction.State != clocksync.Free: // it knew the time when it lost the reference
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
