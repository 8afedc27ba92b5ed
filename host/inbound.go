package host

import (
	"fmt"
	"slices"

	"weft/collectives/schedule"
	"weft/transport"
	"weft/units"
)

// A message arrives in any order of its bytes, before or after its op may start:
//
//	admit          the first packet creates the record, and finds room for the payload
//	arrive, cover  each packet adds its bytes; prefix has no gap, island has what lies beyond
//	received       the transport has all bytes: closed
//	take           the op may start: bytes are reduced or copied as they come; with the last
//	               one the op is complete and the record is released
//
// A message that comes before its op may start waits in a staging buffer, and take begins later. So
// the order of arrival decides about time, and never about results.

// inbound is a message that is arriving or staged for its op.
type inbound struct {
	tag    uint32 // on the connection of link
	run    int32  // index of its item in Host.runs
	place  place
	link   int32 // index in Host.in; of a message in parts, that of its first part
	size   units.Bytes
	prefix units.Bytes // all bytes before this one have arrived
	island []span      // bytes that have arrived after a gap, in order; empty if packets arrive in order
	used   units.Bytes // bytes applied to the buffer so far
	data   []byte      // with Bytes: where the payload goes, the region itself or a staging buffer
	staged bool        // data is a staging buffer
	parts  int         // number of parts that are complete for the transport
	closed bool        // the whole message is

	spoiled   bool // with a Spoiler: the byte at spoiledAt is wrong
	spoiledAt units.Bytes
}

// span is the bytes [from, to) of a message.
type span struct{ from, to units.Bytes }

// cover records that [from, to) has arrived. It returns false for bytes outside the message and for
// bytes that arrived before: the transport must not report such.
func (m *inbound) cover(from, to units.Bytes) bool {
	if from < m.prefix || to <= from || to > m.size {
		return false
	}
	if from == m.prefix && len(m.island) == 0 { // in order
		m.prefix = to
		return true
	}
	i, _ := slices.BinarySearchFunc(m.island, from, func(s span, at units.Bytes) int { return int(s.from - at) })
	if i > 0 && m.island[i-1].to > from || i < len(m.island) && m.island[i].from < to {
		return false
	}
	if i > 0 && m.island[i-1].to == from {
		i--
		m.island[i].to = to
	} else {
		m.island = slices.Insert(m.island, i, span{from, to})
	}
	if i+1 < len(m.island) && m.island[i+1].from == to {
		m.island[i].to = m.island[i+1].to
		m.island = slices.Delete(m.island, i+1, i+2)
	}
	for len(m.island) > 0 && m.island[0].from == m.prefix {
		m.prefix = m.island[0].to
		m.island = slices.Delete(m.island, 0, 1)
	}
	return true
}

// has reports whether [from, to) has arrived.
func (m *inbound) has(from, to units.Bytes) bool {
	return to <= m.prefix || slices.ContainsFunc(m.island, func(s span) bool { return s.from <= from && to <= s.to })
}

// arrive returns the message to which a packet belongs, which it creates if necessary, and the
// offset in it of the part that arrives by the connection. A packet that continues the connection's
// last message takes the short path. Any other has to name an op of the item's program that
// receives from this peer and is not complete; errors say that no op does (errNoReceive), that the
// message came before (errTwice) or has another size (errSize).
func (h *Host) arrive(pl *transport.Placement) (m *inbound, off units.Bytes, err error) {
	l, _ := h.inFrom(pl.Conn)
	if l == nil {
		return nil, 0, fmt.Errorf("host %s: data on connection %d, which does not end here", h.plan.Name, pl.Conn)
	}
	if m := l.last; m != nil && l.tag == pl.Tag && l.size == pl.Size {
		l.got += pl.Payload
		return m, l.off, nil
	}
	refuse := func(err error) (*inbound, units.Bytes, error) { return nil, 0, h.messageError(l, pl.Tag, pl.Size, err) }
	u, repeat, tag := h.owner(l.uses, pl.Tag)
	if u == nil || pl.Message != pl.Tag {
		return refuse(errNoReceive)
	}
	r := &h.runs[u.run]
	if r.phase == over || repeat < r.repeat {
		return refuse(errTwice)
	}
	if err := h.buildProgram(u.run); err != nil {
		return nil, 0, h.itemError(r, err)
	}
	w := r.work
	op := w.receive(u.peer, tag)
	if op < 0 || !r.item.Split && r.item.lane(&w.ops[op]) != int(u.lane) {
		return refuse(errNoReceive)
	}
	to := place{int32(repeat), op}
	off, size := r.item.part(int(u.lane), w.ops[op].Len)
	m = w.open[to]
	switch {
	case m != nil && m.closed, r.phase == running && repeat == r.repeat && w.waits[op] == complete:
		return refuse(errTwice)
	case size != pl.Size:
		return refuse(errSize)
	case m == nil:
		m = h.admit(u, to, pl.Tag)
		w.open[to] = m
	}
	if f := w.flowOf(u, w.ops[op].Stage); f != nil && !w.ops[op].Credit {
		h.expect(w, f)
	}
	l.last, l.tag, l.off, l.size = m, pl.Tag, off, size
	l.got += pl.Payload
	return m, off, nil
}

