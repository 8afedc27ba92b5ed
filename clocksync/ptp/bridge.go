package ptp

import (
	"encoding/binary"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// Bridge is the peer delay mechanism of a switch that is a peer-to-peer transparent clock (IEEE 1588-2019, sections 10.3 and
// 11.4): it measures the delay of each of its links, answers those at the other ends who measure theirs, and adds to a Sync the
// delay of the link that it came by. Those messages are for the two ends of a link and are never forwarded.
//
// How long the switch holds what passes is added by the switch (clocksync.AddResidence), and so it is for the bridge's own
// messages from the instant of Transmit on: to a Pdelay_Req, whose answer takes it off again, and to a Pdelay_Resp, whose
// turnaround it belongs to. Answers are in one step.
//
// Instants are of the switch's clock, which nobody synchronizes. It does no I/O. Not safe for concurrent use.
type Bridge struct {
	id       ClockIdentity
	interval units.Time
	links    []bridgeLink
	out      []bridged
	next     int // in out: the first that has not left
	counters clocksync.Counters
}

// bridgeLink is one of the links.
type bridgeLink struct {
	delay     *servo.Filter
	requestAt units.Time
	sequence  uint16
	silent    int // questions in a row without an answer
	detours   outliers
	x         exchange
}

// bridged is a message that leaves.
type bridged struct {
	link    int
	message Message
	since   units.Time // of an answer: when the request came
}

// NewBridge returns the bridge of a switch with so many links, each of which it measures once per interval, which is above 0.
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

// bridgePatience is how many questions in a row may be without an answer until the delay is not known any more. Ours.
const bridgePatience = 8

// bridgeDetour is how far beyond the usual a delay is left aside, unless half of the last ten are: as of a clock with servo.DefaultLimits.
const bridgeDetour = detour * units.Microsecond

// bridgeFilter is how many delays of a link the median is of: as of a clock.
const bridgeFilter = 10

// Start begins measuring: all links in turn within the first quarter of an interval, so that no Sync has to wait long.
func (b *Bridge) Start(now units.Time) {
	for i := range b.links {
		b.links[i].requestAt = now + units.Time(i)*(b.interval/4)/units.Time(len(b.links))
	}
}

// Pass corrects a message that came by a link and goes on. It is false for a Sync from a link whose delay is not known: the
// time that it gives would be wrong by that, and it goes no further.
func (b *Bridge) Pass(link int, message []byte) bool {
	if len(message) < headerSize || Type(message[0]&0x0f) != Sync || message[1]&0x0f != version&0x0f {
		return true
	}
	delay, ok := usual(b.links[link].delay)
	if !ok {
		b.counters.Filtered++
		return false
	}
	clocksync.AddResidence(message, delay)
	return true
}

// Receive takes a message of the peer delay mechanism that came by a link. An error means that it was refused.
func (b *Bridge) Receive(now units.Time, link int, message []byte) error {
	err := b.receive(now, link, message)
	switch err {
	case nil:
		b.counters.Received++
	case ErrForeign:
		b.counters.Foreign++
	case ErrStale:
		b.counters.Stale++
	default:
		b.counters.Malformed++
	}
	return err
}

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
		if len(b.out)-b.next > 4*len(b.links) {
			return ErrStale // nobody takes messages away
		}
		b.out = append(b.out, bridged{link: link, since: now, message: Message{
			Type: PDelayResp, Domain: m.Domain, Flags: FlagUnicast, Source: b.port(link), Sequence: m.Sequence,
			LogInterval: noInterval, Requesting: m.Source, Correction: m.Correction,
		}})
		return nil
	case PDelayResp, PDelayRespFollowUp:
		return b.response(now, link, &m)
	}
	return ErrForeign // of the other mechanism, or for those who follow a master
}

func (b *Bridge) port(link int) PortIdentity { return PortIdentity{b.id, uint16(link + 1)} }

// response takes an answer to the bridge's own measurement.
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
		if at < x.t2-turnNoise { // it left before it came
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
	if d, known := b.Delay(link); l.detours.aside(known && delay > d+bridgeDetour) {
		b.counters.Filtered++
		return nil
	}
	l.delay.Add(delay)
	return nil
}

// Transmit writes the next message to out, which has room for MaxSize bytes, and returns the link by which it leaves now.
func (b *Bridge) Transmit(now units.Time, out []byte) (link, n int, ok bool) {
	if b.next == len(b.out) {
		b.out, b.next = b.out[:0], 0
		return 0, 0, false
	}
	e := &b.out[b.next]
	b.next++
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

// Deadline returns when Advance is wanted; ok is false without links.
func (b *Bridge) Deadline() (units.Time, bool) {
	at := units.Never
	for i := range b.links {
		at = min(at, b.links[i].requestAt)
	}
	return at, at != units.Never
}

// Advance tells that the deadline has come.
func (b *Bridge) Advance(now units.Time) {
	for i := range b.links {
		l := &b.links[i]
		if now < l.requestAt {
			continue
		}
		l.requestAt = after(now, l.requestAt, b.interval)
		if l.silent++; l.silent > bridgePatience { // it may be another link by now, or the end of one
			l.delay.Reset()
		}
		l.sequence++
		l.x = exchange{}
		b.out = append(b.out, bridged{link: i, message: Message{
			Type: PDelayReq, Flags: FlagUnicast, Source: b.port(i), Sequence: l.sequence, LogInterval: noInterval,
		}})
	}
}

// Delay returns the delay of a link; ok is false while it is not known.
func (b *Bridge) Delay(link int) (units.Time, bool) { return usual(b.links[link].delay) }

// Counters returns what the bridge did so far. Filtered counts Syncs that went no further, and delays that cannot be.
func (b *Bridge) Counters() clocksync.Counters { return b.counters }

// padTLV fills a message up (IEEE 1588-2019, table 52).
const padTLV = 0x8008

// pad has the message of n bytes in b, an event message without TLVs, be as long as those of the peer delay mechanism, which
// measure how long a link takes for a message of that length.
func pad(b []byte, n int) int {
	const tlvHeader = 4
	size := PDelayReq.size()
	binary.BigEndian.PutUint16(b[n:], padTLV)
	binary.BigEndian.PutUint16(b[n+2:], uint16(size-n-tlvHeader))
	clear(b[n+tlvHeader : size])
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	return size
}
