package buffer

import (
	"encoding/binary"
	"math"

	"weft/collectives/schedule"
)

// Values are the inputs of all ranks in one repetition of an item, and their sums.
//
// Element i of rank r is table[(slot(i)+r) mod 4096], where slot is a hash and the table holds random
// integers from 1 to 4095. So the sum over n ranks depends on slot(i) alone and is looked up too. Sums over
// up to 4096 ranks stay below 2^24: float32 adds them exactly, in any order. No value is 0, so a contribution
// that is missing or comes twice always shows; one from another rank or element shows but for one element
// in 4096.
type Values struct {
	salt  uint64
	table [slots]float32
	sums  [slots]float32
}

// slots is the length of the tables, and MaxRanks how many ranks can be added up exactly.
const (
	slots    = 1 << slotBits
	slotBits = 12
	MaxRanks = slots
)

// reset makes v the values of one repetition of an item among so many ranks, at most MaxRanks.
func (v *Values) reset(seed uint64, item, repeat, ranks int) {
	key := mix(mix(mix(seed)+uint64(item)) + uint64(repeat))
	v.salt = mix(key + 1)
	for i := range v.table {
		key += golden
		v.table[i] = float32(1 + mix(key)%(slots-1))
	}
	sum := float32(0) // of the window of so many entries
	for r := range ranks {
		sum += v.table[r]
	}
	for i := range v.sums {
		v.sums[i] = sum
		sum += v.table[(i+ranks)%slots] - v.table[i]
	}
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

// want returns the table and the shift that give the input of a rank, or the sum of all.
func (v *Values) want(rank int) (table *[slots]float32, shift int) {
	if rank == schedule.All {
		return &v.sums, 0
	}
	return &v.table, rank
}

// fill writes the input of a rank from the given element on.
func (v *Values) fill(dst []byte, rank int, element uint64) {
	table, shift := v.want(rank)
	for len(dst) >= 4 {
		x := v.spread(element / 4)
		if element%4 == 0 && len(dst) >= 16 {
			put32(dst, table[(slot(x, 0)+shift)%slots])
			put32(dst[4:], table[(slot(x, 1)+shift)%slots])
			put32(dst[8:], table[(slot(x, 2)+shift)%slots])
			put32(dst[12:], table[(slot(x, 3)+shift)%slots])
			dst, element = dst[16:], element+4
			continue
		}
		put32(dst, table[(slot(x, element)+shift)%slots])
		dst, element = dst[4:], element+1
	}
}

// compare returns how many elements of got differ from the input of a rank, or the sum of all, from the
// given element on, and where the first is (-1: none).
func (v *Values) compare(got []byte, rank int, element uint64) (wrong int64, first int) {
	table, shift := v.want(rank)
	from := element
	first = -1
	for len(got) >= 4 {
		x := v.spread(element / 4)
		if element%4 == 0 && len(got) >= 16 {
			differ := bits(got) ^ math.Float32bits(table[(slot(x, 0)+shift)%slots])
			differ |= bits(got[4:]) ^ math.Float32bits(table[(slot(x, 1)+shift)%slots])
			differ |= bits(got[8:]) ^ math.Float32bits(table[(slot(x, 2)+shift)%slots])
			differ |= bits(got[12:]) ^ math.Float32bits(table[(slot(x, 3)+shift)%slots])
			if differ == 0 {
				got, element = got[16:], element+4
				continue
			}
		}
		if bits(got) != math.Float32bits(table[(slot(x, element)+shift)%slots]) {
			if wrong++; first < 0 {
				first = int(element - from)
			}
		}
		got, element = got[4:], element+1
	}
	return wrong, first
}

// at returns one value, for messages.
func (v *Values) at(rank int, element uint64) float32 {
	table, shift := v.want(rank)
	return table[(slot(v.spread(element/4), element)+shift)%slots]
}

// add adds src to dst element by element. They have the same length, a multiple of 4.
func add(dst, src []byte) {
	for len(dst) >= 4 && len(src) >= 4 {
		put32(dst, get32(dst)+get32(src))
		dst, src = dst[4:], src[4:]
	}
}

// bits returns the first element of b as it is stored.
func bits(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// get32 returns the first element of b, and put32 sets it.
func get32(b []byte) float32    { return math.Float32frombits(bits(b)) }
func put32(b []byte, x float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(x)) }
