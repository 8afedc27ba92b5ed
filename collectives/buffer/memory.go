package buffer

import (
	"fmt"
	"sort"

	"weft/collectives/schedule"
	"weft/units"
)

// Memory is the buffers of one host, for each running item. It implements host.Bytes.
type Memory struct {
	seed  uint64
	shelf *Shelf
	items map[int]*item // by index of the item
	spare [][]byte      // buffers of closed items
	made  func([]byte)  // see Made
	ahead units.Bytes   // bytes that may still be touched in advance: see Ahead
}

// New returns a memory without buffers. The seed is that of the lab, the same on all hosts.
// Memories of one goroutine may share a shelf, so that the values of an item are stored once; nil:
// the memory gets its own.
func New(seed uint64, s *Shelf) *Memory {
	if s == nil {
		s = new(Shelf)
	}
	return &Memory{seed: seed, shelf: s, items: map[int]*item{}}
}

// item is the buffers of one repetition of an item.
type item struct {
	rank           int
	values         *Values
	layout         schedule.Layout
	buffers        [2]store              // by schedule.Buf; see Memory.written
	element        units.Bytes           // size of an element
	reduces        bool                  // the collective reduces
	reduce         func(dst, src []byte) // its reduction
	wrong, checked int64                 // numbers of elements
	first          units.Bytes           // offset of the first wrong element of the output; -1: none
}

// Begin prepares the buffers of an item for a repetition: the rank's input, and an output with the
// initial contents of the layout. It returns an error for a collective with more ranks than real
// data supports.
func (m *Memory) Begin(index, repeat, rank int, s schedule.Spec) error {
	it := m.items[index]
	if it == nil {
		l, err := schedule.Shape(s, rank)
		if err != nil {
			return err
		}
		facts, err := schedule.About(s.Collective, s.Algorithm)
		if err != nil {
			return err
		}
		if most := maxRanks(&s, facts.Reduces); s.Ranks > most {
			return fmt.Errorf("%d ranks: reductions of real data are exact for at most %d", s.Ranks, most)
		}
		it = &item{layout: l, element: s.Type.Size(), reduces: facts.Reduces,
			reduce: reducer(s.Type, s.Op)}
		it.buffers[schedule.Out] = newStore(m.room(l.Out), l.Local, it.element)
		m.items[index] = it
	}
	it.rank, it.wrong, it.checked, it.first = rank, 0, 0, -1
	m.shelf.put(it.values)
	it.values = m.shelf.take(m.seed, index, repeat, &s, it.reduces)
	for b := range it.buffers {
		clear(it.buffers[b].ready)
	}
	return nil
}

// Send implements host.Bytes. It does nothing: bytes are read when packets leave.
func (m *Memory) Send(int, *schedule.Op, uint64) {}

// Load implements host.Bytes. Only an input that is computed is written to room.
func (m *Memory) Load(index int, op *schedule.Op, off, n units.Bytes, room []byte) []byte {
	it := m.items[index]
	s, at := &it.buffers[op.Buf], op.Off+off
	if op.Buf == schedule.In && s.data == nil {
		return m.shelf.input(it.values, it.rank, at, n, room)
	}
	s.touch(at, at+n, it.values, it.rank)
	return s.data[at : at+n]
}

// written returns the buffer that op, a receive, writes to. An input has none until then: it is a
// function of the position, and Load computes what leaves.
func (m *Memory) written(it *item, op *schedule.Op) *store {
	s := &it.buffers[op.Buf]
	if op.Buf == schedule.In && s.data == nil {
		n := it.layout.In
		*s = newStore(m.room(n), []schedule.Copy{{Len: n}}, it.element)
	}
	return s
}

// Place returns the region that op, which does not reduce, receives into, so that payload can be
// copied there directly.
func (m *Memory) Place(index int, op *schedule.Op) []byte {
	it := m.items[index]
	s := m.written(it, op)
	s.claim(op.Off, op.Off+op.Len, it.values, it.rank)
	return s.data[op.Off : op.Off+op.Len]
}

