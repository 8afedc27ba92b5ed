package ptp

import (
	"encoding/binary"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// Bridge is the peer delay mechanism of a switch that is a peer-to-peer transparent clock (IEEE
// 1588-2019, sections 10.3 and 11.4). It measures the delay of each of its links, answers the
// measurements of the other ends, and adds to each Sync the delay of the link that it came by. Peer
// delay messages are for the two ends of a link and are never forwarded.
//
// The switch itself adds the residence time of every message (clocksync.AddResidence). For the
// bridge's own messages it does so from the instant of Transmit: to a Pdelay_Req, from which the
// answer subtracts it again, and to a Pdelay_Resp, as part of the turnaround. Answers are one-step.
//
// Instants are those of the switch's clock, which nothing synchronizes. A Bridge does no I/O and is
// not safe for concurrent use.
type Bridge struct {
	id       ClockIdentity
	interval units.Time
	links    []bridgeLink
	out      clocksync.Queue[outgoing]
	counters clocksync.Counters
}

// bridgeLink is the state of one link.
type bridgeLink struct {
	delay         *servo.Filter
	requestAt     units.Time // when to send the next Pdelay_Req
	sequence      uint16     // sequence number of the last one
	silent        int        // requests in a row without an answer
	delayOutliers outliers
	x             exchange // the measurement in progress
}

// outgoing is a message to send.
type outgoing struct {
	link    int
	message Message
	since   units.Time // when the request came, for an answer
}

// NewBridge returns the bridge of a switch with the given number of links. It measures each link
// once per interval, which must be above 0.
func NewBridge(id ClockIdentity, links int, interval units.Time) (*Bridge, error) {
	if interval <= 0 || links < 0 || links > 1<<15 {
		return nil, ErrRange
	}
	b := &Bridge{id: id, interval: interval, links: make([]bridgeLink, links)}
	for i := range b.links {
		f, err := servo.NewFilter(servo.Median, bridgeFilter)
		if err != nil {
			return nil, err
		}
		b.links[i].delay = f
	}
	return b, nil
}

// maxSilent is the number of requests in a row without an answer after which the delay of a link
// counts as unknown. It is our choice.
const maxSilent = 8

// bridgeOutlier is the excess over the filtered delay above which a delay is an outlier: that of a
// Clock with servo.DefaultLimits.
const bridgeOutlier = outlierSteps * units.Microsecond

// bridgeFilter is the number of delays in the median of a link: that of a Clock.
const bridgeFilter = 10

// Start begins to measure. The links take turns within the first quarter of an interval, so that no
// Sync waits long for its first delay.
func (b *Bridge) Start(now units.Time) {
	for i := range b.links {
		b.links[i].requestAt = now + units.Time(i)*(b.interval/4)/units.Time(len(b.links))
	}
}

// Pass corrects a message that came by a link and is to be forwarded. It returns false for a Sync
// from a link whose delay is unknown, which must not be forwarded: its time would be wrong by that
// delay.
func (b *Bridge) Pass(link int, message []byte) bool {
	if len(message) < headerSize || Type(message[0]&0x0f) != Sync || message[1]&0x0f != version&0x0f {
		return true
	}
	delay, ok := filteredDelay(b.links[link].delay)
	if !ok {
		b.counters.Filtered++
		return false
	}
	clocksync.AddResidence(message, delay)
	return true
}

// Receive handles a message of the peer delay mechanism that came by a link. An error means that it
// was refused.
func (b *Bridge) Receive(now units.Time, link int, message []byte) error {
	err := b.receive(now, link, message)
	b.counters.Count(err, ErrForeign, ErrStale)
	return err
}

// receive decodes a message and dispatches it by type.
func (b *Bridge) receive(now units.Time, link int, message []byte) error {
	var m Message
	if err := m.Decode(message); err != nil {
		return err
	}
	if _, ok := m.corrected(); !ok || link < 0 || link >= len(b.links) {
		return ErrRange
	}
	switch m.Type {
	case PDelayReq:
		if b.out.Len() > 4*len(b.links) {
			return ErrStale // Transmit is not being called
		}
		b.out.Push(outgoing{link: link, since: now, message: Message{
			Type: PDelayResp, Domain: m.Domain, Flags: FlagUnicast, Source: b.port(link), Sequence: m.Sequence,
			LogInterval: noInterval, Requesting: m.Source, Correction: m.Correction,
		}})
		return nil
	case PDelayResp, PDelayRespFollowUp:
		return b.response(now, link, &m)
	}
	return ErrForeign // of the end-to-end mechanism, or for slaves
}

// port returns the identity of the port at a link.
func (b *Bridge) port(link int) PortIdentity { return PortIdentity{b.id, uint16(link + 1)} }

// response handles an answer to the bridge's own measurement, in one or two steps.
func (b *Bridge) response(now units.Time, link int, m *Message) error {
	l := &b.links[link]
	x := &l.x
	correction, _ := m.corrected()
	at, inReach := m.Timestamp.instant()
	switch {
	case m.Requesting != b.port(link):
		return ErrForeign
	case !x.sent || m.Sequence != l.sequence || x.answered == (m.Type == PDelayResp):
		return ErrStale
	case m.Type == PDelayRespFollowUp && m.Source != x.source:
		return ErrForeign
	case !inReach && (m.Type == PDelayRespFollowUp || m.Flags&FlagTwoStep != 0):
		return ErrRange
	}
	turnaround := correction
	if m.Type == PDelayResp {
		x.t2, x.t4, x.correction, x.answered, x.source = at, now, correction, true, m.Source
		if m.Flags&FlagTwoStep != 0 {
			return nil
		}
	} else {
		if at < x.t2-turnNoise { // the response left before the request came
			*x = exchange{}
			b.counters.Filtered++
			return nil
		}
		turnaround = at + x.correction + correction - x.t2
	}
	delay := (x.t4 - x.t1 - turnaround) / 2
	*x = exchange{}
	if delay > maxCorrection || delay < -turnNoise {
		b.counters.Filtered++
		return nil
	}
	l.silent = 0
	if d, known := b.Delay(link); l.delayOutliers.reject(known && delay > d+bridgeOutlier) {
		b.counters.Filtered++
		return nil
	}
	l.delay.Add(delay)
	return nil
}

// Transmit writes the next message to out, which has room for MaxSize bytes. It returns the link by
// which the message leaves now, and its length. ok is false if there is none.
func (b *Bridge) Transmit(now units.Time, out []byte) (link, n int, ok bool) {
	e := b.out.Pop()
	if e == nil {
		return 0, 0, false
	}
	if e.message.Type == PDelayReq {
		x := &b.links[e.link].x
		x.t1, x.sent = now, true
	} else {
		e.message.Correction += clocksync.Scaled(now - e.since)
	}
	b.counters.Sent++
	n = e.message.Encode(out)
	b.counters.SentBytes += int64(n)
	return e.link, n, true
}

// Deadline returns when Advance must be called. ok is false without links.
func (b *Bridge) Deadline() (units.Time, bool) {
	at := units.Never
	for i := range b.links {
		at = min(at, b.links[i].requestAt)
	}
	return at, at != units.Never
}

// Advance sends the requests that are due.
func (b *Bridge) Advance(now units.Time) {
	for i := range b.links {
		l := &b.links[i]
		if now < l.requestAt {
			continue
		}
		l.requestAt = after(now, l.requestAt, b.interval)
		if l.silent++; l.silent > maxSilent { // the link may be a different one, or down
			l.delay.Reset()
		}
		l.sequence++
		l.x = exchange{}
		b.out.Push(outgoing{link: i, message: Message{
			Type: PDelayReq, Flags: FlagUnicast, Source: b.port(i), Sequence: l.sequence, LogInterval: noInterval,
		}})
	}
}

// Delay returns the filtered delay of a link. ok is false while it is unknown.
func (b *Bridge) Delay(link int) (units.Time, bool) { return filteredDelay(b.links[link].delay) }

// Counters returns the counters so far. Filtered counts Syncs that were not forwarded, and delays
// that were not used.
func (b *Bridge) Counters() clocksync.Counters { return b.counters }

// padTLV is the type of a TLV that pads a message (IEEE 1588-2019, table 52).
const padTLV = 0x8008

// pad extends an event message of n bytes without TLVs to the length of peer delay messages, and
// returns that length. The delay of a link is measured, and valid, for messages of that length.
func pad(b []byte, n int) int {
	const tlvHeader = 4
	size := PDelayReq.size()
	binary.BigEndian.PutUint16(b[n:], padTLV)
	binary.BigEndian.PutUint16(b[n+2:], uint16(size-n-tlvHeader))
	clear(b[n+tlvHeader : size])
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	return size
}
