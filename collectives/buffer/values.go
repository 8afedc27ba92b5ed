package buffer

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"weft/collectives/schedule"
	"weft/internal/splitmix"
)

// Values are the inputs of all ranks in one repetition of an item, and their reductions.
//
// Element i of rank r is table[(slot(i)+r) mod 4096], where the table holds random values. So the
// reduction over n ranks depends on slot(i) only, and is in a table, too. The contents depend on
// type and reduction (draw.go): reductions are exact in any order, and mistakes are as visible as
// possible.
//
// Buffers consist of strips of consecutive elements. The slot of a strip's first element is a hash;
// each next element is stride slots later, so that no two elements of a strip are the same unless
// their ranks are at least 31 apart. The tables are stored in that order: a strip is copied and
// compared as one piece. A misplaced element goes unnoticed only if it has the same value by
// chance.
type Values struct {
	salt    uint64 // of the hash of strips
	shift   uint   // an element has 1<<shift bytes: divisions would take a third of the time
	kind    schedule.Type
	inputs  laid
	results laid
	volume  volume // key on its Shelf
}

// laid is a table in the order of buffers: element k is that of slot k·stride mod 4096. The first
// strip is repeated at the end.
type laid [(slots + strip) * 4]byte

// slots is the length of the tables, MaxRanks the number of ranks that can share them, and strip
// the number of elements of a piece: few pieces make a packet. No stride keeps the elements of a
// strip farther apart than 127; back is its inverse modulo 4096: the distance of neighbouring slots
// in a laid table.
const (
	slots    = 1 << slotBits
	slotBits = 12
	MaxRanks = slots
	strip    = 128
	stride   = 127
	back     = 3967
)

// reset makes v the values of one repetition of an item. reduces is true if the collective
// reduces.
func (v *Values) reset(seed uint64, item, repeat int, s *schedule.Spec, reduces bool) {
	key := splitmix.Mix(splitmix.Mix(splitmix.Mix(seed)+uint64(item)) + uint64(repeat))
	v.salt = splitmix.Mix(key + 1)
	v.kind, v.shift = s.Type, uint(bits.TrailingZeros64(uint64(s.Type.Size())))
	d := drawn{kind: s.Type}
	d.draw(key, s, reduces)
	v.lay(&v.inputs, &d.table)
	v.lay(&v.results, &d.results)
}

// lay stores a table in the order of buffers.
func (v *Values) lay(to *laid, table *[slots]uint32) {
	for k := range slots + strip {
		x := table[k*stride%slots]
		if v.shift == 1 {
			put16(to[2*k:], x)
		} else {
			put32(to[4*k:], x)
		}
	}
}

// piece returns a strip from an element to its end: of a rank's input, or of the reduction of all.
// A full hash of the strip's number keeps neighbouring strips and blocks from looking alike.
func (v *Values) piece(rank int, element uint64) []byte {
	at := splitmix.Mix(element/strip+v.salt) >> (64 - slotBits)
	table := &v.results
	if rank != schedule.All {
		table, at = &v.inputs, (at+uint64(rank)*back)%slots
	}
	return table[(at+element%strip)<<v.shift : (at+strip)<<v.shift]
}

// fill writes the input of a rank from the given element on. Each packet costs its sender one fill.
func (v *Values) fill(dst []byte, rank int, element uint64) {
	dst = dst[:len(dst)>>v.shift<<v.shift]
	for len(dst) > 0 {
		n := copy(dst, v.piece(rank, element))
		dst, element = dst[n:], element+uint64(n)>>v.shift
	}
}

// compare returns the number of elements of got that differ from the input of a rank, or from the
// reduction of all, from the given element on, and the index of the first (-1: none).
func (v *Values) compare(got []byte, rank int, element uint64) (wrong int64, first int) {
	first = -1
	size := 1 << v.shift
	got = got[:len(got)>>v.shift<<v.shift]
	for done := 0; len(got) > 0; {
		want := v.piece(rank, element+uint64(done))
		want = want[:min(len(want), len(got))]
		if !bytes.Equal(got[:len(want)], want) {
			for at := 0; at < len(want); at += size {
				if bytes.Equal(got[at:at+size], want[at:at+size]) {
					continue
				}
				if wrong++; first < 0 {
					first = done + at>>v.shift
				}
			}
		}
		got, done = got[len(want):], done+len(want)>>v.shift
	}
	return wrong, first
}

// get32 and get16 return the first element of b as it is stored, and put32 and put16 set it.
func get32(b []byte) uint32    { return binary.LittleEndian.Uint32(b) }
func get16(b []byte) uint32    { return uint32(binary.LittleEndian.Uint16(b)) }
func put32(b []byte, x uint32) { binary.LittleEndian.PutUint32(b, x) }
func put16(b []byte, x uint32) { binary.LittleEndian.PutUint16(b, uint16(x)) }

// maxRanks returns the largest number of ranks with exact reductions.
func maxRanks(s *schedule.Spec, reduces bool) int {
	if reduces && s.Type == schedule.BFloat16 && sums(s) {
		return maxSumBFloat16
	}
	return MaxRanks
}

// MostRanks returns the largest number of ranks for which real data of a collective reduces
// exactly.
func MostRanks(s schedule.Spec) int {
	facts, err := schedule.About(s.Collective, s.Algorithm)
	return maxRanks(&s, err == nil && facts.Reduces)
}

// sums reports whether the reduction is a sum.
func sums(s *schedule.Spec) bool { return s.Op == "" || s.Op == schedule.Sum }
