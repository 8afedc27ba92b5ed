package transport

import "weft/units"

// timers holds at most one instant for each of a set of entities, numbered from 0, in an indexed
// 4-ary heap. An endpoint has few: a queue for a whole network (package eventqueue) would be larger
// than the endpoint. Entities due at the same instant fire in the order of their numbers, so that a
// run is deterministic.
type timers struct {
	heap []timer
	pos  []int32 // by entity: index in heap, or -1
}

// timer is an entity that is armed.
type timer struct {
	at units.Time
	id int32 // the entity
}

// before reports whether t fires before u.
func (t timer) before(u timer) bool { return t.at < u.at || t.at == u.at && t.id < u.id }

// add adds an entity, disarmed.
func (q *timers) add() { q.pos = append(q.pos, -1) }

// next returns the earliest instant.
func (q *timers) next() (units.Time, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// at returns the instant for which id is armed; ok is false if it is not.
func (q *timers) at(id int32) (units.Time, bool) {
	if p := q.pos[id]; p >= 0 {
		return q.heap[p].at, true
	}
	return 0, false
}

// set arms id for an instant, or moves it there.
func (q *timers) set(id int32, at units.Time) {
	t := timer{at, id}
	p := q.pos[id]
	switch {
	case p < 0:
		q.heap = append(q.heap, t)
		q.up(len(q.heap)-1, t)
	case t.before(q.heap[p]):
		q.up(int(p), t)
	default:
		q.down(int(p), t)
	}
}

// clear disarms id. The last entity of the heap takes its slot and moves to where it belongs.
func (q *timers) clear(id int32) {
	p := int(q.pos[id])
	if p < 0 {
		return
	}
	q.pos[id] = -1
	last := q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	if p == len(q.heap) {
		return
	}
	if p > 0 && last.before(q.heap[(p-1)/4]) {
		q.up(p, last)
	} else {
		q.down(p, last)
	}
}

// up places t at p or nearer to the root, where p is a free slot.
func (q *timers) up(p int, t timer) {
	for p > 0 {
		parent := (p - 1) / 4
		if !t.before(q.heap[parent]) {
			break
		}
		q.put(p, q.heap[parent])
		p = parent
	}
	q.put(p, t)
}

// down places t at p or farther from the root, where p is a free slot.
func (q *timers) down(p int, t timer) {
	for {
		smallest := 4*p + 1
		if smallest >= len(q.heap) {
			break
		}
		for c := smallest + 1; c < min(4*p+5, len(q.heap)); c++ {
			if q.heap[c].before(q.heap[smallest]) {
				smallest = c
			}
		}
		if !q.heap[smallest].before(t) {
			break
		}
		q.put(p, q.heap[smallest])
		p = smallest
	}
	q.put(p, t)
}

// put stores t in slot p of the heap.
func (q *timers) put(p int, t timer) {
	q.heap[p] = t
	q.pos[t.id] = int32(p)
}
