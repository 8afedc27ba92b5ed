package ptp

import (
	"math/bits"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// slave measures offset and delay to the parent.
type slave struct {
	sync     half       // the Sync that waits for its Follow_Up
	followUp half       // the Follow_Up that overtook its Sync
	sequence window     // of Sync
	t1, t2   units.Time // of the last Sync; t1 includes all corrections
	hard     units.Time // t2 by the hardware clock
	measured bool       // t1 and t2 are valid

	requestAt units.Time // when to send a Delay_Req
	retryAt   units.Time // when to send another one if that is not answered
	retries   int        // Delay_Reqs since the last that was due
	request   uint16     // sequence number of the last Delay_Req
	t3        units.Time // when it left
	asked     bool       // it left and is not answered yet; t3 is valid

	parentTimeoutAt units.Time // when the parent is dropped for lack of measurements
	holdoverAt      units.Time // when holdover begins for lack of measurements
	slewEndAt       units.Time // when the rate that corrects an offset has corrected it
	halfAt          units.Time // when the last half of a measurement came
	spikes          outliers   // of the offset
}

// half is one of the two messages of a pair of Sync and Follow_Up.
type half struct {
	ok         bool
	sequence   uint16
	at         units.Time // t2 of a Sync, t1 of a Follow_Up
	hard       units.Time // t2 by the hardware clock
	correction units.Time // its correctionField
}

// holdoverAfter is the number of sync intervals without a measurement after which holdover begins.
// The rate may still be correcting an offset until then.
const holdoverAfter = 3

// maxAhead is the largest difference of sequence numbers by which a Follow_Up may be ahead of the
// last Sync.
const maxAhead = 64

// deadline returns the earliest timer of the slave.
func (s *slave) deadline() units.Time {
	return min(orNever(s.requestAt), orNever(s.retryAt), orNever(s.parentTimeoutAt), orNever(s.holdoverAt),
		orNever(s.slewEndAt))
}

// orNever returns Never for the zero value, which is a timer that is off: a slave without a parent
// has none.
func orNever(t units.Time) units.Time {
	if t == 0 {
		return units.Never
	}
	return t
}

// start begins to follow a new parent. Only the sequence number of requests is kept.
func (s *slave) start(now units.Time, c *Clock) {
	*s = slave{request: s.request}
	s.rearm(now, c)
	if !c.cfg.PeerDelay {
		s.requestAt = now + c.randomDelay(2*c.cfg.Interval)
		c.parent.peer.delay.Reset()
		c.parent.peer.delayAt = now // nothing is measured yet, but the timeout begins now
	}
}

// rearm restarts the timers that end without a measurement.
func (s *slave) rearm(now units.Time, c *Clock) {
	s.holdoverAt = now + holdoverAfter*c.cfg.Interval
	if c.cfg.SyncTimeout > 0 {
		s.parentTimeoutAt = now + c.measurementTimeout()
	}
}

// measurementTimeout returns how long a parent may give no offset before it is dropped, which is
// also how long a measured delay is valid.
func (c *Clock) measurementTimeout() units.Time {
	if c.cfg.SyncTimeout == 0 {
		return units.Never
	}
	return units.Time(c.cfg.SyncTimeout) * 2 * c.cfg.Interval
}

// stop ends following. All timers are off.
func (s *slave) stop() { *s = slave{request: s.request} }

// flush discards all stamps, as needed after a step.
func (s *slave) flush() {
	s.sync, s.followUp, s.measured, s.asked = half{}, half{}, false, false
}

// requested records when a Delay_Req left.
func (s *slave) requested(sequence uint16, at units.Time) {
	if sequence == s.request {
		s.t3, s.asked = at, true
	}
}

// fromParent reports whether a message comes from the parent.
func (c *Clock) fromParent(from *peer, m *Message) bool {
	return c.parent.ok && c.parent.peer == from && c.parent.source == m.Source
}

// onSync handles a Sync, which gives t2. A one-step Sync gives t1 as well.
func (c *Clock) onSync(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	if !c.fromParent(from, m) {
		return ErrForeign
	}
	s := &c.slave
	last := s.sequence
	if !s.sequence.accept(now.Mono, m.Sequence, holdoverAfter*c.cfg.Interval) {
		return ErrStale
	}
	if last.ok && int16(m.Sequence-last.last) <= 0 { // the master restarted: the Follow_Up is from before
		s.followUp = half{}
	}
	correction, _ := m.corrected()
	s.sync = half{ok: true, sequence: m.Sequence, at: c.correction.At(stamp), hard: stamp, correction: correction}
	c.parentAlive(now)
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

// parentAlive records that the parent sends time. So it is alive, even if its Announces are lost.
func (c *Clock) parentAlive(now clocksync.Now) {
	c.slave.halfAt = now.Mono
	if f := c.parent.port.find(c.parent.source); f != nil {
		f.announcedAt = now.Mono
	}
}

// onFollowUp handles a Follow_Up, which gives t1.
func (c *Clock) onFollowUp(now clocksync.Now, from *peer, m *Message) error {
	if !c.fromParent(from, m) {
		return ErrForeign
	}
	s := &c.slave
	if s.sequence.ok && !s.sync.ok && int16(m.Sequence-s.sequence.last) <= 0 ||
		s.sync.ok && int16(m.Sequence-s.sync.sequence) < 0 ||
		s.followUp.ok && int16(m.Sequence-s.followUp.sequence) <= 0 ||
		s.sequence.ok && int16(m.Sequence-s.sequence.last) > maxAhead {
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

// pair measures the offset once a Sync has its Follow_Up. If the two do not belong together, the
// older one is dropped. A t1 that is not later than the last one is a replay; after a silence the
// sequence number cannot show that.
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
	last := &c.parent.peer.lastOrigin
	if last.ok && s.followUp.at <= last.at {
		s.sync, s.followUp = half{}, half{}
		return ErrStale
	}
	*last = clockReading{ok: true, at: s.followUp.at}
	s.t1 = s.followUp.at + s.followUp.correction + s.sync.correction
	s.t2, s.hard = s.sync.at, s.sync.hard
	s.measured = true
	s.sync, s.followUp = half{}, half{}
	c.measure(now)
	return nil
}

// measure computes the offset from t1, t2 and the delay, passes it to the servo, and publishes a
// new correction. It does nothing until a delay is known, and filters the sample if the last delay
// is too old.
func (c *Clock) measure(now clocksync.Now) {
	source := c.delaySource()
	delay, ok := filteredDelay(source.delay)
	if !ok {
		return
	}
	if now.Mono-source.delayAt > c.measurementTimeout() { // delays have stopped coming, so the path may have changed
		c.counters.Filtered++
		return
	}
	s := &c.slave
	_, traced := accuracyBound(c.parent.set.Accuracy)
	if traced && c.untraced { // the servo followed a clock that is unrelated to the time
		c.servo.Restart()
		c.bound.Reset()
	}
	c.untraced = !traced
	offset := s.t2 - s.t1 - delay
	if c.spike(now, offset) {
		return
	}
	s.rearm(now.Mono, c)
	rate, state := c.servo.Update(servo.Sample{Local: s.hard, Sync: s.t2, Offset: offset})
	c.steer(now, offset, rate, state)
}

// delaySource returns the peer whose delay the offset is measured with: the parent, or the bridge,
// since the correctionField holds the rest of the path.
func (c *Clock) delaySource() *peer {
	if c.link != nil {
		return c.link
	}
	return c.parent.peer
}

// A spike is an offset that is larger than Limits.FirstStep and larger than spikeSpan times the
// typical offset: its Sync was delayed. SPTP's client does the same with a ring of 30 and 15 skips;
// the numbers here are ours.
const (
	spikeSpan    = 2 // in typical offsets
	spikeSamples = 8 // offsets before which nothing counts as a spike
)

// outliers records which of the last ten measurements were outliers, one bit each.
type outliers uint16

// reject records whether a measurement is an outlier, and reports whether to ignore it. If half of
// the last ten are outliers, the measured quantity has changed, and none is ignored.
func (o *outliers) reject(far bool) bool {
	*o = *o << 1 & 0x3ff
	if far {
		*o |= 1
	}
	return far && bits.OnesCount16(uint16(*o)) < 5
}

// spike reports whether an offset is a spike, which must be ignored. It counts as a sign of life of
// the parent.
func (c *Clock) spike(now clocksync.Now, offset units.Time) bool {
	s := &c.slave
	size := max(offset, -offset)
	first := c.cfg.Limits.FirstStep
	known := c.bound.Samples() >= spikeSamples
	if !s.spikes.reject(size > first && known && size > spikeSpan*c.bound.Typical()) {
		return false
	}
	s.measured = false // the Sync is no good for a delay either
	c.counters.Filtered++
	if c.cfg.SyncTimeout > 0 {
		s.parentTimeoutAt = now.Mono + c.measurementTimeout()
	}
	return true
}

// steer publishes the correction that follows from the decision of the servo.
func (c *Clock) steer(now clocksync.Now, offset units.Time, rate float64, state servo.State) {
	if state == servo.Unlocked {
		return
	}
	k := c.correction.Rebase(now.Hard)
	k.Rate = rate
	c.slave.slewEndAt = now.Mono + c.cfg.Interval + c.cfg.Interval/4
	if state == servo.Jump {
		k.Offset -= offset
		if k.State != clocksync.Free { // its error is at most the old bound and the step
			k.State, k.Bound = clocksync.Holdover, k.Bound+max(offset, -offset)
		}
		c.slave.flush()
		c.eachMeasured(func(p *peer) { p.exchange = exchange{} })
		c.delaySource().delay.Reset() // it was measured with the wrong frequency
		c.bound.Reset()
		c.counters.Steps++
		offset = 0
	}
	c.bound.Add(offset, c.servo.Holdover())
	steady, unsteady := c.bound.Steady()
	known, traced := accuracyBound(c.parent.set.Accuracy)
	if w, drift, ok := c.bound.Last(minSamples); ok {
		steps := units.Time(c.parent.set.Steps) + 1 // every clock on the path errs by its own amount
		k.Bound = w*steps + c.cfg.AsymmetryBound + known
		k.Drift = max(drift, 2*unsteady, minDrift) * float64(steps)
		k.State = clocksync.Locked
	}
	k.Slew = rate - steady
	if !traced { // the grandmaster does not know the time
		k.Bound, k.Drift, k.State = 0, 0, clocksync.Free
	}
	c.publish(k)
	if p := c.parent.port; p.state == Uncalibrated && state == servo.Locked {
		p.state = Slave
	}
}

// minSamples is the number of samples that a bound needs.
const minSamples = 8

// minDrift is the least growth of a bound, relative: no frequency is known to better than 1 ppb.
const minDrift = 1e-9

// publish replaces the correction, unless the new one is invalid.
func (c *Clock) publish(k clocksync.Correction) { c.counters.Publish(&c.correction, k) }

// holdOver enters holdover: the frequency stays, without the part that was correcting an offset.
func (c *Clock) holdOver(now clocksync.Now) {
	if c.correction.State == clocksync.Locked || c.correction.Slew != 0 {
		c.publish(c.correction.Hold(now.Hard))
	}
}

// advanceSlave runs the timers of the slave that are due.
func (c *Clock) advanceSlave(now clocksync.Now) {
	s := &c.slave
	if !c.parent.ok {
		return
	}
	if now.Mono >= orNever(s.slewEndAt) {
		s.slewEndAt = 0
		k := c.correction.Rebase(now.Hard)
		k.Rate, k.Slew = k.Rate-k.Slew, 0
		c.publish(k)
	}
	if now.Mono >= orNever(s.holdoverAt) {
		s.holdoverAt = 0
		c.holdOver(now)
	}
	if now.Mono >= orNever(s.parentTimeoutAt) {
		if s.parentTimeoutAt = now.Mono + c.measurementTimeout(); !c.mayRecover(now) {
			s.parentTimeoutAt = 0
			c.giveUp(now)
			return
		}
	}
	c.askDelay(now)
}

// mayRecover reports whether a parent without recent offsets is worth waiting for: it still sends
// half of the messages of a measurement, and delays came not long ago.
func (c *Clock) mayRecover(now clocksync.Now) bool {
	timeout := c.measurementTimeout()
	return now.Mono-c.slave.halfAt < timeout && now.Mono-c.delaySource().delayAt < 4*timeout
}

// maxRetries is the number of Delay_Reqs that may be sent between two regular ones, each after a
// quarter of the delay interval without an answer. Without loss there are none. It is our choice.
const maxRetries = 3

// askDelay sends a Delay_Req if one is due.
func (c *Clock) askDelay(now clocksync.Now) {
	s := &c.slave
	due, again := now.Mono >= orNever(s.requestAt), now.Mono >= orNever(s.retryAt)
	if !due && !again {
		return
	}
	s.retryAt = 0
	if due {
		s.requestAt = now.Mono + c.randomDelay(2*c.cfg.Interval)
		s.retries = 0
	} else {
		s.retries++
	}
	s.request++
	s.asked = false
	p := c.parent.peer
	c.send(p, Message{Type: DelayReq, Source: c.parent.port.id, Sequence: s.request, LogInterval: noInterval})
	if delay, ok := filteredDelay(p.delay); ok && s.retries < maxRetries && 4*delay < c.cfg.Interval/4 {
		s.retryAt = now.Mono + c.cfg.Interval/4
	}
}

// giveUp drops a parent that announces itself but gives no time. It must qualify again.
func (c *Clock) giveUp(now clocksync.Now) {
	p := c.parent.port
	for i := range p.foreign {
		if f := &p.foreign[i]; f.claim.sender == c.parent.source {
			f.trusted, f.count = false, 0
		}
	}
	c.decideStates(now)
}

// onDelayReq answers a Delay_Req with t4, as a master.
func (c *Clock) onDelayReq(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	p := &c.ports[from.port]
	if p.state != Master || c.cfg.PeerDelay {
		return ErrForeign
	}
	if !from.requests.accept(now.Mono, m.Sequence, 8*c.cfg.Interval) {
		return ErrStale
	}
	answer := Message{
		Type: DelayResp, Source: p.id, Sequence: m.Sequence, LogInterval: logInterval(c.cfg.Interval),
		Requesting: m.Source,
	}
	var rest int64
	answer.Timestamp, rest = stampOf(c.correction.At(stamp) + c.lie)
	answer.Correction = m.Correction - rest
	c.send(from, answer)
	return nil
}

// onDelayResp handles a Delay_Resp, which gives t4 and completes a delay.
func (c *Clock) onDelayResp(now clocksync.Now, from *peer, m *Message) error {
	if !c.fromParent(from, m) || m.Requesting != c.parent.port.id {
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
	// The answer to an open request is fresh, so an early t4 means that the parent's clock was set
	// back.
	if last := &from.lastOrigin; last.ok && t4+c.cfg.Interval < last.at {
		last.at = t4
		s.measured = false
	}
	if !s.measured {
		return nil
	}
	correction, _ := m.corrected()
	t4 -= correction
	delay := (units.Time(float64(s.t2-s.t3)*c.servo.RateRatio()) + (t4 - s.t1)) / 2
	c.addDelay(now, from, delay)
	return nil
}
