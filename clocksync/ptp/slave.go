package ptp

import (
	"math/bits"

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
	retryAt   units.Time // when to send one more, unless that is answered
	retries   int        // sent since one was answered
	request   uint16     // sequence number of the last
	t3        units.Time
	asked     bool // it was sent, and is not answered

	giveUpAt units.Time // when the parent is given up for want of measurements
	quietAt  units.Time // when the clock coasts for want of measurements
	slewedAt units.Time // when what corrects an offset has done so
	heardAt  units.Time // half of a measurement came
	spikes   outliers   // of the offset
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
	return min(orNever(s.requestAt), orNever(s.retryAt), orNever(s.giveUpAt), orNever(s.quietAt), orNever(s.slewedAt))
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
		c.parent.peer.learnt = now // nothing yet, and it has as long for it as for the next
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
	c.heard(now)
	if m.Flags&FlagTwoStep == 0 {
		t1, ok := m.Timestamp.instant()
		if !ok {
			s.sync = half{}
			return ErrRange
		}
		s.followUp = half{ok: true, sequence: m.Sequence, at: t1}
	}
	return c.pair(now)
}

// heard notes that the parent gives time: it is there, though its Announces may be lost.
func (c *Clock) heard(now clocksync.Now) {
	c.slave.heardAt = now.Mono
	if f := c.parent.port.find(c.parent.source); f != nil {
		f.heard = now.Mono
	}
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
	return c.pair(now)
}

// pair measures the offset once a Sync has its Follow_Up. Of two that do not belong together the older is dropped. A
// t1 that does not lie after the last one is of a message that comes again; after a silence its number does not tell.
func (c *Clock) pair(now clocksync.Now) error {
	s := &c.slave
	if !s.sync.ok || !s.followUp.ok {
		return nil
	}
	switch older := int16(s.sync.sequence - s.followUp.sequence); {
	case older < 0:
		s.sync.ok = false
		return nil
	case older > 0:
		s.followUp.ok = false
		return nil
	}
	told := &c.parent.peer.told
	if told.ok && s.followUp.at <= told.at {
		s.sync, s.followUp = half{}, half{}
		return ErrStale
	}
	*told = reading{ok: true, at: s.followUp.at}
	s.t1 = s.followUp.at + s.followUp.correction + s.sync.correction + c.cfg.Asymmetry
	s.t2, s.hard = s.sync.at, s.sync.hard
	s.measured = true
	s.sync, s.followUp = half{}, half{}
	c.measure(now)
	return nil
}

// measure makes a sample of t1, t2 and the delay, and steers.
func (c *Clock) measure(now clocksync.Now) {
	way := c.way()
	delay, ok := usual(way.delay)
	if !ok {
		return
	}
	if now.Mono-way.learnt > c.patience() { // the way there has failed: nobody knows how long the way back is
		c.counters.Filtered++
		return
	}
	last := max(0, way.last)
	weight := 1.0
	if c.cfg.Weighted && last > delay && last > 0 {
		weight = float64(delay) / float64(last)
	}
	if c.cfg.RawDelay {
		delay = last
	}
	s := &c.slave
	_, traced := accuracyBound(c.parent.set.Accuracy)
	if traced && c.adrift { // what it was in step with has nothing to do with the time
		c.servo.Restart()
		c.bound.Reset()
	}
	c.adrift = !traced
	offset := s.t2 - s.t1 - delay
	if c.spike(now, offset) {
		return
	}
	s.rearm(now.Mono, c)
	rate, state := c.servo.Update(servo.Sample{Local: s.hard, Sync: s.t2, Offset: offset, Weight: weight})
	c.steer(now, offset, rate, state)
}

// way is whose delay the offset from the parent is measured with: the parent's, or that of the link to the bridge, which has added
// the rest to what it passed on.
func (c *Clock) way() *peer {
	if c.link != nil {
		return c.link
	}
	return c.parent.peer
}

// A measurement is left aside when its offset is beyond FirstStep and beyond spikeSpan times what offsets usually are:
// a Sync was held up on its way. SPTP's client does likewise (ring of 30, 15 skips); the numbers are ours.
const (
	spikeSpan    = 2
	spikeSamples = 8
)

// outliers remembers which of the last ten measurements lay far off, a bit for each.
type outliers uint16

// aside takes whether a measurement lies far off, and reports whether to leave it aside. Where half of the last ten do,
// what is measured has moved.
func (o *outliers) aside(far bool) bool {
	*o = *o << 1 & 0x3ff
	if far {
		*o |= 1
	}
	return far && bits.OnesCount16(uint16(*o)) < 5
}

