package host

import (
	"fmt"
	"unsafe"

	"weft/collectives/schedule"
	"weft/internal/prefetch"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Host is one host of a lab. It is not safe for concurrent use: one goroutine owns it.
type Host struct {
	// What every packet reads and writes comes first, in few cache lines.
	halts     halts
	endpoint  *transport.Endpoint
	clock     *clock       // nil: the host's clock shows lab time
	noise     *background  // nil: no background traffic
	arriving  *inbound     // message of the packet between Receive and Deliver
	offset    units.Bytes  // where in arriving the part on this connection begins
	err       error        // why the host has failed, or nil
	in        []inLink     // by connection
	done      units.Bytes  `state:"count"` // bytes received so far
	corrupt   []units.Time // Plan.Corrupt, those to come
	nextStart units.Time   // when the next item or repetition starts, or units.Never
	passed    bool         // lab time has passed Plan.Until
	started   bool

	means  `state:"-"`
	agenda `state:"-"`

	expected   int    // number of flows that the endpoint was told to expect
	computed   uint64 // number of computations so far
	unreceived int64  // packets that arrived while it was halted
}

// means is what a host works with.
type means struct {
	bytes   Bytes       // memory, if it holds bytes, otherwise nil
	memory  Memory      // nil: results are not verified
	spoiler Spoiler     // memory, if it is a Spoiler, otherwise nil
	stopped func() bool // see Interrupt; nil: never

	// free is records of messages for reuse, and rooms staging buffers.
	free  []*inbound
	rooms [][]byte
}

// agenda is a host's plan, where it is in it, and the records of what it has done. Whoever skips
// steps has the host itself move it (Skip).
type agenda struct {
	over  int       // number of items that are done
	runs  []run     // items, in the order of the plan
	first int       // all runs before this one are over
	skip  []int32   // by run: the next run that starts at an instant of its own
	prior []int32   // by run: the one before it that is not called
	out   []outLink // by connection
	wakes wakes     // computations in progress

	// flows and dones are the records of messages and repetitions.
	flows flowLog
	dones []Done
	total units.Bytes // bytes to be received in all

	// kinds and firsts are what kind has found so far: by run, the first that is like it, and
	// these.
	kinds, firsts []int32

	plan Plan
}

// New returns the host of a plan. mem holds its buffers; with nil, only the network is studied and
// nothing is verified. obs, which may be nil, observes the transport. New returns an error if the
// plan contradicts itself.
func New(p Plan, mem Memory, obs transport.Observer) (*Host, error) {
	h := &Host{
		nextStart: units.Never, passed: p.Until == 0,
		means: means{memory: mem}, agenda: agenda{plan: p, runs: make([]run, len(p.Items))},
	}
	if p.Endpoint.Host != p.Host {
		return nil, fmt.Errorf("host %s: its endpoint is of host %d, not %d", p.Name, p.Endpoint.Host, p.Host)
	}
	h.bytes, _ = mem.(Bytes)
	h.spoiler, _ = mem.(Spoiler)
	h.corrupt = p.Corrupt
	var err error
	if h.halts, err = newHalts(&p); err != nil {
		return nil, fmt.Errorf("host %s: %w", p.Name, err)
	}
	p.Endpoint.Observer, p.Endpoint.OwnClock = obs, p.Clock != nil
	if h.clock, err = newClock(&p); err != nil {
		return nil, fmt.Errorf("host %s: %w", p.Name, err)
	}
	if h.noise, err = newBackground(&p); err != nil {
		return nil, fmt.Errorf("host %s: %w", p.Name, err)
	}
	if h.endpoint, err = transport.New(p.Endpoint); err != nil {
		return nil, fmt.Errorf("host %s: %w", p.Name, err)
	}
	if err := h.connect(); err != nil {
		return nil, fmt.Errorf("host %s: %w", p.Name, err)
	}
	for i := range p.Items {
		item := p.Items[i]
		item.Conns, item.Expect = byRank(item.Conns), byRank(item.Expect)
		h.runs[i], err = newRun(&item)
		r := &h.runs[i]
		if err == nil {
			err = h.assignTags(int32(i))
		}
		var v schedule.Traffic
		if err == nil {
			v, err = schedule.Volume(r.spec, item.Rank)
		}
		if err != nil {
			return nil, h.itemError(r, err)
		}
		h.total += v.Received * units.Bytes(item.Repeat)
	}
	h.skip, h.prior = make([]int32, len(h.runs)), make([]int32, len(h.runs))
	for i, next := len(h.runs)-1, int32(len(h.runs)); i >= 0; i-- {
		h.skip[i] = next
		if !h.runs[i].item.Previous && !h.runs[i].item.Called {
			next = int32(i)
		}
	}
	for i := 1; i < len(h.runs); i++ {
		if h.prior[i] = int32(i - 1); h.runs[i-1].item.Called {
			h.prior[i] = h.prior[i-1]
		}
	}
	return h, nil
}

// Prefetch asks the processor for what packets touch: in step 0 of the host itself, and then of its
// endpoint.
func (h *Host) Prefetch(step int) {
	if step == 0 {
		prefetch.Lines(unsafe.Pointer(h), 5)
		return
	}
	h.endpoint.Prefetch(step - 1)
}

// Start begins the host's work: each item begins when its time has come.
func (h *Host) Start(now units.Time) {
	h.started = true
	h.passed = h.plan.Until <= now
	if h.clock != nil {
		h.clock.node.Start(now)
	}
	h.startItems(now)
}

// Receive handles a packet. An error means that the packet was refused and has changed nothing.
// With a Memory that holds bytes the driver continues with Deliver.
func (h *Host) Receive(now units.Time, in *transport.Incoming) (transport.Placement, error) {
	if len(h.halts.left) > 0 && h.halts.standsStill(now) {
		return h.lose()
	}
	if in.Port == DiscardPort {
		return transport.Placement{}, nil
	}
	if in.Port != 0 && in.Port != wire.Port {
		return transport.Placement{}, h.receiveSync(now, in)
	}
	if h.clock != nil {
		in.ClockOffset = h.clock.stamp(in)
	}
	pl, err := h.endpoint.Receive(now, in)
	if err != nil {
		return pl, err
	}
	h.arriving = nil
	if pl.Payload > 0 && h.err == nil {
		if h.arriving, h.offset, err = h.arrive(&pl); err != nil {
			h.fail(err)
		} else if h.bytes != nil {
			return pl, nil // events wait until the payload is in place
		}
		h.land(now, &pl, nil)
	}
	h.drain(now)
	return pl, nil
}

// Deliver takes the payload of the packet that Receive has just accepted, which has pl.Payload
// bytes, and does not keep it. It does nothing if the memory holds no bytes.
func (h *Host) Deliver(now units.Time, pl transport.Placement, payload []byte) {
	if h.bytes == nil || h.arriving == nil || pl.Payload == 0 {
		return
	}
	h.land(now, &pl, payload)
	h.drain(now)
}

// land records that a packet's payload has arrived, and puts it where it belongs. payload is nil
// without Bytes.
func (h *Host) land(now units.Time, pl *transport.Placement, payload []byte) {
	m := h.arriving
	if m == nil {
		return
	}
	at := h.offset + pl.Offset
	if !m.cover(at, at+pl.Payload) {
		h.fail(h.messageError(&h.in[m.link], pl.Tag, pl.Size, errOverlap))
		return
	}
	h.done += pl.Payload
	spoils := len(h.corrupt) > 0 && now >= h.corrupt[0]
	if h.bytes != nil {
		if !spoils && h.applyPayload(m, at, payload) {
			return
		}
		copy(m.data[at:at+pl.Payload], payload)
	}
	if spoils {
		h.spoil(m, at+pl.Payload/2)
	}
	if h.bytes != nil {
		h.take(m) // as it arrives; it is complete only when the transport says so
	}
}

// spoil corrupts a byte of a message that has just arrived. Credits have no bytes.
func (h *Host) spoil(m *inbound, at units.Bytes) {
	if h.runs[m.run].work.ops[m.place.op].Credit {
		return
	}
	h.corrupt = h.corrupt[1:]
	if h.bytes != nil {
		m.data[at] ^= 0x11
	} else {
		m.spoiled, m.spoiledAt = true, at
	}
}

// Name returns Plan.Name.
func (h *Host) Name() string { return h.plan.Name }

// Unreceived returns the number of packets that arrived while the host was halted, and were lost.
func (h *Host) Unreceived() int64 { return h.unreceived }

// Uncorrupted returns the number of planned corruptions that were never applied, because no packet
// arrived for them.
func (h *Host) Uncorrupted() int { return len(h.corrupt) }

// Transmit writes the packet that leaves the NIC at now into out. It returns false if nothing may
// leave before the next call of another method or Deadline.
func (h *Host) Transmit(now units.Time, out *transport.Outgoing) bool {
	if len(h.halts.left) > 0 && h.halts.standsStill(now) {
		return false
	}
	if h.clock != nil {
		if h.clock.transmit(now, out) {
			return true
		}
		h.endpoint.SetClockOffset(h.clock.node.Sent(now))
	}
	if h.noise != nil && h.noise.turn {
		h.noise.turn = false
		if h.noise.transmit(now, out) {
			return true
		}
	}
	ok := h.endpoint.Transmit(now, out)
	h.drain(now)
	if h.noise != nil {
		if h.noise.turn = ok; !ok {
			return h.noise.transmit(now, out)
		}
	}
	return ok
}

// TransmitControl is Transmit for a NIC whose data class is paused: only packets of class 0 leave.
func (h *Host) TransmitControl(now units.Time, out *transport.Outgoing) bool {
	if len(h.halts.left) > 0 && h.halts.standsStill(now) {
		return false
	}
	if h.clock != nil && h.clock.node.Control() && h.clock.transmit(now, out) {
		return true
	}
	ok := h.endpoint.TransmitControl(now, out)
	h.drain(now)
	return ok
}

// Payload returns the bytes that a data packet from Transmit carries; nil if it carries none or the
// memory holds none. They may be written to room, which has as many bytes or none. They are valid
// until the next call of another method.
func (h *Host) Payload(out *transport.Outgoing, room []byte) []byte {
	if out.Payload == 0 || h.bytes == nil {
		return nil
	}
	l, _ := h.outTo(out.Conn)
	i := l.find(out.Message)
	if i < 0 {
		panic(fmt.Sprintf("host %s: connection %d sends message %d, which is not in progress",
			h.plan.Name, out.Conn, out.Message))
	}
	r := &h.runs[l.sent[i].run]
	op := &r.work.ops[l.sent[i].op]
	off, _ := r.item.part(int(l.sent[i].part), op.Len)
	return h.bytes.Load(r.item.Index, op, off+out.Offset, out.Payload, room)
}

// Deadline returns when to call Advance or Transmit next if nothing else happens before.
func (h *Host) Deadline() (units.Time, bool) {
	at, ok := h.work()
	if h.clock != nil {
		if d, armed := h.clock.node.Deadline(); armed && (!ok || d < at) {
			at, ok = d, true
		}
	}
	if h.noise != nil && (!ok || h.noise.next < at) {
		at, ok = h.noise.next, true
	}
	if !h.passed && (!ok || h.plan.Until < at) {
		at, ok = h.plan.Until, true
	}
	return h.halts.deadline(at, ok)
}

// work is Deadline for the transport and the items alone.
func (h *Host) work() (units.Time, bool) {
	at, ok := h.endpoint.Deadline()
	next := h.nextWork()
	if next == units.Never || ok && at <= next {
		return at, ok
	}
	return next, true
}

// Advance handles everything that is due at now.
func (h *Host) Advance(now units.Time) {
	if len(h.halts.left) > 0 && h.halts.standsStill(now) {
		return
	}
	if h.clock != nil {
		h.clock.node.Advance(now)
	}
	h.passed = h.passed || h.started && h.plan.Until <= now
	if h.noise != nil {
		h.noise.advance(now)
	}
	h.endpoint.Advance(now)
	h.drain(now)
	if h.started && h.nextStart <= now && h.err == nil {
		h.startItems(now)
	}
	h.wakeUp(now)
}

// drain handles the events of the transport.
func (h *Host) drain(now units.Time) {
	for {
		e, ok := h.endpoint.Poll()
		if !ok {
			return
		}
		if h.err != nil {
			continue // a host that has failed still answers, but its items do not continue
		}
		switch e.Kind {
		case transport.MessageAcked:
			h.acked(now, &e)
		case transport.MessageReceived:
			h.closed(now, &e)
		case transport.ConnFailed:
			h.connFailed(&e)
		}
	}
}

// acked handles the acknowledgement of a message: its send is complete.
func (h *Host) acked(now units.Time, e *transport.Event) {
	l, _ := h.outTo(e.Conn)
	i := l.find(e.Message.ID)
	if i < 0 {
		panic(fmt.Sprintf("host %s: connection %d acknowledges message %d, which is not in progress",
			h.plan.Name, e.Conn, e.Message.ID))
	}
	m := l.take(i)
	w := h.runs[m.run].work
	if w.parts != nil {
		if w.parts[m.op]--; w.parts[m.op] > 0 {
			return
		}
	}
	if !w.ops[m.op].Credit {
		f := h.flow(l, &m)
		f.Acked = now
		h.flows.add(f)
	}
	w.complete(m.op)
	h.runOps(now, m.run)
}

// closed handles the arrival of the last byte of a message.
func (h *Host) closed(now units.Time, e *transport.Event) {
	l, _ := h.inFrom(e.Conn)
	m := h.lookup(l, e.Message.Tag)
	if m == nil || m.closed {
		h.fail(h.messageError(l, e.Message.Tag, e.Message.Size, errIncomplete))
		return
	}
	run := m.run // m may be reused for another message afterwards
	u := useOf(l.uses, run)
	if off, size := h.runs[run].item.part(int(u.lane), m.size); size != e.Message.Size || !m.has(off, off+size) {
		h.fail(h.messageError(l, e.Message.Tag, e.Message.Size, errIncomplete))
		return
	}
	h.received(l, u, m)
	h.take(m)
	h.runOps(now, run)
}

// connFailed handles a connection that the transport has given up.
func (h *Host) connFailed(e *transport.Event) {
	l, _ := h.outTo(e.Conn)
	if e.Err != nil {
		h.fail(fmt.Errorf("%w; at %v on host %s, connection %d to host %d", e.Err, e.At, h.plan.Name, e.Conn, l.dst))
		return
	}
	err := fmt.Errorf("%w: nothing new was acknowledged (retries in a row: %d, packets sent again: %d)",
		transport.ErrFailed, e.Tries-1, e.Resent)
	if i := l.find(e.Message.ID); i >= 0 {
		h.fail(h.opError(&h.runs[l.sent[i].run], l.sent[i].op, err))
		return
	}
	h.fail(fmt.Errorf("host %s: connection %d to host %d: %w", h.plan.Name, e.Conn, l.dst, err))
}
