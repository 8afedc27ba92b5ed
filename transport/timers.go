package transport

import "weft/units"

// timers holds at most one instant for each of a set of entities, numbered from 0, in a 4-ary heap that knows
// where each one is. An endpoint has few: a queue made for a whole network (package eventqueue) would be larger
// than the endpoint. Entities due at the same instant fire in order of number.
type timers struct {
	heap []timer
	pos  []int32 // by entity: index in heap, or -1
}

type timer struct {
	at units.Time
	id int32
}

func (t timer) before(u timer) bool { return t.at < u.at || t.at == u.at && t.id < u.id }

// add makes room for one more entity.
func (q *timers) add() { q.pos = append(q.pos, -1) }

// next returns the earliest instant.
func (q *timers) next() (units.Time, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// at returns the instant at which id is armed.
func (q *timers) at(id int32) (units.Time, bool) {
	if p := q.pos[id]; p >= 0 {
		return q.heap[p].at, true
	}
	return 0, false
}

// set arms id, or moves it.
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

// clear disarms id.
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

// up puts t into the hole at p or nearer to the root.
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

// down puts t into the hole at p or further from the root.
func (q *timers) down(p int, t timer) {
	for {
		least := 4*p + 1
		if least >= len(q.heap) {
			break
		}
		for c := least + 1; c < min(4*p+5, len(q.heap)); c++ {
			if q.heap[c].before(q.heap[least]) {
				least = c
			}
		}
		if !q.heap[least].before(t) {
			break
		}
		q.put(p, q.heap[least])
		p = least
	}
	q.put(p, t)
}

func (q *timers) put(p int, t timer) {
	q.heap[p] = t
	q.pos[t.id] = int32(p)
}
