package buffer

import (
	"weft/collectives/schedule"
	"weft/units"
)

// A Shelf holds the values in use by memories. They are the same for all ranks, 32 KB per
// repetition of an item. The zero value is empty. It belongs to one goroutine.
type Shelf struct {
	used  map[volume]*lent
	spare []*Values // for reuse
	bytes []byte    // what input returns
}

// volume is the key of values: everything that they depend on.
type volume struct {
	seed         uint64
	item, repeat int
	ranks        int
	kind         schedule.Type
	op           schedule.Reduction
	reduces      bool
}

// lent are values in use, with a reference count.
type lent struct {
	values *Values
	users  int
}

// take returns the values of a repetition, to be read only, until put.
func (s *Shelf) take(seed uint64, item, repeat int, spec *schedule.Spec, reduces bool) *Values {
	key := volume{seed, item, repeat, spec.Ranks, spec.Type, spec.Op, reduces}
	if l := s.used[key]; l != nil {
		l.users++
		return l.values
	}
	v := new(Values)
	if n := len(s.spare); n > 0 {
		v, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	v.reset(seed, item, repeat, spec, reduces)
	v.volume = key
	if s.used == nil {
		s.used = map[volume]*lent{}
	}
	s.used[key] = &lent{v, 1}
	return v
}

// put ends a use of values; nil is ignored.
func (s *Shelf) put(v *Values) {
	if v == nil {
		return
	}
	l := s.used[v.volume]
	if l.users--; l.users == 0 {
		delete(s.used, v.volume)
		s.spare = append(s.spare, v)
	}
}

// input returns bytes [at, at+n) of the input of a rank, valid until the next call: in room if that
// has n bytes and they are whole elements.
func (s *Shelf) input(v *Values, rank int, at, n units.Bytes, room []byte) []byte {
	from, to := at>>v.shift, (at+n-1)>>v.shift+1 // elements
	if units.Bytes(len(room)) == n && from<<v.shift == at && to<<v.shift == at+n {
		v.fill(room, rank, uint64(from))
		return room
	}
	if size := (to - from) << v.shift; units.Bytes(len(s.bytes)) < size {
		s.bytes = make([]byte, size)
	}
	v.fill(s.bytes[:(to-from)<<v.shift], rank, uint64(from))
	skip := at - from<<v.shift
	return s.bytes[skip : skip+n]
}
