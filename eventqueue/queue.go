package eventqueue

import (
	"fmt"
	"math/bits"
	"unsafe"

	"weft/internal/prefetch"
	"weft/internal/splitmix"
	"weft/units"
)

// ID names an entity of a Queue, from 0.
type ID int32

// Queue holds the pending instants of a set of entities. The zero value has no entities.
// Not safe for concurrent use: one goroutine owns it.
//
// It is a hierarchy of timing wheels. A wheel has 4096 slots; a slot of the finest spans 512
// ps, a slot of each next one a whole turn of the one below. An instant lies on the finest
// wheel whose present turn contains it, so setting and moving cost the same however many
// entities are pending and however far ahead they lie. Bitmaps tell which slots are occupied:
// empty time costs nothing. When the slot that comes next is on a coarse wheel, its entities
// move to finer ones. A slot of the finest wheel holds few, and the queue searches them for
// the earliest; if they are many it sorts them into the front.
type Queue struct {
	nodes  []node
	front  front
	cur    uint64     // slot of the finest wheel; all before it is in front, all in it in front or on the wheel
	last   units.Time // the instant popped last
	end    units.Time // up to when PopUntil found nothing last
	armed  int
	epoch  units.Time // ties are broken by the time since then
	wheels [levels]wheel
}

// node is an entity. Those in the same slot form a list.
type node struct {
	at         units.Time
	next, prev int32 // neighbours in the slot, plus one; 0 at the ends
	slot       int32 // firstSlot + (level<<slotBits | slot), or inFront, or idle
	key        int32 // see GrowAs
}

const (
	idle      int32 = 0
	inFront   int32 = 1
	firstSlot int32 = 2
)

// New returns a queue of the given number of entities, none of them pending.
func New(entities int) *Queue {
	q := &Queue{}
	q.Grow(entities)
	return q
}

// Grow adds n entities, none of them pending, and returns the first; the others follow it.
func (q *Queue) Grow(n int) (first ID) {
	first = q.grow(n)
	for id := int(first); id < len(q.nodes); id++ {
		q.nodes[id].key = int32(id)
	}
	return first
}

// GrowAs adds an entity for each key. Entities due at the same instant have the order that the
// entities whose numbers are their keys would have in a queue of all of them: so a queue may hold
// some of the entities of a larger one. Keys ascend, and are not less than those of earlier ones.
func (q *Queue) GrowAs(keys []int32) (first ID) {
	first = q.grow(len(keys))
	for i, key := range keys {
		q.nodes[int(first)+i].key = key
	}
	return first
}

func (q *Queue) grow(n int) (first ID) {
	first = ID(len(q.nodes))
	if n < 0 || len(q.nodes)+n > 1<<31-2 {
		panic(fmt.Sprintf("eventqueue: cannot grow %d entities by %d", len(q.nodes), n))
	}
	if first == 0 {
		q.nodes = make([]node, n)
		return first
	}
	q.nodes = append(q.nodes, make([]node, n)...)
	return first
}

// Key returns the key of an entity: its own number, unless GrowAs added it.
func (q *Queue) Key(id ID) int32 { return q.nodes[id].key }

// Len returns how many entities are pending.
func (q *Queue) Len() int { return q.armed }

// Last returns the instant popped last, the earliest that Set accepts; 0 before the first Pop.
func (q *Queue) Last() units.Time { return q.last }

// At returns the instant at which id is pending; ok is false when it is not.
func (q *Queue) At(id ID) (at units.Time, ok bool) {
	n := &q.nodes[id]
	return n.at, n.slot != idle
}

// Prefetch asks the processor for what Set and Pop touch of an entity.
func (q *Queue) Prefetch(id ID) { prefetch.Lines(unsafe.Pointer(&q.nodes[id]), 1) }

// PrefetchAll asks for that of all entities.
func (q *Queue) PrefetchAll() {
	if size := len(q.nodes) * int(unsafe.Sizeof(node{})); size > 0 {
		prefetch.Lines(unsafe.Pointer(&q.nodes[0]), (size+63)/64)
	}
}

