package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/collectives/schedule"
	"weft/transport"
	"weft/units"
)

// Done reports whether all items are complete. The driver must still serve the host: others may
// wait for its acknowledgements and its time.
func (h *Host) Done() bool { return h.over == len(h.runs) && h.passed || h.halts.forGood() }

// Until returns the instant before which the host is not done, 0 if there is none.
func (h *Host) Until() units.Time { return h.plan.Until }

// Flows returns a record of every message sent: the acknowledged ones in order of acknowledgement,
// then those that never were (Acked is 0).
func (h *Host) Flows() []Flow {
	return h.appendFlows(make([]Flow, 0, h.FlowCount()), false)
}

// FlowCount returns an upper bound, close to exact, of the number of records that Flows returns.
func (h *Host) FlowCount() int {
	n := h.flows.count()
	for i := range h.out {
		n += len(h.out[i].sent) - h.out[i].first
	}
	return n
}

// TakeFlows appends the records that Flows returns to all, and forgets those of acknowledged
// messages. It is for the end of a run with many messages, which would otherwise be in memory
// twice.
func (h *Host) TakeFlows(all []Flow) []Flow { return h.appendFlows(all, true) }

func (h *Host) appendFlows(all []Flow, forget bool) []Flow {
	for _, part := range h.flows {
		all = append(all, part...)
	}
	if forget {
		h.flows = nil
	}
	for i := range h.out {
		l := &h.out[i]
		for k := l.first; k < len(l.sent); k++ {
			if m := &l.sent[k]; !h.reported(m) {
				all = append(all, h.flow(l, m))
			}
		}
	}
	return all
}

// reported reports whether there is nothing to record of m: it is a credit, or an earlier part of
// its message is not acknowledged either and stands for the whole message.
func (h *Host) reported(m *outbound) bool {
	r := &h.runs[m.run]
	op := &r.work.ops[m.op]
	if op.Credit {
		return true
	}
	for part := range m.part {
		if l, _ := h.departure(m.run, op.Peer, r.item.lane(op)+int(part)); l.find(m.id) >= 0 {
			return true
		}
	}
	return false
}

// flow returns the record of a message without its end. A message in parts is recorded with its
// first connection.
func (h *Host) flow(l *outLink, m *outbound) Flow {
	r := &h.runs[m.run]
	op := &r.work.ops[m.op]
	if m.part > 0 {
		l, _ = h.departure(m.run, op.Peer, r.item.lane(op))
	}
	return Flow{
		Item: int32(r.item.Index), Repeat: m.repeat, Conn: l.conn, Message: m.id,
		Src: h.plan.Host, Dst: l.dst, Size: op.Len, Start: m.start,
	}
}

// Dones returns a record of every repetition that is complete on this host, in order of completion.
func (h *Host) Dones() []Done { return h.dones }

// Progress returns how many bytes of all messages to this host have arrived, and how many there are
// in all.
func (h *Host) Progress() (done, total units.Bytes) { return h.done, h.total }

// Arrived calls f for every connection that ends here, with the bytes of messages that have arrived
// by it.
func (h *Host) Arrived(f func(c transport.ConnID, bytes units.Bytes)) {
	for i := range h.in {
		f(h.in[i].conn, h.in[i].got)
	}
}

// Counters returns the counters of the endpoint.
func (h *Host) Counters() transport.Counters { return h.endpoint.Counters() }

// TimedOut returns the retransmission timers of this host's connections that have expired.
func (h *Host) TimedOut() []transport.TimedOut { return h.endpoint.TimedOut() }

// Printed passes what the congestion control of each connection printed to f, with the host that
// the connection leads to.
func (h *Host) Printed(f func(to int, first []string, more int)) {
	h.endpoint.Printed(func(c transport.ConnID, first []string, more int) {
		l, _ := h.outTo(c)
		f(int(l.dst), first, more)
	})
}

