package ptp

import (
	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// peer is a neighbour.
type peer struct {
	node   clocksync.Node
	port   int           // index of the port it is behind
	delay  *servo.Filter // of the path to it, or of the link
	last   units.Time    // delay measured last
	learnt units.Time    // when, by the monotonic clock

	detours outliers // of the delay

	told      reading // the t1 that it gave last
	announced reading // what its clock showed at its last Announce

	requests  window     // sequence numbers of its Delay_Req or Pdelay_Req
	requestAt units.Time // when to send it a Pdelay_Req
	sequence  uint16     // of the last
	exchange  exchange
	pace      pace
}

// reading is what a neighbour said that its clock showed. A clock runs forwards: what is earlier than what it said
// before was said before, and comes again. What is known outlasts whatever else is forgotten of a neighbour that falls silent.
type reading struct {
	at units.Time
	ok bool
}

// turnNoise is by how much an answer may seem to have left before the question came, by the noise of stamps. Ours.
const turnNoise = 10 * units.Microsecond

// exchange is one measurement of a link.
type exchange struct {
	t1, t2, t4 units.Time
	correction units.Time // of the response
	source     PortIdentity
	sent       bool // t1 is valid
	answered   bool // t2 and t4 are
}

// pace follows the rate of a neighbour's clock against this one, over the last exchanges.
type pace struct {
	theirs, ours [paceSize]units.Time
	n, next      int
}

const (
	paceSize  = 8
	paceLimit = 0.01 // beyond, it is no rate of a clock
)

// add takes an instant as both clocks show it and returns the ratio of their rates, theirs over ours; 1 while unknown.
func (p *pace) add(theirs, ours units.Time) float64 {
	ratio := 1.0
	if p.n == paceSize {
		if span := ours - p.ours[p.next]; span > 0 {
			if r := float64(theirs-p.theirs[p.next]) / float64(span); r > 1-paceLimit && r < 1+paceLimit {
				ratio = r
			}
		}
	}
	p.theirs[p.next], p.ours[p.next] = theirs, ours
	p.next = (p.next + 1) % paceSize
	p.n = min(p.n+1, paceSize)
	return ratio
}

// detour is how many FirstSteps beyond the usual a delay has to be to be left aside: what is below is what the median is for,
// and a path that became longer should not have to wait. Ours.
const detour = 4

// learn takes a measured delay. Nothing arrives before it was sent: one that is below 0 by more than stamps are noisy is an error of the
// clocks, and is not used. A clock whose frequency is not known yet has no better, though: 100 ppm between two stamps that
// lie a second apart are 100 us. One that is below 0 by noise is kept, so that the median is of both halves of it.
func (c *Clock) learn(now clocksync.Now, from *peer, delay units.Time) {
	if delay < -c.stampNoise() || delay > maxCorrection {
		c.counters.Filtered++
		if c.correction.State == clocksync.Locked || delay > maxCorrection {
			return
		}
		delay = 0
	}
	delayed, known := usual(from.delay)
	if from.detours.aside(known && c.cfg.Limits.FirstStep > 0 && delay > delayed+detour*c.cfg.Limits.FirstStep) { // held up on its way, as a spike of the offset is
		c.counters.Filtered++
		return
	}
	from.last, from.learnt = delay, now.Mono
	from.delay.Add(delay)
}

// stampNoise is by how much a delay may seem to be below 0: half of a sum of four stamps is as noisy as one, and eight deviations
// of one do not happen.
func (c *Clock) stampNoise() units.Time { return 8*c.setup.Jitter + c.setup.Quantum }

// usual is the delay of a path or link as its last measurements have it; ok is false when there are none.
func usual(f *servo.Filter) (units.Time, bool) {
	delay, ok := f.Value()
	return max(0, delay), ok
}

// advancePeer asks a neighbour for the delay of the link, at random instants as Delay_Reqs are: at equal distances
// questions could meet somebody's Syncs in a queue every time, and no filter would see it.
func (c *Clock) advancePeer(now clocksync.Now, p *peer) {
	if now.Mono < p.requestAt {
		return
	}
	p.requestAt = now.Mono + c.spread(2*c.cfg.DelayInterval)
	p.sequence++
	p.exchange = exchange{}
	c.send(p, Message{Type: PDelayReq, Domain: c.cfg.Domain, Source: c.ports[p.port].id, Sequence: p.sequence, LogInterval: noInterval})
}

// onPeerRequest answers a neighbour, in any state of the port.
func (c *Clock) onPeerRequest(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	if !c.cfg.PeerDelay || c.link != nil && from != c.link { // nobody but the bridge is at the other end
		return ErrForeign
	}
	if !from.requests.accept(now.Mono, m.Sequence, 8*c.cfg.DelayInterval) {
		return ErrStale
	}
	answer := Message{Type: PDelayResp, Domain: m.Domain, Flags: FlagTwoStep, Source: c.ports[from.port].id, Sequence: m.Sequence,
		LogInterval: noInterval, Requesting: m.Source}
	var rest int64
	answer.Timestamp, rest = stampOf(c.correction.At(stamp))
	// The fraction of t2 counts against the turnaround; the Follow_Up returns what the request was corrected by.
	answer.Correction = -rest
	c.sendOwing(from, answer, m.Correction)
	return nil
}

// onPeerResponse takes t2 and t4.
func (c *Clock) onPeerResponse(now clocksync.Now, from *peer, m *Message, stamp units.Time) error {
	x := &from.exchange
	if !c.cfg.PeerDelay || m.Requesting != c.ports[from.port].id {
		return ErrForeign
	}
	if !x.sent || x.answered || m.Sequence != from.sequence {
		return ErrStale
	}
	oneStep := m.Flags&FlagTwoStep == 0 // the correctionField holds the turnaround, and there is no t2
	t2, ok := m.Timestamp.instant()
	if !ok && !oneStep {
		return ErrRange
	}
	x.t2, x.t4, x.answered = t2, c.correction.At(stamp), true
	x.correction, _ = m.corrected()
	x.source = m.Source
	if oneStep {
		c.learn(now, from, (x.t4-x.t1-x.correction)/2)
		*x = exchange{}
	}
	return nil
}

// onPeerFollowUp takes t3 and with it the delay of the link.
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
	if t3 < x.t2-max(turnNoise, 8*c.setup.Jitter) { // it left before it came
		*x = exchange{}
		c.counters.Filtered++
		return nil
	}
	correction, _ := m.corrected()
	t3 += x.correction + correction
	ratio := from.pace.add(t3, x.t4)
	c.learn(now, from, (units.Time(float64(x.t4-x.t1)*ratio)-(t3-x.t2))/2)
	*x = exchange{}
	return nil
}