// spike reports whether an offset is to be left aside.
func (c *Clock) spike(now clocksync.Now, offset units.Time) bool {
	s := &c.slave
	size := max(offset, -offset)
	first := c.cfg.Limits.FirstStep
	if !s.spikes.aside(first > 0 && size > first && c.bound.Samples() >= spikeSamples && size > spikeSpan*c.bound.Typical()) {
		return false
	}
	s.measured = false // nor is it good for a delay
	c.counters.Filtered++
	if c.cfg.SyncTimeout > 0 {
		s.giveUpAt = now.Mono + c.patience()
	}
	return true
}

// steer publishes what the servo decided.
func (c *Clock) steer(now clocksync.Now, offset units.Time, rate float64, state servo.State) {
	if state == servo.Unlocked {
		return
	}
	k := c.correction.Rebase(now.Hard)
	k.Rate = rate
	c.slave.slewedAt = now.Mono + c.cfg.SyncInterval + c.cfg.SyncInterval/4
	if state == servo.Jump {
		k.Offset -= offset
		if k.State != clocksync.Free { // it is at most as far off as it was, and as it went
			k.State, k.Bound = clocksync.Holdover, k.Bound+max(offset, -offset)
		}
		c.slave.flush()
		c.links(func(p *peer) { p.exchange = exchange{} })
		c.way().delay.Reset() // it was measured with a frequency that was wrong
		c.bound.Reset()
		c.counters.Steps++
		offset = 0
	}
	c.bound.Add(offset, c.servo.Holdover())
	steady, unsteady := c.bound.Steady()
	known, traced := accuracyBound(c.parent.set.Accuracy)
	if w, drift, ok := c.bound.Last(leastSamples); ok {
		steps := units.Time(c.parent.set.Steps) + 1 // every clock on the way errs, and none knows by how much the others do
		k.Bound, k.Drift, k.State = w*steps+c.cfg.AsymmetryBound+known, max(drift, 2*unsteady, leastDrift)*float64(steps), clocksync.Locked
	}
	k.Slew = rate - steady
	if !traced { // it follows somebody who does not know the time
		k.Bound, k.Drift, k.State = 0, 0, clocksync.Free
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
	if c.correction.State == clocksync.Locked || c.correction.Slew != 0 {
		c.publish(c.correction.Hold(now.Hard))
	}
}

// advanceSlave does what is due as a slave.
func (c *Clock) advanceSlave(now clocksync.Now) {
	s := &c.slave
	if !c.parent.ok {
		return
	}
	if now.Mono >= orNever(s.slewedAt) {
		s.slewedAt = 0
		k := c.correction.Rebase(now.Hard)
		k.Rate, k.Slew = k.Rate-k.Slew, 0
		c.publish(k)
	}
	if now.Mono >= orNever(s.quietAt) {
		s.quietAt = 0
		c.coast(now)
	}
	if now.Mono >= orNever(s.giveUpAt) {
		if s.giveUpAt = now.Mono + c.patience(); !c.hopeful(now) {
			s.giveUpAt = 0
			c.giveUp(now)
			return
		}
	}
	c.askDelay(now)
}

// hopeful reports whether a parent that gave no time for long may yet do so: half of what it takes comes, and not so
// long ago the rest did.
func (c *Clock) hopeful(now clocksync.Now) bool {
	return now.Mono-c.slave.heardAt < c.patience() && now.Mono-c.way().learnt < 4*c.patience()
}

// mostRetries is how many Delay_Reqs are sent between two that are due, one when a quarter of the interval went by
// without an answer. Without loss none is. Ours.
const mostRetries = 3

// askDelay sends the Delay_Req that is due.
func (c *Clock) askDelay(now clocksync.Now) {
	s := &c.slave
	due, again := now.Mono >= orNever(s.requestAt), now.Mono >= orNever(s.retryAt)
	if !due && !again {
		return
	}
	s.retryAt = 0
	if due {
		s.requestAt = now.Mono + c.spread(2*c.cfg.DelayInterval)
		s.retries = 0
	} else {
		s.retries++
	}
	s.request++
	s.asked = false
	c.send(c.parent.peer, Message{Type: DelayReq, Source: c.parent.port.id, Sequence: s.request, LogInterval: noInterval})
	if delay, ok := usual(c.parent.peer.delay); ok && s.retries < mostRetries && 4*delay < c.cfg.DelayInterval/4 {
		s.retryAt = now.Mono + c.cfg.DelayInterval/4
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
	s.asked, s.retryAt = false, 0
	if told := &from.told; told.ok && t4+c.cfg.SyncInterval < told.at { // its clock was set back: this answers what was asked just now
		told.at = t4
		s.measured = false
	}
	if !s.measured {
		return nil
	}
	correction, _ := m.corrected()
	t4 -= correction - c.cfg.Asymmetry
	delay := (units.Time(float64(s.t2-s.t3)*c.servo.RateRatio()) + (t4 - s.t1)) / 2
	c.learn(now, from, delay)
	return nil
}
