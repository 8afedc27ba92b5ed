package wasm

import (
	"fmt"
	"math"

	"weft/transport/cc"
	"weft/units"
)

// unlimited is the window of a module that has none, as of other controls with a rate only.
const unlimited units.Bytes = math.MaxInt64

// unlimitedFrom is the window from which one counts as unlimited.
const unlimitedFrom = 1 << 62

// maxWait bounds NotBefore, as that of Swift is.
const maxWait = 1000 * units.Second

// maxPrinted bounds the lines that a connection keeps of what its events print.
const maxPrinted = 100

// Sender controls one connection by a module. It implements cc.Timed, cc.Held, cc.Notified,
// cc.Failing and cc.Printing.
//
// It has two states. While it works, each event runs the module once: begin lends it an instance
// with the connection's state, the caller appends arguments, and end takes state and answer back.
// The answer holds until the next event. After the first error it has failed for good: its window
// is one byte, no timer runs, and the endpoint gives up the connection with Err.
//
// No call of the module allocates, unless all instances are in use by other threads.
type Sender struct {
	module *Module     // nil if it was not loaded in this process: the sender has failed
	state  []byte      // of the connection, between events; all zeros at first
	last   *instance   // that handled the last event; nil before the first
	limit  units.Bytes // maximum window, of the lab
	line   units.Bandwidth

	window    units.Bytes     // at least 1
	rate      units.Bandwidth // 0: not paced
	timer     units.Time      // when Advance calls the module; units.Never: no timer
	notBefore units.Time      // nothing leaves before; 0: no such instant
	err       error           // of the first event that failed; nil while the sender works

	printed []string // the first lines that events printed, at most maxPrinted
	more    int      // lines beyond those
}

// NewSender returns a sender for a connection on path l. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	if m, ok := Loaded(p.Module); ok {
		return newSender(m, p, l)
	}
	return &Sender{window: 1, timer: units.Never, err: errNotLoaded(p.Module)}
}

// newSender is NewSender for a module that need not be registered by its hash: Load tries one
// before that. The init event has the path and the parameters, in the order of the description.
func newSender(m *Module, p Params, l cc.Link) *Sender {
	s := &Sender{
		module: m, state: make([]byte, m.stateSize), limit: p.Limit(l), line: l.Line, window: 1, timer: units.Never,
	}
	in := s.begin(0)
	if in == nil {
		return s
	}
	in.float(float64(l.Line))
	in.arg(uint64(l.MTU))
	in.arg(uint64(l.Packet))
	in.arg(uint64(l.Baseline))
	in.arg(uint64(l.BaseRTT))
	in.arg(uint64(l.NetRTT))
	in.arg(uint64(l.Hops))
	in.arg(l.Seed)
	for i := range p.Values {
		in.float(p.Values[i].on(l.Line))
	}
	s.end(in, eventInit, 0)
	return s
}

// begin returns an instance with the connection's state, ready for the arguments of an event, or
// nil if the sender has failed. The instance belongs to this sender until end, which must follow.
func (s *Sender) begin(now units.Time) *instance {
	if s.err != nil {
		return nil
	}
	in, err := s.module.acquire(s.last)
	if err != nil {
		s.fail(err)
		return nil
	}
	s.last = in
	copy(in.state, s.state)
	in.begin(now)
	return in
}

// end passes the event to the module, keeps the state and checks the answer before the endpoint
// sees it. A window is at least one byte, a rate is 0 or at least 1 b/s, and a timer event sets a
// later timer, or a run would stand still at one instant. Comparisons are written so that NaN fails
// them. An instance whose call failed is in an unknown state, so no connection uses it again.
func (s *Sender) end(in *instance, event uint64, now units.Time) {
	if err := in.call(event); err != nil {
		s.module.discard(in)
		s.fail(fmt.Errorf("%s: %w", eventName(event), err))
		return
	}
	copy(s.state, in.state)
	for _, line := range in.running.Printed() {
		if len(s.printed) == maxPrinted {
			s.more++
			continue
		}
		s.printed = append(s.printed, now.String()+"  "+line)
	}
	window, rate := math.Float64frombits(in.read(mailWindow)), math.Float64frombits(in.read(mailRate))
	timer, notBefore := units.Time(in.read(mailTimer)), units.Time(in.read(mailNotBefore))
	in.release()
	switch {
	case !(window >= 1):
		s.fail(fmt.Errorf("%s: its window is %v bytes; expected at least 1", eventName(event), window))
	case rate != 0 && !(rate >= 1):
		s.fail(fmt.Errorf("%s: its rate is %v b/s; expected 0, or at least 1", eventName(event), rate))
	case event == eventTimer && timer <= now:
		s.fail(fmt.Errorf("%s: its next timer is at %v, which is not after now, %v", eventName(event), timer, now))
	case notBefore > now+maxWait:
		s.fail(fmt.Errorf("%s: nothing may leave before %v; expected at most %v from now, %v", eventName(event),
			notBefore, maxWait, now))
	default:
		s.window = unlimited
		if window < unlimitedFrom {
			s.window = units.Bytes(window)
		}
		s.window = min(s.window, s.limit)
		s.rate = s.line // a NIC sends no faster, so a rate above means the same
		if rate < float64(s.line) {
			s.rate = units.Bandwidth(rate)
		}
		s.timer, s.notBefore = timer, notBefore
	}
}