// Retries returns the retransmission timers of this host's connections that are running; none while
// the host is halted.
func (h *Host) Retries() transport.Retries {
	if h.halts.frozen {
		return transport.Retries{}
	}
	return h.endpoint.Retries()
}

// Failed returns why this host cannot complete its items, or nil.
func (h *Host) Failed() error { return h.err }

// fail ends the host's part in the run. The first reason is kept.
func (h *Host) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

// Interrupt sets a function that long work without an event asks from time to time, such as that
// which starts a million messages. If it returns true, the host fails.
func (h *Host) Interrupt(stopped func() bool) { h.stopped = stopped }

// interrupted reports whether the host has to stop, and fails it then.
func (h *Host) interrupted() bool {
	if h.stopped == nil || !h.stopped() {
		return false
	}
	h.fail(fmt.Errorf("host %s: %w", h.plan.Name, errInterrupted))
	return true
}

// Reasons to fail that this package finds.
var (
	errInterrupted = errors.New("interrupted")

	errNoConn     = errors.New("the plan has no connection for it")
	errNoReceive  = errors.New("no step of the plan receives it")
	errTwice      = errors.New("it was received before")
	errSize       = errors.New("the step that receives it expects another size")
	errOverlap    = errors.New("bytes of it were placed twice or outside")
	errIncomplete = errors.New("the transport calls it complete, but bytes are missing")
)

