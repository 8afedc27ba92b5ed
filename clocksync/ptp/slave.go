package ptp

import (
	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// slave is what the clock measures of its parent.
type slave struct {
	sync     half   // Sync that waits for its Follow_Up
	followUp half   // Follow_Up that overtook its Sync
	sequence window // of Sync
	t1, t2   units.Time
	hard     units.Time // t2 by the hardware clock
	measured bool       // t1 and t2 are valid

	requestAt units.Time // when to send a Delay_Req
	request   uint16     // sequence number of the last
	t3        units.Time
	asked     bool // it was sent, and is not answered

	giveUpAt units.Time // when the parent is given up for want of measurements
	quietAt  units.Time // when the clock coasts for want of measurements
}

// half is half of a pair of Sync and Follow_Up.
type half struct {
	ok         bool
	sequence   uint16
	at         units.Time // t2 of a Sync, t1 of a Follow_Up
	hard       units.Time // t2 by the hardware clock
	correction units.Time
}

// coastAfter is how many sync intervals without a measurement the rate may still be correcting an offset for.
const coastAfter = 3

// farAhead is how far a Follow_Up may be ahead of the last Sync that came.
const farAhead = 64

func (s *slave) deadline() units.Time {
	return min(orNever(s.requestAt), orNever(s.giveUpAt), orNever(s.quietAt))
}

// orNever reads the zero value as unarmed: a slave without a parent has no timers.
func orNever(t units.Time) units.Time {
	if t == 0 {
		return units.Never
	}
	return t
}

// start follows a new parent.
func (s *slave) start(now units.Time, c *Clock) {
	*s = slave{request: s.request}
	s.rearm(now, c)
	if !c.cfg.PeerDelay {
		s.requestAt = now + c.spread(2*c.cfg.DelayInterval)
		c.parent.peer.delay.Reset()
	}
}

func (s *slave) rearm(now units.Time, c *Clock) {
	s.quietAt = now + coastAfter*c.cfg.SyncInterval
	if c.cfg.SyncTimeout > 0 {
		s.giveUpAt = now + c.patience()
	}
}

// patience is how long a parent may give no time, and how long a delay is good that was measured.
func (c *Clock) patience() units.Time {
	if c.cfg.SyncTimeout == 0 {
		return units.Never
	}
	return units.Time(c.cfg.SyncTimeout) * max(c.cfg.SyncInterval, 2*c.cfg.DelayInterval)
}

// stop follows nobody.
func (s *slave) stop() { *s = slave{request: s.request} }

// flush forgets stamps, as after a step.
func (s *slave) flush() {
	s.sync, s.followUp, s.measured, s.asked = half{}, half{}, false, false
}

// requested notes when a Delay_Req left.
func (s *slave) requested(sequence uint16, at units.Time) {
	if sequence == s.request {
		s.t3, s.asked = at, true
	}
}

// parental reports whether a message comes from the parent.
func (c *Clock) parental(from *peer, m *Message) bool {
	return c.parent.ok && c.parent.peer == from && c.parent.source == m.Source
}

// onSync takes t2.
func (c *Clock) onSync(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	if !c.parental(from, m) {
		return ErrForeign
	}
	s := &c.slave
	last := s.sequence
	if !s.sequence.accept(now.Mono, m.Sequence, coastAfter*c.cfg.SyncInterval) {
		return ErrStale
	}
	if last.ok && int16(m.Sequence-last.last) <= 0 { // the master was restarted: what waits is of its former life
		s.followUp = half{}
	}
	correction, _ := m.corrected()
	s.sync = half{ok: true, sequence: m.Sequence, at: c.correction.At(stamp), hard: stamp, correction: correction}
	if m.Flags&FlagTwoStep == 0 {
		t1, ok := m.Timestamp.instant()
		if !ok {
			s.sync = half{}
			return ErrRange
		}
		s.followUp = half{ok: true, sequence: m.Sequence, at: t1}
	}
	c.pair(now)
	return nil
}

// onFollowUp takes t1.
func (c *Clock) onFollowUp(now clocksync.Now, from *peer, m *Message) error {
	if !c.parental(from, m) {
		return ErrForeign
	}
	s := &c.slave
	if s.sequence.ok && !s.sync.ok && int16(m.Sequence-s.sequence.last) <= 0 ||
		s.sync.ok && int16(m.Sequence-s.sync.sequence) < 0 || s.followUp.ok && int16(m.Sequence-s.followUp.sequence) <= 0 ||
		s.sequence.ok && int16(m.Sequence-s.sequence.last) > farAhead {
		return ErrStale
	}
	t1, ok := m.Timestamp.instant()
	if !ok {
		return ErrRange
	}
	correction, _ := m.corrected()
	s.followUp = half{ok: true, sequence: m.Sequence, at: t1, correction: correction}
	c.pair(now)
	return nil
}

// pair measures the offset once a Sync has its Follow_Up. Of two that do not belong together the older is dropped.
func (c *Clock) pair(now clocksync.Now) {
	s := &c.slave
	if !s.sync.ok || !s.followUp.ok {
		return
	}
	switch older := int16(s.sync.sequence - s.followUp.sequence); {
	case older < 0:
		s.sync.ok = false
		return
	case older > 0:
		s.followUp.ok = false
		return
	}
	s.t1 = s.followUp.at + s.followUp.correction + s.sync.correction + c.cfg.Asymmetry
	s.t2, s.hard = s.sync.at, s.sync.hard
	s.measured = true
	s.sync, s.followUp = half{}, half{}
	c.measure(now)
}

// measure makes a sample of t1, t2 and the delay, and steers.
func (c *Clock) measure(now clocksync.Now) {
	delay, ok := c.parent.peer.delay.Value()
	if !ok {
		return
	}
	if now.Mono-c.parent.peer.learnt > c.patience() { // the way there has failed: nobody knows how long the way back is
		c.counters.Filtered++
		return
	}
	last := c.parent.peer.last
	weight := 1.0
	if c.cfg.Weighted && last > delay && last > 0 {
		weight = float64(delay) / float64(last)
	}
	if c.cfg.RawDelay {
		delay = last
	}
	s := &c.slave
	s.rearm(now.Mono, c)
	offset := s.t2 - s.t1 - delay
	rate, state := c.servo.Update(servo.Sample{Local: s.hard, Sync: s.t2, Offset: offset, Weight: weight})
	c.steer(now, offset, rate, state)
}

// steer publishes what the servo decided.
func (c *Clock) steer(now clocksync.Now, offset units.Time, rate float64, state servo.State) {
	if state == servo.Unlocked {
		return
	}
	k := c.correction.Rebase(now.Hard)
	k.Rate = rate
	if state == servo.Jump {
		k.Offset -= offset
		if k.State != clocksync.Free { // it is at most as far off as it was, and as it went
			k.State, k.Bound = clocksync.Holdover, k.Bound+max(offset, -offset)
		}
		c.slave.flush()
		for i := range c.peers {
			c.peers[i].exchange = exchange{}
		}
		c.parent.peer.delay.Reset() // it was measured with a frequency that was wrong
		c.bound.Reset()
		c.counters.Steps++
		offset = 0
	}
	c.bound.Add(offset, c.servo.Holdover())
	if w, drift, ok := c.bound.Last(leastSamples); ok {
		steps := units.Time(c.parent.set.Steps) + 1 // every clock on the way errs, and none knows by how much the others do
		k.Bound, k.Drift, k.State = w*steps+c.cfg.AsymmetryBound, max(drift, leastDrift)*float64(steps), clocksync.Locked
	}
	c.publish(k)
	if p := c.parent.port; p.state == Uncalibrated && state == servo.Locked {
		p.state = Slave
	}
}

// leastSamples is how many samples it takes to state a bound.
const leastSamples = 8

// leastDrift is the least growth of a bound: frequencies are not known to better than a part per billion.
const leastDrift = 1e-9

// publish replaces the correction, unless it is no line that can be used.
func (c *Clock) publish(k clocksync.Correction) {
	if k.Check() != nil {
		c.counters.Filtered++
		return
	}
	c.correction = k
	c.counters.Updates++
}

// coast goes on with the frequency that is known, without what was correcting an offset.
func (c *Clock) coast(now clocksync.Now) {
	if c.correction.State != clocksync.Locked {
		return
	}
	k := c.correction.Rebase(now.Hard)
	k.Rate, k.State = c.servo.Holdover(), clocksync.Holdover
	c.publish(k)
}

// advanceSlave does what is due as a slave.
func (c *Clock) advanceSlave(now clocksync.Now) {
	s := &c.slave
	if !c.parent.ok {
		return
	}
	if now.Mono >= orNever(s.quietAt) {
		s.quietAt = 0
		c.coast(now)
	}
	if now.Mono >= orNever(s.giveUpAt) {
		s.giveUpAt = 0
		c.giveUp(now)
		return
	}
	if now.Mono >= orNever(s.requestAt) {
		s.request++
		s.asked = false
		c.send(c.parent.peer, Message{Type: DelayReq, Source: c.parent.port.id, Sequence: s.request, LogInterval: noInterval})
		s.requestAt = now.Mono + c.spread(2*c.cfg.DelayInterval)
	}
}

// giveUp drops a parent that announces itself and gives no time; it has to qualify again.
func (c *Clock) giveUp(now clocksync.Now) {
	p := c.parent.port
	for i := range p.foreign {
		if f := &p.foreign[i]; f.claim.sender == c.parent.source {
			f.trusted, f.count = false, 0
		}
	}
	c.decideStates(now)
}

// onDelayReq answers, as a master.
func (c *Clock) onDelayReq(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	p := &c.ports[from.port]
	if p.state != Master || c.cfg.PeerDelay {
		return ErrForeign
	}
	if !from.requests.accept(now.Mono, m.Sequence, 8*c.cfg.DelayInterval) {
		return ErrStale
	}
	answer := Message{Type: DelayResp, Source: p.id, Sequence: m.Sequence, LogInterval: logInterval(c.cfg.DelayInterval), Requesting: m.Source}
	var rest int64
	answer.Timestamp, rest = stampOf(c.correction.At(stamp) + c.lie)
	answer.Correction = m.Correction - rest
	c.send(from, answer)
	return nil
}

// onDelayResp takes t4 and with it the delay.
func (c *Clock) onDelayResp(now clocksync.Now, from *peer, m *Message) error {
	if !c.parental(from, m) || m.Requesting != c.parent.port.id {
		return ErrForeign
	}
	s := &c.slave
	if !s.asked || m.Sequence != s.request {
		return ErrStale
	}
	t4, ok := m.Timestamp.instant()
	if !ok {
		return ErrRange
	}
	s.asked = false
	if !s.measured {
		return nil
	}
	correction, _ := m.corrected()
	t4 -= correction - c.cfg.Asymmetry
	delay := (units.Time(float64(s.t2-s.t3)*c.servo.RateRatio()) + (t4 - s.t1)) / 2
	c.learn(now, from, delay)
	return nil
}