// fail ends the sender and names the module in its error. The values left behind are valid answers
// of a controller, since the endpoint may ask for them before it asks for Err.
func (s *Sender) fail(err error) {
	name := "module"
	if s.module != nil && s.module.Name != "" {
		name += " " + s.module.Name
	}
	s.err = fmt.Errorf("%s: %w", name, err)
	s.window, s.rate, s.timer, s.notBefore = 1, 0, units.Never, 0
}

// eventName returns an event in words, with the method of package sdk/cc.
func eventName(event uint64) string {
	return [...]string{"at the start of the connection (Init)", "at the start of a message (Start)",
		"after a packet was sent (Sent)", "after an acknowledgement (Ack)", "after a loss (Loss)",
		"after a congestion notification (Notify)", "at its timer (Expire)"}[event]
}

// OnStart implements cc.Controller. Like OnSent it calls only modules whose description asks for
// the event: a call takes some 0.4 us.
func (s *Sender) OnStart(now units.Time) {
	if s.module == nil || !s.module.Start {
		return
	}
	if in := s.begin(now); in != nil {
		s.end(in, eventStart, now)
	}
}

// OnSent implements cc.Controller.
func (s *Sender) OnSent(now units.Time, p cc.Sent) {
	if s.module == nil || !s.module.Sent {
		return
	}
	in := s.begin(now)
	if in == nil {
		return
	}
	in.arg(uint64(p.Size))
	in.arg(uint64(p.InFlight))
	in.arg(bit(p.Resent, 1))
	s.end(in, eventSent, now)
}

// OnAck implements cc.Controller. Telemetry of more hops than the mailbox holds is cut.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	in := s.begin(now)
	if in == nil {
		return
	}
	hops := a.INT[:min(len(a.INT), maxHops)]
	in.arg(uint64(a.Size))
	in.arg(uint64(a.Packets))
	in.arg(uint64(a.InFlight))
	in.arg(uint64(a.SentAt))
	in.arg(uint64(a.RTT))
	in.arg(uint64(a.OneWay))
	in.arg(bit(a.Marked, flagMarked) | bit(a.AppLimited, flagAppLimited) | bit(a.Probe, flagProbe))
	in.arg(uint64(a.Path))
	in.arg(uint64(len(hops)))
	for i := range hops {
		in.arg(uint64(hops[i].At))
		in.arg(uint64(hops[i].Sent))
		in.arg(uint64(hops[i].Queued))
		in.float(float64(hops[i].Rate))
	}
	s.end(in, eventAck, now)
}

// OnLoss implements cc.Controller.
func (s *Sender) OnLoss(now units.Time, l cc.Loss) {
	in := s.begin(now)
	if in == nil {
		return
	}
	in.arg(uint64(l.Kind))
	in.arg(uint64(l.Size))
	in.arg(uint64(l.Try))
	s.end(in, eventLoss, now)
}

// OnCNP implements cc.Notified.
func (s *Sender) OnCNP(now units.Time) {
	if in := s.begin(now); in != nil {
		s.end(in, eventCNP, now)
	}
}

// Deadline implements cc.Timed.
func (s *Sender) Deadline() (units.Time, bool) { return s.timer, s.timer != units.Never }

// Advance implements cc.Timed. It does nothing before the timer, so a module gets one event for it.
func (s *Sender) Advance(now units.Time) {
	if s.timer > now {
		return
	}
	if in := s.begin(now); in != nil {
		s.end(in, eventTimer, now)
	}
}

// NotBefore implements cc.Held.
func (s *Sender) NotBefore() units.Time { return s.notBefore }

// Window implements cc.Controller.
func (s *Sender) Window() units.Bytes { return s.window }

// PacingRate implements cc.Controller.
func (s *Sender) PacingRate() units.Bandwidth { return s.rate }

// Err implements cc.Failing.
func (s *Sender) Err() error { return s.err }

// Printed implements cc.Printing.
func (s *Sender) Printed() (first []string, more int) { return s.printed, s.more }

// bit returns flag if v is true.
func bit(v bool, flag uint64) uint64 {
	if v {
		return flag
	}
	return 0
}