// StepError is a step of a collective that failed.
type StepError struct {
	Host       string
	Item       int    // Item.Index
	Name       string // Item.Name, or item and its index
	Collective string
	Repeat     int // counted from 0
	Rank       int // of the host
	Step       int // index in the rank's program
	Kind       schedule.Kind
	Size       units.Bytes
	Peer       int // rank at the other end
	PeerHost   transport.HostID
	Err        error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("host %s: %s (%s), repetition %d, rank %d, step %d: %v of %d bytes, rank %d on host %d: %v",
		e.Host, e.Name, e.Collective, e.Repeat, e.Rank, e.Step, e.Kind, e.Size, e.Peer, e.PeerHost, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// MessageError is a message that arrived and does not match the plan.
type MessageError struct {
	Host string
	Conn transport.ConnID
	From transport.HostID
	Tag  uint32
	Size units.Bytes
	Err  error
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("host %s: message %d of %d bytes from host %d on connection %d: %v",
		e.Host, e.Tag, e.Size, e.From, e.Conn, e.Err)
}

func (e *MessageError) Unwrap() error { return e.Err }

// opError returns the StepError of an op of the current repetition.
func (h *Host) opError(r *run, op int32, err error) error {
	o := &r.work.ops[op]
	return &StepError{
		Host: h.plan.Name, Item: r.item.Index, Name: r.item.name(), Collective: r.item.Collective,
		Repeat: r.repeat, Rank: r.item.Rank, Step: int(op), Kind: o.Kind, Size: o.Len,
		Peer: o.Peer, PeerHost: r.item.Ranks[o.Peer], Err: err,
	}
}

// messageError returns the MessageError of a message on a connection.
func (h *Host) messageError(l *inLink, tag uint32, size units.Bytes, err error) error {
	return &MessageError{Host: h.plan.Name, Conn: l.conn, From: l.src, Tag: tag, Size: size, Err: err}
}

// itemError adds the host and the item to an error.
func (h *Host) itemError(r *run, err error) error {
	return fmt.Errorf("host %s: %s (%s), rank %d: %w", h.plan.Name, r.item.name(), r.item.Collective, r.item.Rank, err)
}

// Doing describes in a few words what this host is doing: the item that began last, and its first
// step that is not complete. It is empty if no item is running.
func (h *Host) Doing() string {
	for i := len(h.runs) - 1; i >= 0; i-- {
		r := &h.runs[i]
		if r.phase != running {
			continue
		}
		w := r.work
		step := slices.IndexFunc(w.waits, func(n int32) bool { return n != complete })
		return fmt.Sprintf("%s (%s by %s), repetition %d, rank %d, step %d of %d",
			r.item.name(), r.item.Collective, r.item.Algorithm, r.repeat, r.item.Rank, step, len(w.ops))
	}
	return ""
}

// Waiting describes in a line what this host waits for: each item, and its first few steps that
// could continue if something arrived. It is empty if everything is done.
func (h *Host) Waiting() string {
	switch {
	case h.err != nil:
		return h.err.Error()
	case h.Done():
		return ""
	case !h.started:
		return fmt.Sprintf("host %s: was not started", h.plan.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "host %s:", h.plan.Name)
	for i := range h.runs {
		r := &h.runs[i]
		switch {
		case r.phase == running:
			h.describe(&b, int32(i))
		case r.phase == computing:
			fmt.Fprintf(&b, " %s (%s) computes until %.3f us;",
				r.item.name(), r.item.Collective, r.begun.Microseconds())
		case r.phase == idle && r.item.Previous && i > 0 && h.runs[h.prior[i]].phase != over:
			fmt.Fprintf(&b, " %s (%s) starts after the one before it;", r.item.name(), r.item.Collective)
		case r.phase == idle && !r.item.Called:
			fmt.Fprintf(&b, " %s (%s) starts at %.3f us;",
				r.item.name(), r.item.Collective, r.item.Start.Microseconds())
		}
	}
	return strings.TrimSuffix(b.String(), ";")
}

// Resumes returns the instant at which the host continues by itself, whatever arrives from others:
// it has computed, an item starts, or a halt ends. ok is false if there is none.
func (h *Host) Resumes() (at units.Time, ok bool) {
	switch {
	case h.halts.forGood():
		return 0, false
	case h.halts.frozen:
		return h.halts.left[0].Until, true
	}
	next := h.nextWork()
	return next, next != units.Never
}

// Awaits returns the hosts without which this one cannot continue, in order: those that have
// messages to send to it, and those that have not acknowledged what was sent to them. Its cost is
// proportional to the size of the running programs.
func (h *Host) Awaits() []transport.HostID {
	var all []transport.HostID
	if h.Done() {
		return nil
	}
	for i := range h.runs {
		r := &h.runs[i]
		if r.phase != running {
			continue
		}
		for k, n := range r.work.waits {
			if (n == 0 || n == started) && isMessage(&r.work.ops[k]) {
				all = append(all, r.item.Ranks[r.work.ops[k].Peer])
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxDescribed is the number of steps of each item that Waiting describes.
const maxDescribed = 3

// describe writes what item i, which is running, waits for.
func (h *Host) describe(b *strings.Builder, i int32) {
	r := &h.runs[i]
	w := r.work
	fmt.Fprintf(b, " %s (%s %s), rank %d, repetition %d of %d, %d of %d steps left:",
		r.item.name(), r.item.Collective, r.item.Algorithm, r.item.Rank, r.repeat, r.item.Repeat, w.left, len(w.ops))
	named := 0
	for k := range w.ops {
		o := &w.ops[k]
		if w.waits[k] != 0 && w.waits[k] != started {
			continue
		}
		if named++; named > maxDescribed {
			b.WriteString(" ...")
			break
		}
		if !isMessage(o) {
			fmt.Fprintf(b, " step %d, a %v that goes on;", k, o.Kind)
			continue
		}
		if o.Kind == schedule.Send {
			fmt.Fprintf(b, " step %d, %d bytes sent to rank %d on host %d and not acknowledged;",
				k, o.Len, o.Peer, r.item.Ranks[o.Peer])
			continue
		}
		var have units.Bytes
		if m := w.open[place{int32(r.repeat), int32(k)}]; m != nil {
			have = m.prefix
		}
		fmt.Fprintf(b, " step %d, %d of %d bytes from rank %d on host %d;",
			k, have, o.Len, o.Peer, r.item.Ranks[o.Peer])
	}
}