// Apply applies bytes [from, to) of the message that op receives: it reduces them into the region
// or replaces it, and verifies the result if op is final. data is nil if the bytes are in the
// region of Place already. from and to are multiples of an element.
func (m *Memory) Apply(index int, op *schedule.Op, _ uint64, from, to units.Bytes, data []byte) error {
	it := m.items[index]
	s := m.written(it, op)
	a, b := op.Off+from, op.Off+to
	switch {
	case op.Reduce:
		s.touch(a, b, it.values, it.rank)
		it.reduce(s.data[a:b], data)
	case data != nil:
		s.claim(a, b, it.values, it.rank)
		copy(s.data[a:b], data)
	}
	if op.Final {
		it.verify(a, b, s.data[a:b])
	}
	return nil
}

// Check implements host.Bytes. The bytes are compared where they are.
func (m *Memory) Check(index int, op *schedule.Op, from, to units.Bytes, data []byte) {
	m.items[index].verify(op.Off+from, op.Off+to, data)
}

// End returns the numbers of wrong and of compared elements of the result. Elements count as wrong
// if no final receive wrote them and they are not the rank's own.
func (m *Memory) End(index int) (wrong, checked int64) {
	it := m.items[index]
	var total int64
	for _, w := range it.layout.Result {
		total += int64(w.Len / it.element)
		if w.Rank == it.rank { // a local copy, which no receive writes
			it.buffers[schedule.Out].touch(w.Off, w.Off+w.Len, it.values, it.rank)
			it.verify(w.Off, w.Off+w.Len, it.buffers[schedule.Out].data[w.Off:w.Off+w.Len])
		}
	}
	return it.wrong + max(0, total-it.checked), it.checked
}

// Wrong returns the offset of the first wrong element of the output, among those compared in the
// repetition that End ended; ok is false if there is none.
func (m *Memory) Wrong(index int) (off units.Bytes, ok bool) {
	it := m.items[index]
	return it.first, it.first >= 0
}

// Close releases an item's buffers. They are kept for the next item: clearing new ones would delay
// the host, and old contents cannot pass for a result.
func (m *Memory) Close(index int) {
	for _, s := range m.items[index].buffers {
		if cap(s.data) > 0 {
			m.spare = append(m.spare, s.data)
		}
	}
	m.shelf.put(m.items[index].values)
	delete(m.items, index)
}

// room returns a buffer of n bytes with arbitrary contents.
func (m *Memory) room(n units.Bytes) []byte {
	best := -1
	for i, b := range m.spare {
		if cap(b) >= int(n) && (best < 0 || cap(b) < cap(m.spare[best])) {
			best = i
		}
	}
	if best < 0 {
		m.spare = nil // all too small: let them go
		b := make([]byte, n)
		if m.made != nil {
			m.made(b)
		}
		m.bring(b)
		return b
	}
	b := m.spare[best]
	m.spare = append(m.spare[:best], m.spare[best+1:]...)
	return b[:n]
}

// Made makes the memory call f with each new buffer, before its first use.
func (m *Memory) Made(f func([]byte)) { m.made = f }

// Ahead makes the memory touch every page of new buffers at once, up to most bytes in total, so
// that the machine provides the memory before the first packet needs it: a page fault takes as long
// as handling a packet. 0 ends that.
func (m *Memory) Ahead(most units.Bytes) { m.ahead = most }

// bring touches the pages of b, as far as Ahead allows.
func (m *Memory) bring(b []byte) {
	const smallestPage = 4096
	n := min(m.ahead, units.Bytes(len(b)))
	m.ahead -= n
	for i := units.Bytes(0); i < n; i += smallestPage {
		b[i] = 0
	}
}

// verify compares data, bytes [from, to) of the output, with the result.
func (it *item) verify(from, to units.Bytes, data []byte) {
	result := it.layout.Result
	i := sort.Search(len(result), func(i int) bool { return result[i].Off+result[i].Len > from })
	for ; i < len(result) && result[i].Off < to; i++ {
		w := result[i]
		a, b := max(from, w.Off), min(to, w.Off+w.Len)
		element := uint64((a - w.Off + w.From) / it.element)
		wrong, first := it.values.compare(data[a-from:b-from], w.Rank, element)
		it.wrong += wrong
		it.checked += int64((b - a) / it.element)
		if wrong == 0 {
			continue
		}
		at := a + units.Bytes(first)*it.element
		if it.first < 0 || at < it.first {
			it.first = at
		}
	}
}
