package timeline

import "weft/units"

// entry is an instant of an entity in the heap.
type entry struct {
	at  units.Time
	tie uint32
	id  int32
}

// before is the order of the queue: by instant, then by hash, then by entity.
func (e entry) before(f entry) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	if e.tie != f.tie {
		return e.tie < f.tie
	}
	return e.id < f.id
}

// heap is a 4-ary heap: half the levels of a binary one, and the four children share a cache line.
type heap []entry

func (s *heap) push(e entry) {
	*s = append(*s, e)
	s.up(len(*s) - 1)
}

// up moves the entry at i towards the root until its parent comes before it.
func (s heap) up(i int) {
	e := s[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
}

// pop removes and returns the first entry. The heap must not be empty.
func (s *heap) pop() entry {
	h := *s
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*s = h
	if len(h) > 0 {
		h.down(0, last)
	}
	return first
}

// down puts e into the hole at i or below, wherever it comes before all children.
func (s heap) down(i int, e entry) {
	for {
		child := 4*i + 1
		if child >= len(s) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(s)); c++ {
			if s[c].before(s[least]) {
				least = c
			}
		}
		if !s[least].before(e) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = e
}

// order makes a heap of entries in any order.
func (s heap) order() {
	for i := len(s)/4 + 1; i >= 0; i-- {
		if i < len(s) {
			s.down(i, s[i])
		}
	}
}
