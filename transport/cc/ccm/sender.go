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

// Params are the parameters of a connection. Exactly one of the congestion controls is set.
type Params struct {
	DCQCN *dcqcn.Params `json:",omitempty"`
	Swift *swift.Params `json:",omitempty"`
	PC4   *pc4.Params   `json:",omitempty"`

	// Timeout is how long the CC indicator stays set without a confirming notice, because the
	// notice that would clear it may be lost. Switches confirm more often than that. A notice that
	// is older is a replay. 0: 1 ms, or twice the base RTT if that is longer.
	Timeout units.Time

	// Paths is the number of source ports among which the source changes when a switch asks for
	// another path, 1 to 256. With 1 it cannot change.
	Paths int

	// LastResort is Tag or Untagged.
	LastResort string
}

// What a source does if a switch tells it that no path of a flow is light, for Params.LastResort.
// Sections 6 and 6.3.4 of the draft want congestion control then; section 6.4 ties that to the CC
// indicator, and section 6.3.2 lets only incast set it.
const (
	// Untagged obeys congestion signals and leaves the CC indicator clear, so that switches go on
	// looking for a path.
	Untagged = "untagged"
	// Tag sets the CC indicator: "the traffic turns to be CC traffic" (section 6).
	Tag = "tag"
)

// Check returns an error that names the first parameter out of range, or nil.
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
	case p.Timeout < 0:
		return fmt.Errorf("ccm: a timeout of %d ps", p.Timeout)
	case p.Paths < 1 || p.Paths > 256:
		return fmt.Errorf("ccm: %d paths, not 1 to 256", p.Paths)
	case p.LastResort != Tag && p.LastResort != Untagged:
		return fmt.Errorf("ccm: last resort %q, neither %s nor %s", p.LastResort, Tag, Untagged)
	}
	return inner[0].Check()
}

// SourcePorts returns the number of source ports that a connection uses.
func (p Params) SourcePorts() int { return p.Paths }

// Sender wraps the congestion control of one connection. It implements cc.Coordinated and the
// optional interfaces of the inner controllers.
type Sender struct {
	inner   cc.Controller
	timed   cc.Timed    // inner, or nil if it is not Timed
	held    cc.Held     // inner, or nil if it is not Held
	cnp     cc.Notified // inner, or nil if it is not Notified
	timeout units.Time  // Params.Timeout
	tag     bool        // Params.LastResort is Tag
	baseRTT units.Time  // of the path

	cc             bool       // the CC indicator is set
	indicatedUntil units.Time // when the CC indicator times out
	lastResort     units.Time // until when signals pass because no path is uncongested
	switches       [maxSwitches]switchTime
	forgotten      units.Time // the latest time of a switch that was dropped from switches
}

// maxSwitches is the number of switches whose last notice is remembered to detect replays: the last
// hop, and those on the path that may ask for another one.
const maxSwitches = 8

// switchTime is the time of the last notice of a switch.
type switchTime struct {
	from uint32
	at   units.Time
	used bool
}

