package buffer

import (
	"encoding/binary"

	"weft/collectives/schedule"
)

// Values are the inputs of all ranks in one repetition of an item, and what they reduce to.
//
// Element i of rank r is table[(slot(i)+r) mod 4096], where slot is a hash and the table holds random values.
// So the reduction over n ranks depends on slot(i) alone and is looked up too. What the table holds depends
// on type and reduction (draw.go): reductions are exact, in any order, and as many mistakes as possible show.
// An element that is from another rank or place shows but for one in as many as there are values.
type Values struct {
	salt    uint64
	element uint64 // its size
	table   [slots]uint32
	results [slots]uint32
	kind    schedule.Type
	volume  volume // on its Shelf
}

// slots is the length of the tables, and MaxRanks how many ranks can share them.
const (
	slots    = 1 << slotBits
	slotBits = 12
	MaxRanks = slots
)

// reset makes v the values of one repetition of an item, which may reduce them.
func (v *Values) reset(seed uint64, item, repeat int, s *schedule.Spec, reduces bool) {
	key := mix(mix(mix(seed)+uint64(item)) + uint64(repeat))
	v.salt = mix(key + 1)
	v.kind, v.element = s.Type, uint64(s.Type.Size())
	v.draw(key, s, reduces)
}

const golden = 0x9e37_79b9_7f4a_7c15 // 2^64 over the golden ratio (splitmix64)

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58_476d_1ce4_e5b9
	x = (x ^ x>>27) * 0x94d0_49bb_1331_11eb
	return x ^ x>>31
}

// spread returns the slots of elements 4·group to 4·group+3, the first in the highest bits. Neighbours and
// blocks must not look alike: hence a full hash.
func (v *Values) spread(group uint64) uint64 { return mix(group + v.salt) }

// slot takes one of the four out of a spread.
func slot(spread, element uint64) int { return int(spread>>(64-slotBits*(1+element%4))) % slots }

// want returns the table and the shift that give the input of a rank, or the reduction of all.
func (v *Values) want(rank int) (table *[slots]uint32, shift int) {
	if rank == schedule.All {
		return &v.results, 0
	}
	return &v.table, rank
}

// fill writes the input of a rank from the given element on.
func (v *Values) fill(dst []byte, rank int, element uint64) {
	if v.element == 2 {
		v.fill16(dst, rank, element)
		return
	}
	table, shift := v.want(rank)
	for len(dst) >= 4 {
		if element%4 == 0 && len(dst) >= 16 {
			n := len(dst) &^ 15
			v.fillGroups(dst[:n], table, uint64(shift), element/4)
			dst, element = dst[n:], element+uint64(n/4)
			continue
		}
		put32(dst, table[(slot(v.spread(element/4), element)+shift)%slots])
		dst, element = dst[4:], element+1
	}
}

// fillGroups writes whole groups of four elements. It is what a packet costs its sender in this package.
func (v *Values) fillGroups(dst []byte, table *[slots]uint32, shift, group uint64) {
	for ; len(dst) >= 16; dst, group = dst[16:], group+1 {
		low, high := pairs(table, v.spread(group), shift)
		binary.LittleEndian.PutUint64(dst, low)
		binary.LittleEndian.PutUint64(dst[8:16], high)
	}
}

// pairs returns the four values that a spread stands for, two in a word as they are stored.
func pairs(table *[slots]uint32, x, shift uint64) (low, high uint64) {
	low = uint64(table[(x>>(64-slotBits)+shift)%slots]) | uint64(table[(x>>(64-2*slotBits)+shift)%slots])<<32
	high = uint64(table[(x>>(64-3*slotBits)+shift)%slots]) | uint64(table[(x>>(64-4*slotBits)+shift)%slots])<<32
	return low, high
}

// fill16 is fill for elements of two bytes.
func (v *Values) fill16(dst []byte, rank int, element uint64) {
	table, shift := v.want(rank)
	x := v.spread(element / 4)
	for ; len(dst) >= 2; dst = dst[2:] {
		put16(dst, table[(slot(x, element)+shift)%slots])
		if element++; element%4 == 0 {
			x = v.spread(element / 4)
		}
	}
}

// compare returns how many elements of got differ from the input of a rank, or the reduction of all, from the
// given element on, and where the first is (-1: none).
func (v *Values) compare(got []byte, rank int, element uint64) (wrong int64, first int) {
	if v.element == 2 {
		return v.compare16(got, rank, element)
	}
	table, shift := v.want(rank)
	from := element
	first = -1
	for len(got) >= 4 {
		if element%4 == 0 {
			n := v.equalGroups(got, table, uint64(shift), element/4)
			if got, element = got[16*n:], element+uint64(4*n); len(got) < 4 {
				break
			}
		}
		if get32(got) != table[(slot(v.spread(element/4), element)+shift)%slots] {
			if wrong++; first < 0 {
				first = int(element - from)
			}
		}
		got, element = got[4:], element+1
	}
	return wrong, first
}

// equalGroups returns how many whole groups of four elements got begins with that are what they should be.
func (v *Values) equalGroups(got []byte, table *[slots]uint32, shift, group uint64) (n int) {
	for ; len(got) >= 16; got, group = got[16:], group+1 {
		low, high := pairs(table, v.spread(group), shift)
		if binary.LittleEndian.Uint64(got) != low || binary.LittleEndian.Uint64(got[8:16]) != high {
			break
		}
		n++
	}
	return n
}

// compare16 is compare for elements of two bytes.
func (v *Values) compare16(got []byte, rank int, element uint64) (wrong int64, first int) {
	table, shift := v.want(rank)
	first = -1
	x := v.spread(element / 4)
	for i := 0; len(got) >= 2; i, got = i+1, got[2:] {
		if get16(got) != table[(slot(x, element)+shift)%slots] {
			if wrong++; first < 0 {
				first = i
			}
		}
		if element++; element%4 == 0 {
			x = v.spread(element / 4)
		}
	}
	return wrong, first
}

// at returns one value, for messages.
func (v *Values) at(rank int, element uint64) float64 {
	table, shift := v.want(rank)
	return number(v.kind, table[(slot(v.spread(element/4), element)+shift)%slots])
}

// stored returns the element that b begins with, for messages.
func (v *Values) stored(b []byte) float64 {
	if v.element == 2 {
		return number(v.kind, get16(b))
	}
	return number(v.kind, get32(b))
}

// get32 and get16 return the first element of b as it is stored, and put32 and put16 set it.
func get32(b []byte) uint32    { return binary.LittleEndian.Uint32(b) }
func get16(b []byte) uint32    { return uint32(binary.LittleEndian.Uint16(b)) }
func put32(b []byte, x uint32) { binary.LittleEndian.PutUint32(b, x) }
func put16(b []byte, x uint32) { binary.LittleEndian.PutUint16(b, uint16(x)) }

// maxRanks is how many ranks can take part.
func maxRanks(s *schedule.Spec, reduces bool) int {
	if reduces && s.Type == schedule.BFloat16 && sums(s) {
		return maxSumBFloat16
	}
	return MaxRanks
}

// MostRanks is how many ranks of a collective can hold real data that reduces exactly.
func MostRanks(s schedule.Spec) int {
	facts, err := schedule.About(s.Collective, s.Algorithm)
	return maxRanks(&s, err == nil && facts.Reduces)
}

// sums says whether the reduction is a sum.
func sums(s *schedule.Spec) bool { return s.Op == "" || s.Op == schedule.Sum }