// Set makes id pending at the instant at, instead of any earlier or later one it was pending at.
// It panics when at lies before the instant popped last: time would run backwards.
func (q *Queue) Set(id ID, at units.Time) {
	if at < q.last {
		q.refuse(id, at)
	}
	n := &q.nodes[id]
	if n.slot != idle {
		if n.at == at {
			return
		}
		q.remove(n)
	}
	q.armed++
	n.at = at
	if s := uint64(at) >> tickBits; s > q.cur && s^q.cur < slots { // as most are
		q.hang(&q.wheels[0], s&slotMask, n, int32(id))
		n.slot = firstSlot + int32(s&slotMask)
		return
	}
	q.place(n, int32(id))
}

func (q *Queue) refuse(id ID, at units.Time) {
	panic(fmt.Sprintf("eventqueue: entity %d set at %d ps, before %d ps which has passed", id, at, q.last))
}

// Clear makes id no longer pending.
func (q *Queue) Clear(id ID) {
	if n := &q.nodes[id]; n.slot != idle {
		q.remove(n)
	}
}

// Next returns what Pop would return, and leaves it pending.
func (q *Queue) Next() (id ID, at units.Time, ok bool) {
	for q.armed > 0 {
		for len(q.front) > 0 {
			if e := q.front.first(); q.holds(e) {
				return ID(e.id), e.at, true
			}
			q.front = q.front[:len(q.front)-1]
		}
		if level, i := q.first(); level == 0 {
			if id, few := q.least(q.wheels[0].heads[i] - 1); few {
				return ID(id), q.nodes[id].at, true
			}
		}
		q.turn(units.Never)
	}
	return 0, 0, false
}

// Pop takes the earliest pending entity off the queue. ok is false when none is pending.
func (q *Queue) Pop() (id ID, at units.Time, ok bool) { return q.PopUntil(units.Never) }

// PopUntil takes the earliest pending entity off the queue if it is due at end or before;
// otherwise ok is false.
func (q *Queue) PopUntil(end units.Time) (id ID, at units.Time, ok bool) {
	for q.armed > 0 {
		if last := len(q.front) - 1; last >= 0 {
			e := q.front[last]
			if e.at > end {
				break
			}
			q.front = q.front[:last]
			if n := &q.nodes[e.id]; n.slot == inFront && n.at == e.at {
				n.slot = idle
				q.armed--
				q.last = e.at
				return ID(e.id), e.at, true
			}
			continue
		}
		w := &q.wheels[0]
		if i, occupied := w.first(); occupied {
			start := q.cur&^slotMask | i
			if units.Time(start<<tickBits) > end {
				break
			}
			id := w.heads[i] - 1
			n := &q.nodes[id]
			if n.next == 0 { // alone, as most are
				if q.cur = start; n.at > end {
					break
				}
				w.heads[i] = 0
				w.vacate(i)
				n.slot = idle
				q.armed--
				q.last = n.at
				return ID(id), n.at, true
			}
			if id, few := q.least(id); few {
				n := &q.nodes[id]
				if q.cur = start; n.at > end {
					break
				}
				q.last = n.at
				q.remove(n)
				return ID(id), n.at, true
			}
		}
		if !q.turn(end) {
			break
		}
	}
	q.end = end
	return 0, 0, false
}

// few is the number of entities of a slot that a search for the next one reads.
const few = 4

// least returns the earliest entity of the list that begins with id; ok is false when the
// list is longer than few.
func (q *Queue) least(id int32) (first int32, ok bool) {
	n := &q.nodes[id]
	for count, next := 1, n.next; next != 0; count++ {
		if count == few {
			return 0, false
		}
		m := &q.nodes[next-1]
		if m.at < n.at || m.at == n.at &&
			(entry{m.at, q.tie(m.at, m.key), next - 1}).before(entry{n.at, q.tie(n.at, n.key), id}) {
			id, n = next-1, m
		}
		next = m.next
	}
	return id, true
}