// NewSender returns a sender for a connection on path l, with the CC indicator off. planned is the
// base rate that PC4 starts with. p must pass Check.
func NewSender(p Params, l cc.Link, planned units.Bandwidth) *Sender {
	s := &Sender{timeout: p.timeout(l), tag: p.LastResort == Tag, baseRTT: l.BaseRTT, lastResort: -1, forgotten: -1}
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

// timeout returns Timeout, or what a path needs: a notice is as old as its way.
func (p Params) timeout(l cc.Link) units.Time {
	if p.Timeout == 0 {
		return max(units.Millisecond, 2*l.BaseRTT)
	}
	return p.Timeout
}

// Misfits implements cc.Conditional: notices that have expired when they arrive.
func (p Params) Misfits(n cc.Network) []cc.Misfit {
	if p.timeout(n.Link) > n.BaseRTT {
		return nil
	}
	return []cc.Misfit{{Key: "timeout", What: fmt.Sprintf("notices of switches are valid for %v, and the base RTT is "+
		"%v, so that sources take them for replays; expected at least %v, or auto", p.Timeout, n.BaseRTT.Rounded(),
		(2 * n.BaseRTT).Rounded())}}
}

// Indicated implements cc.Coordinated. It reports whether packets carry the CC indicator.
func (s *Sender) Indicated() bool { return s.cc }

// active reports whether congestion signals pass to the inner controller: while the CC indicator is
// set (section 6.4), or while a switch says that no path is uncongested. The latter is the second
// case of section 6.3.4, which section 6.4 would ignore.
func (s *Sender) active(now units.Time) bool { return s.cc || now < s.lastResort }

// Errors of OnNotice.
var (
	ErrReplay = errors.New("ccm: a notification that was heard before, or is too old or too new")
	ErrKind   = errors.New("ccm: a notification of no known kind")
)

// OnNotice implements cc.Coordinated. It returns ErrReplay for a notice that is not newer than the
// last one of its switch, is older than Timeout, or is from the future.
func (s *Sender) OnNotice(now units.Time, n cc.Notice) error {
	if n.At > now || now-n.At > s.timeout || !s.newer(n.From, n.At) {
		return ErrReplay
	}
	switch {
	case n.Kind == cc.NeedsCC && n.Last && !s.tag:
		s.lastResort = now + s.timeout
	case n.Kind == cc.NeedsCC:
		s.cc, s.indicatedUntil = true, now+s.timeout
	case n.Kind == cc.Released:
		s.cc = false
	case n.Kind != cc.NeedsPath:
		return ErrKind
	}
	return nil
}

// newer records the time of a notice, and reports whether it is later than that of the last notice
// of the same switch. A switch that is not in the table may have been dropped from it, so its
// notice must be later than all that were dropped.
func (s *Sender) newer(from uint32, at units.Time) bool {
	oldest := &s.switches[0]
	for i := range s.switches {
		h := &s.switches[i]
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
	if at <= s.forgotten {
		return false
	}
	if oldest.used {
		s.forgotten = max(s.forgotten, oldest.at)
	}
	*oldest = switchTime{from, at, true}
	return true
}

// OnStart implements cc.Controller.
func (s *Sender) OnStart(now units.Time) { s.inner.OnStart(now) }

// OnSent implements cc.Controller.
func (s *Sender) OnSent(now units.Time, p cc.Sent) { s.inner.OnSent(now, p) }

// OnAck implements cc.Controller. While signals are not active, the inner controller sees no mark,
// no queueing delay, and at most the base RTT.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	if !s.active(now) {
		a.Marked, a.OneWay, a.RTT = false, min(a.OneWay, 0), min(a.RTT, s.baseRTT)
	}
	s.inner.OnAck(now, a)
}

// OnLoss implements cc.Controller. Losses always pass.
func (s *Sender) OnLoss(now units.Time, l cc.Loss) { s.inner.OnLoss(now, l) }

// OnCNP implements cc.Notified. Congestion notification packets pass while signals are active.
func (s *Sender) OnCNP(now units.Time) {
	if s.cnp != nil && s.active(now) {
		s.cnp.OnCNP(now)
	}
}

// Window implements cc.Controller.
func (s *Sender) Window() units.Bytes { return s.inner.Window() }

// PacingRate implements cc.Controller.
func (s *Sender) PacingRate() units.Bandwidth { return s.inner.PacingRate() }

// NotBefore implements cc.Held. It is long ago unless the inner controller holds packets.
func (s *Sender) NotBefore() units.Time {
	if s.held == nil {
		return -1 << 63
	}
	return s.held.NotBefore()
}

// Deadline implements cc.Timed: the end of the CC indicator, or the deadline of the inner
// controller.
func (s *Sender) Deadline() (at units.Time, ok bool) {
	if s.timed != nil {
		at, ok = s.timed.Deadline()
	}
	if s.cc && (!ok || s.indicatedUntil < at) {
		return s.indicatedUntil, true
	}
	return at, ok
}

// Advance implements cc.Timed.
func (s *Sender) Advance(now units.Time) {
	if s.cc && s.indicatedUntil <= now {
		s.cc = false
	}
	if s.timed != nil {
		if at, ok := s.timed.Deadline(); ok && at <= now {
			s.timed.Advance(now)
		}
	}
}

// Resolved implements cc.Resolved: the values of the inner controller, and its own.
func (s *Sender) Resolved() []cc.Value {
	var all []cc.Value
	if r, ok := s.inner.(cc.Resolved); ok {
		all = r.Resolved()
	}
	return append(all, cc.Value{
		Key: "transport.ccm.timeout", Value: s.timeout.String(), Why: "auto is 1ms, at least twice the base RTT",
	})
}