// lookup returns the message with a tag that is arriving on a connection, or nil. It creates none.
func (h *Host) lookup(l *inLink, tag uint32) *inbound {
	if l.last != nil && l.tag == tag {
		return l.last
	}
	u, repeat, opTag := h.owner(l.uses, tag)
	if u == nil || h.runs[u.run].work == nil {
		return nil
	}
	w := h.runs[u.run].work
	return w.open[place{int32(repeat), w.receive(u.peer, opTag)}]
}

// admit creates the record of a message. With Bytes it finds room for the payload: in the buffer
// itself if the op may start and replaces what is there, else in a staging buffer.
func (h *Host) admit(u *use, to place, tag uint32) *inbound {
	r := &h.runs[u.run]
	op := &r.work.ops[to.op]
	m := &inbound{}
	if n := len(h.free); n > 0 {
		m = h.free[n-1]
		h.free = h.free[:n-1]
	}
	link := u.link
	if r.item.Split {
		first := h.arrival(u.run, op.Peer, r.item.lane(op))
		link, tag = first.link, tag-u.base+first.base
	}
	*m = inbound{tag: tag, run: u.run, place: to, link: link, size: op.Len, island: m.island[:0]}
	switch {
	case h.bytes == nil:
	case r.ready(to) && !op.Reduce:
		m.data = h.bytes.Place(r.item.Index, op)
	default:
		m.data, m.staged = h.room(op.Len), true
	}
	return m
}

// ready reports whether an op may start in the current repetition.
func (r *run) ready(p place) bool {
	return r.phase == running && int(p.repeat) == r.repeat && r.work.waits[p.op] == 0
}

// take applies what has arrived of a message to the buffer, if its op may start, and completes the
// op if the message is complete. The caller continues with runOps.
func (h *Host) take(m *inbound) {
	r := &h.runs[m.run]
	if !r.ready(m.place) {
		return
	}
	w := r.work
	op := &w.ops[m.place.op]
	all := m.closed && m.prefix == m.size
	if err := h.apply(r, op, m, all); err != nil {
		h.fail(h.opError(r, m.place.op, err))
		return
	}
	if all {
		delete(w.open, m.place)
		w.complete(m.place.op)
		h.release(m)
	}
}

// apply hands new bytes of m to the memory. all: the message is complete. In emulation bytes are
// applied as they come, in whole elements; in the simulator, where they have no values, at once.
func (h *Host) apply(r *run, op *schedule.Op, m *inbound, all bool) error {
	id := key(h.in[m.link].conn, m.tag)
	switch {
	case h.bytes != nil:
		to := m.prefix
		if to < m.size {
			to -= to % schedule.Element
		}
		if to == m.used {
			return nil
		}
		var data []byte
		if m.staged {
			data = m.data[m.used:to]
		}
		from := m.used
		m.used = to
		return h.bytes.Apply(r.item.Index, op, id, from, to, data)
	case h.memory != nil && all:
		err := h.memory.Apply(r.item.Index, op, id, 0, m.size, nil)
		if err == nil && m.spoiled && h.spoiler != nil {
			h.spoiler.Spoil(r.item.Index, op, m.spoiledAt)
		}
		return err
	}
	return nil
}

// applyPayload applies payload at offset at of m from where it is. It returns false if that is not
// possible: the op may not start, bytes before are missing, or an element is not complete.
func (h *Host) applyPayload(m *inbound, at units.Bytes, payload []byte) bool {
	r, to := &h.runs[m.run], at+units.Bytes(len(payload))
	if m.used != at || m.prefix != to || to < m.size && to%schedule.Element != 0 || !r.ready(m.place) {
		return false
	}
	op := &r.work.ops[m.place.op]
	m.used = to
	var err error
	if op.Final && !op.Reduce && !r.work.forwards {
		h.bytes.Check(r.item.Index, op, at, to, payload)
	} else {
		err = h.bytes.Apply(r.item.Index, op, key(h.in[m.link].conn, m.tag), at, to, payload)
	}
	if err != nil {
		h.fail(h.opError(r, m.place.op, err))
	}
	return true
}

// received records that the transport has every byte of a message, or of its part on the
// connection.
func (h *Host) received(l *inLink, u *use, m *inbound) {
	m.parts++
	m.closed = m.parts == h.runs[m.run].item.parts(m.size)
	if l.last == m {
		l.last = nil
	}
	h.message(u, &h.runs[m.run].work.ops[m.place.op])
}

// room returns a staging buffer of n bytes.
func (h *Host) room(n units.Bytes) []byte {
	for i := len(h.rooms) - 1; i >= 0; i-- {
		if b := h.rooms[i]; cap(b) >= int(n) {
			h.rooms = slices.Delete(h.rooms, i, i+1)
			return b[:n]
		}
	}
	return make([]byte, n)
}

// release keeps the record of a message and its staging buffer for reuse.
func (h *Host) release(m *inbound) {
	if m.staged {
		if len(h.rooms) < maxRooms {
			h.rooms = append(h.rooms, m.data)
		}
		m.data = nil
	}
	h.free = append(h.free, m)
}

// maxRooms is the number of staging buffers that are kept for reuse.
const maxRooms = 64