// Bound returns an instant before which nothing is pending, units.Never when nothing is
// pending at all. The first pending instant is at most grain later if it is near, and
// otherwise in the slot that begins at the returned instant. Unlike Next it leaves the wheels
// where they are.
func (q *Queue) Bound() units.Time {
	for len(q.front) > 0 {
		if e := q.front.first(); q.holds(e) {
			return e.at
		}
		q.front = q.front[:len(q.front)-1]
	}
	if q.armed == 0 {
		return units.Never
	}
	level, i := q.first()
	if level > 0 {
		return max(q.last, units.Time(q.slotStart(level, i)<<tickBits))
	}
	first := units.Never
	for id := q.wheels[0].heads[i]; id != 0; id = q.nodes[id-1].next {
		first = min(first, q.nodes[id-1].at)
	}
	if start := first &^ (grain - 1); start > q.end {
		return max(q.last, start)
	}
	return first
}

// grain is the precision of Bound, in picoseconds. A network in partitions begins its stretches
// there: what still happens after the last host is done, and is counted, depends on it.
const grain = 128

// holds reports whether e stands for a pending instant. Entries of the front are not removed when
// their entity is cleared or moved: they go stale.
func (q *Queue) holds(e entry) bool {
	n := &q.nodes[e.id]
	return n.slot == inFront && n.at == e.at
}

// place puts n, whose instant is set, into the front or on a wheel.
func (q *Queue) place(n *node, id int32) {
	s := uint64(n.at) >> tickBits
	if s <= q.cur && (s < q.cur || len(q.front) > 0 && q.wheels[0].heads[s&slotMask] == 0) {
		q.toFront(n, id)
		return
	}
	w, i := &q.wheels[0], s&slotMask
	n.slot = firstSlot + int32(i)
	if diff := s ^ q.cur; diff >= slots {
		level := levelOf(diff)
		w, i = &q.wheels[level], s>>(level*slotBits&63)&slotMask
		n.slot = firstSlot + int32(level<<slotBits|uint(i))
	}
	q.hang(w, i, n, id)
}

// hang puts n at the head of the list of slot i of a wheel.
func (q *Queue) hang(w *wheel, i uint64, n *node, id int32) {
	head := w.heads[i&slotMask]
	n.prev, n.next = 0, head
	if head != 0 {
		q.nodes[head-1].prev = id + 1
	} else {
		w.occupy(i)
	}
	w.heads[i&slotMask] = id + 1
}

// toFront puts n into the front, in its place.
func (q *Queue) toFront(n *node, id int32) {
	n.slot = inFront
	n.prev = 0
	if len(q.front) > 64+2*len(q.nodes) {
		q.compact()
	}
	q.front.insert(entry{n.at, q.tie(n.at, n.key), id})
}

// compact removes stale entries from the front, and all but one of those that went stale and
// came true again (which are otherwise harmless: when one of them is popped the others go
// stale).
func (q *Queue) compact() {
	kept := q.front[:0]
	for _, e := range q.front {
		if n := &q.nodes[e.id]; q.holds(e) && n.prev == 0 {
			n.prev = 1 // seen; the lists do not use the field while the node is in the front
			kept = append(kept, e)
		}
	}
	for _, e := range kept {
		q.nodes[e.id].prev = 0
	}
	q.front = kept
}

// remove makes n not pending.
func (q *Queue) remove(n *node) {
	q.armed--
	slot := n.slot
	n.slot = idle
	if slot == inFront {
		return // its entry goes stale
	}
	if n.next != 0 {
		q.nodes[n.next-1].prev = n.prev
	}
	if n.prev != 0 {
		q.nodes[n.prev-1].next = n.next
		return
	}
	slot -= firstSlot
	w, i := &q.wheels[slot>>slotBits], uint64(slot&slotMask)
	if w.heads[i] = n.next; n.next == 0 {
		w.vacate(i)
	}
}

// first returns the slot that comes next, and its wheel. Something must be pending that is
// not in the front.
func (q *Queue) first() (level uint, slot uint64) {
	for level := range uint(levels) {
		if i, ok := q.wheels[level].first(); ok {
			return level, i
		}
	}
	panic(fmt.Sprintf("eventqueue: %d pending, none found", q.armed))
}

