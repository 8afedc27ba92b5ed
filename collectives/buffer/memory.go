package buffer

import (
	"fmt"
	"sort"

	"weft/collectives/schedule"
	"weft/units"
)

// Memory is the buffers of one host, for each item that is running. It implements host.Bytes.
type Memory struct {
	seed     uint64
	shelf    *Shelf
	items    map[int]*item
	spare    [][]byte     // of items that are over
	made     func([]byte) // see Made
	ahead    units.Bytes  // how much more may be touched when it is made: see Ahead
	mistakes []Mistake
}

// Mistake is an element of a result that is not what it should be.
type Mistake struct {
	Item, Repeat, Rank int
	Element            int64 // of the result
	Got, Want          float64
}

// maxMistakes is how many mistakes are kept; all are counted.
const maxMistakes = 8

// New returns a memory without buffers. The seed is the lab's: all hosts must have the same. Memories that one goroutine uses may
// share a shelf, where what all of them compare with then lies once; nil: the memory has its own.
func New(seed uint64, s *Shelf) *Memory {
	if s == nil {
		s = new(Shelf)
	}
	return &Memory{seed: seed, shelf: s, items: map[int]*item{}}
}

// item is the buffers of one repetition of an item.
type item struct {
	index, repeat, rank int
	values              *Values
	layout              schedule.Layout
	buffers             [2]store // by schedule.Buf
	element             units.Bytes
	reduces             bool // the collective does
	reduce              func(dst, src []byte)
	wrong, checked      int64       // elements
	first               units.Bytes // of the output: the first that is wrong; -1: none is
}

// Begin readies the buffers of an item for a repetition: the rank's input, and an output that starts as the
// layout says.
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
			return fmt.Errorf("%d ranks: real data is reduced exactly for at most %d", s.Ranks, most)
		}
		it = &item{index: index, layout: l, element: s.Type.Size(), reduces: facts.Reduces, reduce: reducer(s.Type, s.Op)}
		if l.In > 0 {
			it.buffers[schedule.In] = newStore(m.room(l.In), []schedule.Copy{{Len: l.In}}, it.element)
		}
		it.buffers[schedule.Out] = newStore(m.room(l.Out), l.Local, it.element)
		m.items[index] = it
	}
	it.repeat, it.rank, it.wrong, it.checked, it.first = repeat, rank, 0, 0, -1
	m.shelf.put(it.values)
	it.values = m.shelf.take(m.seed, index, repeat, &s, it.reduces)
	for b := range it.buffers {
		clear(it.buffers[b].ready)
	}
	return nil
}

// Send is told that op was handed to the transport. The bytes are read when packets leave.
func (m *Memory) Send(int, *schedule.Op, uint64) {}

// Load returns n bytes from off on of the region that op sends. They stay as they are until the send is
// complete.
func (m *Memory) Load(index int, op *schedule.Op, off, n units.Bytes) []byte {
	it := m.items[index]
	s, at := &it.buffers[op.Buf], op.Off+off
	s.touch(at, at+n, it.values, it.rank)
	return s.data[at : at+n]
}

// Place returns the region that op, which replaces, receives into: payload may be copied there right away.
func (m *Memory) Place(index int, op *schedule.Op) []byte {
	it := m.items[index]
	s := &it.buffers[op.Buf]
	s.claim(op.Off, op.Off+op.Len, it.values, it.rank)
	return s.data[op.Off : op.Off+op.Len]
}

// Apply puts bytes [from, to) of the message that op receives into its region, adding or replacing as it
// says, and verifies them if op is final. data is nil when they were placed there already. from and to are
// multiples of an element.
func (m *Memory) Apply(index int, op *schedule.Op, _ uint64, from, to units.Bytes, data []byte) error {
	it := m.items[index]
	s := &it.buffers[op.Buf]
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
		m.verify(it, a, b)
	}
	return nil
}

// End returns how many elements of the result were compared and how many are wrong. Elements that no final
// receive wrote and that are not the rank's own are wrong.
func (m *Memory) End(index int) (wrong, checked int64) {
	it := m.items[index]
	var total int64
	for _, w := range it.layout.Result {
		total += int64(w.Len / it.element)
		if w.Rank == it.rank { // a local copy that nothing else writes to
			it.buffers[schedule.Out].touch(w.Off, w.Off+w.Len, it.values, it.rank)
			m.verify(it, w.Off, w.Off+w.Len)
		}
	}
	return it.wrong + max(0, total-it.checked), it.checked
}

// Wrong returns the first byte of the output that is not what the result should be, of those that were compared in the
// repetition that End ended; false: none is.
func (m *Memory) Wrong(index int) (off units.Bytes, ok bool) {
	it := m.items[index]
	return it.first, it.first >= 0
}

// Close ends the use of an item's buffers. They are kept for the next item: clearing new ones would hold up
// the host, and what is left in them cannot pass for a result.
func (m *Memory) Close(index int) {
	for _, s := range m.items[index].buffers {
		if cap(s.data) > 0 {
			m.spare = append(m.spare, s.data)
		}
	}
	m.shelf.put(m.items[index].values)
	delete(m.items, index)
}

// room returns n bytes that hold anything.
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

// Made has f called with each buffer that is made from now on, before anything is in it.
func (m *Memory) Made(f func([]byte)) { m.made = f }

// Ahead has every page of the buffers that are made from now on touched when they are made, up to so many bytes of them
// together, so that the machine has the memory before the first packet comes for it: getting a page takes as long
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

// Mistakes returns the first few wrong elements.
func (m *Memory) Mistakes() []Mistake { return m.mistakes }

// verify compares bytes [from, to) of the output with the result.
func (m *Memory) verify(it *item, from, to units.Bytes) {
	data := it.buffers[schedule.Out].data
	result := it.layout.Result
	i := sort.Search(len(result), func(i int) bool { return result[i].Off+result[i].Len > from })
	for ; i < len(result) && result[i].Off < to; i++ {
		w := result[i]
		a, b := max(from, w.Off), min(to, w.Off+w.Len)
		element := uint64((a - w.Off + w.From) / it.element)
		wrong, first := it.values.compare(data[a:b], w.Rank, element)
		it.wrong += wrong
		it.checked += int64((b - a) / it.element)
		if wrong == 0 {
			continue
		}
		at := a + units.Bytes(first)*it.element
		if it.first < 0 || at < it.first {
			it.first = at
		}
		if len(m.mistakes) < maxMistakes {
			m.mistakes = append(m.mistakes, Mistake{
				Item: it.index, Repeat: it.repeat, Rank: it.rank, Element: int64(at / it.element),
				Got: it.values.stored(data[at:]), Want: it.values.at(w.Rank, element+uint64(first)),
			})
		}
	}
}
