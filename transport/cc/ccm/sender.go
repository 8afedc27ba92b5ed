package ccm

import (
	"errors"
	"fmt"

	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/pc4"
	"weft/transport/cc/swift"
	"weft/units"
)

// Params are the parameters of a connection. One of the congestion controls is set.
type Params struct {
	DCQCN *dcqcn.Params `json:",omitempty"`
	Swift *swift.Params `json:",omitempty"`
	PC4   *pc4.Params   `json:",omitempty"`

	// Timeout is how long the CC indicator is set without being confirmed: the notification that would end it may be lost.
	// Switches confirm more often. A notification that is older is a replay.
	Timeout units.Time

	// Paths is how many source ports the source may change between when it is asked for another path; 1: it cannot.
	Paths int
}

// Check names the first parameter that is out of range.
func (p Params) Check() error {
	var inner []cc.Params
	if p.DCQCN != nil {
		inner = append(inner, *p.DCQCN)
	}
	if p.Swift != nil {
		inner = append(inner, *p.Swift)
	}
	if p.PC4 != nil {
		inner = append(inner, *p.PC4)
	}
	switch {
	case len(inner) != 1:
		return fmt.Errorf("ccm: %d congestion controls inside, not 1", len(inner))
	case p.Timeout <= 0:
		return fmt.Errorf("ccm: a timeout of %d ps", p.Timeout)
	case p.Paths < 1 || p.Paths > 256:
		return fmt.Errorf("ccm: %d paths, not 1 to 256", p.Paths)
	}
	return inner[0].Check()
}

// SourcePorts is how many source ports a connection uses.
func (p Params) SourcePorts() int { return p.Paths }

// Sender holds back the congestion control inside it.
type Sender struct {
	inner   cc.Controller
	timed   cc.Timed    // inner, or nil
	held    cc.Held     // inner, or nil
	cnp     cc.Notified // inner, or nil
	timeout units.Time
	baseRTT units.Time

	cc     bool       // the CC indicator is set
	until  units.Time // and how long
	marked units.Time // signals are heeded up to then although it is not: no path is light
	heard  [sources]source
	floor  units.Time // of sources that are not among these: nothing up to then counts
}

// sources is how many switches are remembered, to tell replays: the last hop, and those that may ask on the way.
const sources = 8

// source is a switch that has told something.
type source struct {
	from uint32
	at   units.Time
	used bool
}

// NewSender returns the controller of a connection that starts unheld by any incast. planned is for PC4.
func NewSender(p Params, l cc.Link, planned units.Bandwidth) *Sender {
	s := &Sender{timeout: p.Timeout, baseRTT: l.BaseRTT, marked: -1, floor: -1}
	switch {
	case p.Swift != nil:
		s.inner = swift.NewSender(*p.Swift, l)
	case p.PC4 != nil:
		s.inner = pc4.NewSender(*p.PC4, l, planned)
	default:
		s.inner = dcqcn.NewSender(*p.DCQCN, l)
	}
	s.timed, _ = s.inner.(cc.Timed)
	s.held, _ = s.inner.(cc.Held)
	s.cnp, _ = s.inner.(cc.Notified)
	return s
}

// Indicated tells whether packets carry the CC indicator.
func (s *Sender) Indicated() bool { return s.cc }

// heeds tells whether signs of congestion reach the congestion control: while the CC indicator is set (section 6.4), or while
// a switch says that no path is light (section 6.3.4, second case, which section 6.4 would ignore).
func (s *Sender) heeds(now units.Time) bool { return s.cc || now < s.marked }

// Errors of OnNotice.
var (
	ErrReplay = errors.New("ccm: a notification that was heard before, or is too old or too new")
	ErrKind   = errors.New("ccm: a notification of no known kind")
)

// OnNotice takes in a notification that a switch sent at an instant. It is refused when it is not newer than the last of that
// switch, older than Timeout, or from the future.
func (s *Sender) OnNotice(now units.Time, n cc.Notice) error {
	if n.At > now || now-n.At > s.timeout || !s.newer(n.From, n.At) {
		return ErrReplay
	}
	switch {
	case n.Kind == cc.NeedsCC && n.Last:
		s.marked = now + s.timeout
	case n.Kind == cc.NeedsCC:
		s.cc, s.until = true, now+s.timeout
	case n.Kind == cc.Released:
		s.cc = false
	case n.Kind != cc.NeedsPath:
		return ErrKind
	}
	return nil
}

// newer notes what a switch sent, unless it is as old as what it sent before. Of a switch that is not remembered any more, or not yet, what
// is as old as anything that was forgotten may be a replay.
func (s *Sender) newer(from uint32, at units.Time) bool {
	oldest := &s.heard[0]
	for i := range s.heard {
		h := &s.heard[i]
		switch {
		case h.used && h.from == from:
			if at <= h.at {
				return false
			}
			h.at = at
			return true
		case !h.used || oldest.used && h.at < oldest.at:
			oldest = h
		}
	}
	if at <= s.floor {
		return false
	}
	if oldest.used {
		s.floor = max(s.floor, oldest.at)
	}
	*oldest = source{from, at, true}
	return true
}

// OnStart begins a busy period.
func (s *Sender) OnStart(now units.Time) { s.inner.OnStart(now) }

// OnSent passes on what left.
func (s *Sender) OnSent(now units.Time, p cc.Sent) { s.inner.OnSent(now, p) }

// OnAck passes on an acknowledgement, without signs of congestion that are not to be heeded.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	if !s.heeds(now) {
		a.Marked, a.OneWay, a.RTT = false, min(a.OneWay, 0), min(a.RTT, s.baseRTT)
	}
	s.inner.OnAck(now, a)
}

// OnLoss passes on a loss: it is always heeded.
func (s *Sender) OnLoss(now units.Time, l cc.Loss) { s.inner.OnLoss(now, l) }

// OnCNP passes on a congestion notification packet that is to be heeded.
func (s *Sender) OnCNP(now units.Time) {
	if s.cnp != nil && s.heeds(now) {
		s.cnp.OnCNP(now)
	}
}

// Window is that of the congestion control inside.
func (s *Sender) Window() units.Bytes { return s.inner.Window() }

// PacingRate is that of the congestion control inside.
func (s *Sender) PacingRate() units.Bandwidth { return s.inner.PacingRate() }

// NotBefore is that of the congestion control inside.
func (s *Sender) NotBefore() units.Time {
	if s.held == nil {
		return -1 << 63
	}
	return s.held.NotBefore()
}

// Deadline is when the CC indicator times out, or the congestion control inside wants to act.
func (s *Sender) Deadline() (at units.Time, ok bool) {
	if s.timed != nil {
		at, ok = s.timed.Deadline()
	}
	if s.cc && (!ok || s.until < at) {
		return s.until, true
	}
	return at, ok
}

// Advance lets happen what is due.
func (s *Sender) Advance(now units.Time) {
	if s.cc && s.until <= now {
		s.cc = false
	}
	if s.timed != nil {
		if at, ok := s.timed.Deadline(); ok && at <= now {
			s.timed.Advance(now)
		}
	}
}

// Resolved returns what the parameters of the congestion control inside came to.
func (s *Sender) Resolved() []cc.Value {
	if r, ok := s.inner.(cc.Resolved); ok {
		return r.Resolved()
	}
	return nil
}
