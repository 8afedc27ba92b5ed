package buffer

import (
	"weft/collectives/schedule"
	"weft/units"
)

// page is the unit in which inputs are written when they are first touched.
const page units.Bytes = 16 * units.KiB

// store is one buffer of a rank. Its bytes are undefined until touched or claimed.
type store struct {
	data  []byte
	local []schedule.Copy // regions that start as parts of the input
	ready []bool          // by page: it holds its input or later data

	element units.Bytes // size of an element
}

// newStore returns a buffer in data, which may hold anything.
func newStore(data []byte, local []schedule.Copy, element units.Bytes) store {
	s := store{data: data, local: local, element: element}
	if len(local) > 0 {
		s.ready = make([]bool, (units.Bytes(len(data))+page-1)/page)
	}
	return s
}

// touch makes sure that [from, to) holds its input before it is read or reduced into.
func (s *store) touch(from, to units.Bytes, v *Values, rank int) {
	if s.ready == nil || from >= to {
		return
	}
	for p := from / page; p <= (to-1)/page; p++ {
		if !s.ready[p] {
			s.ready[p] = true
			s.fill(p*page, min((p+1)*page, units.Bytes(len(s.data))), v, rank)
		}
	}
}

// claim prepares [from, to) for being replaced: pages that are replaced as a whole need no input.
func (s *store) claim(from, to units.Bytes, v *Values, rank int) {
	if s.ready == nil || from >= to {
		return
	}
	first, last := from/page, (to-1)/page
	if from%page != 0 {
		s.touch(from, from+1, v, rank)
	}
	if to%page != 0 {
		s.touch(to-1, to, v, rank)
	}
	for p := first; p <= last; p++ {
		s.ready[p] = true
	}
}

// fill writes the input into its regions within [from, to).
func (s *store) fill(from, to units.Bytes, v *Values, rank int) {
	for _, c := range s.local {
		a, b := max(from, c.Off), min(to, c.Off+c.Len)
		if a < b {
			v.fill(s.data[a:b], rank, uint64((a-c.Off+c.From)/s.element))
		}
	}
}
