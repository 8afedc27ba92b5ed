package ptp

import (
	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// Transparent is a transparent clock: a bridge that passes messages on and adds to event messages how long it held
// them, as its own clock measures that. With the peer delay mechanism it also measures the links to its neighbours,
// answers their measurements, and adds to Sync the delay of the link on which it came.
//
// Readings are of the bridge's own clock, which nobody synchronizes.
type Transparent struct {
	id       ClockIdentity
	peer     bool
	interval units.Time
	links    []bridgeLink
	out      []bridged
	refused  int64
}

// bridgeLink is a port of the bridge.
type bridgeLink struct {
	delay     *servo.Filter
	requestAt units.Time
	sequence  uint16
	x         exchange
}

// bridged is a message on its way through, or an own one.
type bridged struct {
	port  int
	n     int
	held  units.Time // ingress, less what else is to be added
	event bool
	own   bool // a Pdelay_Req of the bridge
	data  [clocksync.MaxMessage]byte
}

// NewTransparent returns a bridge of that many ports. With peerDelay it measures each link once per interval, which
// is above 0 then.
func NewTransparent(id ClockIdentity, ports int, peerDelay bool, interval units.Time) (*Transparent, error) {
	b := &Transparent{id: id, peer: peerDelay, interval: interval, links: make([]bridgeLink, ports)}
	for i := range b.links {
		f, err := servo.NewFilter(servo.Median, 10)
		if err != nil {
			return nil, err
		}
		b.links[i].delay = f
		if peerDelay && interval <= 0 {
			return nil, ErrRange
		}
	}
	return b, nil
}

// Start begins measuring.
func (b *Transparent) Start(local units.Time) {
	for i := range b.links {
		b.links[i].requestAt = local + units.Time(i)*b.interval/units.Time(len(b.links))
	}
}

// Receive takes a message that came by a port at an instant of the bridge's clock, and passes it on by all others or
// answers it. An error means that it was refused.
func (b *Transparent) Receive(local units.Time, port int, data []byte) error {
	var m Message
	err := m.Decode(data)
	if err == nil && (len(data) > clocksync.MaxMessage || port < 0 || port >= len(b.links)) {
		err = ErrRange
	}
	if err == nil && len(b.out) > 64*len(b.links) {
		err = ErrStale // nobody takes messages away
	}
	if err != nil {
		b.refused++
		return err
	}
	l := &b.links[port]
	switch {
	case b.peer && m.Type == PDelayReq:
		b.answer(local, port, &m)
		return nil
	case b.peer && (m.Type == PDelayResp || m.Type == PDelayRespFollowUp):
		return b.response(local, l, &m)
	case b.peer && (m.Type == DelayReq || m.Type == DelayResp):
		b.refused++ // of the other mechanism
		return ErrForeign
	}
	held := local
	if delay, ok := l.delay.Value(); b.peer && m.Type == Sync {
		if !ok {
			return nil // the time it gives would be wrong by a link
		}
		held -= delay
	}
	for i := range b.links {
		if i != port {
			e := bridged{port: i, n: len(data), held: held, event: m.Type.Event()}
			copy(e.data[:], data)
			b.out = append(b.out, e)
		}
	}
	return nil
}

// answer is a one-step Pdelay_Resp: its correctionField will hold the turnaround.
func (b *Transparent) answer(local units.Time, port int, m *Message) {
	e := bridged{port: port, held: local, event: true}
	r := Message{Type: PDelayResp, Domain: m.Domain, Flags: FlagUnicast, Source: PortIdentity{b.id, uint16(port + 1)},
		Sequence: m.Sequence, LogInterval: noInterval, Requesting: m.Source, Correction: m.Correction}
	e.n = r.Encode(e.data[:])
	b.out = append(b.out, e)
}

// response takes an answer to the bridge's own measurement.
func (b *Transparent) response(local units.Time, l *bridgeLink, m *Message) error {
	x := &l.x
	correction, ok := m.corrected()
	at, inReach := m.Timestamp.instant()
	switch {
	case m.Requesting.Clock != b.id:
		b.refused++
		return ErrForeign
	case !x.sent || m.Sequence != l.sequence || x.answered == (m.Type == PDelayResp):
		b.refused++
		return ErrStale
	case !ok || !inReach && (m.Type == PDelayRespFollowUp || m.Flags&FlagTwoStep != 0):
		b.refused++
		return ErrRange
	}
	turnaround := correction
	if m.Type == PDelayResp {
		x.t2, x.t4, x.correction, x.answered = at, local, correction, true
		if m.Flags&FlagTwoStep != 0 {
			return nil
		}
	} else {
		turnaround = at + x.correction + correction - x.t2
	}
	if delay := (x.t4 - x.t1 - turnaround) / 2; delay >= 0 {
		l.delay.Add(delay)
	}
	*x = exchange{}
	return nil
}

// Transmit copies the next message to leave to out and returns the port by which its first bit leaves now.
func (b *Transparent) Transmit(local units.Time, out []byte) (port, n int, ok bool) {
	if len(b.out) == 0 {
		return 0, 0, false
	}
	e := b.out[0]
	b.out = b.out[1:]
	switch {
	case e.own:
		b.links[e.port].x.t1, b.links[e.port].x.sent = local, true
	case e.event:
		clocksync.AddResidence(e.data[:e.n], local-e.held)
	}
	return e.port, copy(out, e.data[:e.n]), true
}

// Deadline returns when Advance is wanted, by the bridge's clock.
func (b *Transparent) Deadline() (units.Time, bool) {
	at := units.Never
	if b.peer {
		for i := range b.links {
			at = min(at, b.links[i].requestAt)
		}
	}
	return at, at != units.Never
}

// Advance tells that the deadline has come.
func (b *Transparent) Advance(local units.Time) {
	for i := range b.links {
		l := &b.links[i]
		if !b.peer || local < l.requestAt {
			continue
		}
		l.requestAt = after(local, l.requestAt, b.interval)
		l.sequence++
		l.x = exchange{}
		e := bridged{port: i, event: true, own: true}
		m := Message{Type: PDelayReq, Flags: FlagUnicast, Source: PortIdentity{b.id, uint16(i + 1)}, Sequence: l.sequence, LogInterval: noInterval}
		e.n = m.Encode(e.data[:])
		b.out = append(b.out, e)
	}
}

// Refused counts messages that were refused.
func (b *Transparent) Refused() int64 { return b.refused }