// slotStart returns the slot of the finest wheel that slot i of a wheel begins with: the present
// turn of that wheel, i, and the beginning of those below.
func (q *Queue) slotStart(level uint, i uint64) uint64 {
	shift := level * slotBits
	return q.cur>>(shift+slotBits)<<(shift+slotBits) | i<<shift
}

// turn moves on to the slot that comes next, unless it begins after end, and empties it: into
// the front, or onto finer wheels. The front must be empty and something pending.
func (q *Queue) turn(end units.Time) (ok bool) {
	level, i := q.first()
	start := q.slotStart(level, i)
	if units.Time(start<<tickBits) > end {
		return false
	}
	w := &q.wheels[level]
	first := w.heads[i]
	w.heads[i] = 0
	w.vacate(i)
	q.cur = start
	if level == 0 {
		q.order(first)
		return true
	}
	for id := first; id != 0; {
		n := &q.nodes[id-1]
		next := n.next
		q.place(n, id-1)
		id = next
	}
	return true
}

// order puts the nodes of a list into the front, which is empty.
func (q *Queue) order(first int32) {
	for id := first; id != 0; {
		n := &q.nodes[id-1]
		n.slot, n.prev = inFront, 0
		e := entry{n.at, q.tie(n.at, n.key), id - 1}
		if id = n.next; len(q.front) < maxInserted {
			q.front.insert(e)
		} else {
			q.front = append(q.front, e)
		}
	}
	if len(q.front) > maxInserted {
		q.front.sort()
	}
}

// Begin begins an epoch: from now on the order of entities that are due at the same instant follows
// from the time since then. Everything pending is moved later by a time of at least 0, and so is
// the instant popped last. Its cost is proportional to the number of entities.
func (q *Queue) Begin(epoch, by units.Time) {
	q.epoch = epoch
	q.last += by
	q.end, q.cur, q.front = q.last, uint64(q.last)>>tickBits, q.front[:0]
	for level := range q.wheels {
		if w := &q.wheels[level]; w.summary != 0 {
			*w = wheel{}
		}
	}
	q.armed = 0
	for id := range q.nodes {
		if n := &q.nodes[id]; n.slot != idle {
			n.slot = idle
			q.Set(ID(id), n.at+by)
		}
	}
}

// tie orders entities that are due at the same instant, by their keys.
func (q *Queue) tie(at units.Time, key int32) uint32 {
	x := uint64(at-q.epoch) ^ uint64(key)*splitmix.Gamma
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return uint32(x >> 32)
}

// The wheels.
const (
	tickBits = 9 // a slot of the finest wheel spans 512 ps and a turn 2.1 µs: one holds few instants, the other a hop
	slotBits = 12
	slots    = 1 << slotBits
	slotMask = slots - 1
	levels   = 5 // 9 + 5*12 bits are more than a Time has
)

// wheel is a list of nodes for each slot, and a bitmap of those that are not empty.
type wheel struct {
	heads   [slots]int32 // the first node of each list, plus one
	words   [slots / 64]uint64
	summary uint64 // which words are not zero
}

// levelOf returns the wheel for a slot number that differs from the current one in the bits
// of diff, some of which are above those of the finest wheel.
func levelOf(diff uint64) uint { return uint(bits.Len64(diff)-1) / slotBits }

func (w *wheel) occupy(i uint64) {
	word := i / 64
	w.words[word] |= 1 << (i % 64)
	w.summary |= 1 << word
}

func (w *wheel) vacate(i uint64) {
	word := i / 64
	if w.words[word] &^= 1 << (i % 64); w.words[word] == 0 {
		w.summary &^= 1 << word
	}
}

// first returns the first slot that is occupied. None lies before the current one.
func (w *wheel) first() (i uint64, ok bool) {
	if s := w.summary; s != 0 {
		word := uint64(bits.TrailingZeros64(s))
		return word*64 + uint64(bits.TrailingZeros64(w.words[word%(slots/64)])), true
	}
	return 0, false
}
