package ptp

import (
	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// peer is a neighbour of the clock: another node, or the bridge at the other end of its link.
type peer struct {
	node clocksync.Node
	port int // index of the port that it is behind

	delay         *servo.Filter // of the path to it, or of the link
	delayAt       units.Time    // when it was measured, by the monotonic clock
	delayOutliers outliers

	lastOrigin    clockReading // the t1 of its last Sync
	lastAnnounced clockReading // its time in its last Announce

	requests     window       // sequence numbers of its Delay_Req or Pdelay_Req
	requestAt    units.Time   // when to send it a Pdelay_Req
	sequence     uint16       // sequence number of the last one
	exchange     exchange     // the measurement that it began
	neighborRate neighborRate // of its clock
}

// clockReading is the time of a neighbour's clock, from a message. Clocks run forwards, so a
// message with an earlier time is a replay. Readings are kept when a neighbour falls silent, unlike
// everything else about it.
type clockReading struct {
	at units.Time
	ok bool
}

// turnNoise is the longest time by which a response may seem to leave before the request arrived,
// from the noise of stamps. It is our choice.
const turnNoise = 10 * units.Microsecond

// exchange is one measurement of a link by the peer delay mechanism.
type exchange struct {
	t1, t2, t4 units.Time
	correction units.Time   // correctionField of the response
	source     PortIdentity // the port that answered
	sent       bool         // t1 is valid
	answered   bool         // t2 and t4 are valid
}

// neighborRate estimates the rate ratio of a neighbour's clock to this one (neighborRateRatio of
// IEEE 802.1AS) from the first and last of the recent exchanges.
type neighborRate struct {
	theirs, ours [ratioSamples]units.Time
	n, next      int
}

const (
	ratioSamples = 8
	maxRateError = 0.01 // relative; no clock is further off
)

// add records an instant as both clocks show it, and returns the ratio of their rates, theirs over
// ours. It is 1 while unknown.
func (p *neighborRate) add(theirs, ours units.Time) float64 {
	ratio := 1.0
	if p.n == ratioSamples {
		if span := ours - p.ours[p.next]; span > 0 {
			if r := float64(theirs-p.theirs[p.next]) / float64(span); r > 1-maxRateError && r < 1+maxRateError {
				ratio = r
			}
		}
	}
	p.theirs[p.next], p.ours[p.next] = theirs, ours
	p.next = (p.next + 1) % ratioSamples
	p.n = min(p.n+1, ratioSamples)
	return ratio
}

// outlierSteps is the excess over the filtered delay, in units of Limits.FirstStep, above which a
// delay is an outlier. Below it the median suffices, and a path that has become longer is not held
// up. It is our choice.
const outlierSteps = 4

// addDelay records a measured delay. A negative delay beyond the noise of stamps is an error of the
// clocks and is filtered. But before the frequency is known there is nothing better, so then it
// counts as 0: two stamps a second apart differ by 100 us at 100 ppm. A delay that noise makes
// negative is kept, so that the median sees both halves of the noise.
func (c *Clock) addDelay(now clocksync.Now, from *peer, delay units.Time) {
	if delay < -c.stampNoise() || delay > maxCorrection {
		c.counters.Filtered++
		if c.correction.State == clocksync.Locked || delay > maxCorrection {
			return
		}
		delay = 0
	}
	delayed, known := filteredDelay(from.delay)
	first := c.cfg.Limits.FirstStep
	// A message was delayed, as in a spike of the offset.
	if from.delayOutliers.reject(known && delay > delayed+outlierSteps*first) {
		c.counters.Filtered++
		return
	}
	from.delayAt = now.Mono
	from.delay.Add(delay)
}

// stampNoise returns how far below 0 noise can make a delay: half of the sum of four stamps is as
// noisy as one stamp, and eight standard deviations of one do not happen.
func (c *Clock) stampNoise() units.Time { return 8*c.setup.Jitter + c.setup.Quantum }

// filteredDelay returns the delay of a path or link by its last measurements, at least 0. ok is
// false if there are none.
func filteredDelay(f *servo.Filter) (units.Time, bool) {
	delay, ok := f.Value()
	return max(0, delay), ok
}

// advancePeer sends a peer a Pdelay_Req if one is due. Intervals are random, as those of Delay_Req
// are: at equal intervals requests could meet another node's Syncs in a queue every time, which no
// filter would detect.
func (c *Clock) advancePeer(now clocksync.Now, p *peer) {
	if now.Mono < p.requestAt {
		return
	}
	p.requestAt = now.Mono + c.randomDelay(2*c.cfg.Interval)
	p.sequence++
	p.exchange = exchange{}
	c.send(p, Message{
		Type: PDelayReq, Domain: c.cfg.Domain, Source: c.ports[p.port].id, Sequence: p.sequence,
		LogInterval: noInterval,
	})
}

// onPeerRequest answers a Pdelay_Req, in any state of the port.
func (c *Clock) onPeerRequest(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	if !c.cfg.PeerDelay || c.link != nil && from != c.link { // only the bridge is at the other end
		return ErrForeign
	}
	if !from.requests.accept(now.Mono, m.Sequence, 8*c.cfg.Interval) {
		return ErrStale
	}
	answer := Message{
		Type: PDelayResp, Domain: m.Domain, Flags: FlagTwoStep, Source: c.ports[from.port].id,
		Sequence: m.Sequence, LogInterval: noInterval, Requesting: m.Source,
	}
	var rest int64
	answer.Timestamp, rest = stampOf(c.correction.At(stamp))
	// The fraction of t2 reduces the turnaround. The follow-up returns the correction of the
	// request.
	answer.Correction = -rest
	c.sendOwing(from, answer, m.Correction)
	return nil
}

// onPeerResponse handles a Pdelay_Resp, which gives t2 and t4. A one-step response completes the
// delay.
func (c *Clock) onPeerResponse(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	x := &from.exchange
	if !c.cfg.PeerDelay || m.Requesting != c.ports[from.port].id {
		return ErrForeign
	}
	if !x.sent || x.answered || m.Sequence != from.sequence {
		return ErrStale
	}
	oneStep := m.Flags&FlagTwoStep == 0 // the correctionField holds the turnaround, and t2 is 0
	t2, ok := m.Timestamp.instant()
	if !ok && !oneStep {
		return ErrRange
	}
	x.t2, x.t4, x.answered = t2, c.correction.At(stamp), true
	x.correction, _ = m.corrected()
	x.source = m.Source
	if oneStep {
		c.addDelay(now, from, (x.t4-x.t1-x.correction)/2)
		*x = exchange{}
	}
	return nil
}

// onPeerFollowUp handles a Pdelay_Resp_Follow_Up, which gives t3 and completes the delay of the
// link.
func (c *Clock) onPeerFollowUp(now clocksync.Now, from *peer, m *Message) error {
	x := &from.exchange
	if !c.cfg.PeerDelay || m.Requesting != c.ports[from.port].id {
		return ErrForeign
	}
	if !x.answered || m.Sequence != from.sequence {
		return ErrStale
	}
	if m.Source != x.source {
		return ErrForeign
	}
	t3, ok := m.Timestamp.instant()
	if !ok {
		return ErrRange
	}
	if t3 < x.t2-max(turnNoise, 8*c.setup.Jitter) { // the response left before the request came
		*x = exchange{}
		c.counters.Filtered++
		return nil
	}
	correction, _ := m.corrected()
	t3 += x.correction + correction
	ratio := from.neighborRate.add(t3, x.t4)
	c.addDelay(now, from, (units.Time(float64(x.t4-x.t1)*ratio)-(t3-x.t2))/2)
	*x = exchange{}
	return nil
}
