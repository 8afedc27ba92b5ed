package eventqueue

import (
	"slices"

	"weft/units"
)

// entry is an instant of an entity in the front.
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

// front holds the entries of a slot in order, the earliest at the end: what joins it is due soon,
// and moves few of those that are there.
type front []entry

// first returns the first to be due. There must be one.
func (s front) first() entry { return s[len(s)-1] }

// insert puts e in its place.
func (s *front) insert(e entry) {
	h := append(*s, e)
	*s = h
	i := len(h) - 1
	for ; i > 0 && h[i-1].before(e); i-- {
		h[i] = h[i-1]
	}
	h[i] = e
}

// maxInserted is the number of entries up to which inserting one after the other is faster than
// sorting. Ours.
const maxInserted = 16

// sort puts all entries in order.
func (s front) sort() {
	slices.SortFunc(s, func(e, f entry) int {
		if f.before(e) {
			return -1
		}
		return 1
	})
}
