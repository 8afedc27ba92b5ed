package transport

import "math/bits"

// bitmap is a set of packet numbers in a window that only moves up. It is a ring of bits: reach
// sets the width of the window, and numbers below the window must have been removed.
type bitmap struct {
	words []uint64 // the length is 0 or a power of two
}

// reach makes room for numbers from low to below high, with 64 to spare, so that get never wraps
// around.
func (b *bitmap) reach(low, high uint64) {
	need := high - low + 64
	if need <= 64*uint64(len(b.words)) {
		return
	}
	words := make([]uint64, 1<<bits.Len64((need-1)>>6))
	for i := range uint64(len(b.words)) {
		n := low>>6 + i
		words[n&uint64(len(words)-1)] = b.words[n&uint64(len(b.words)-1)]
	}
	b.words = words
}

func (b *bitmap) word(n uint64) *uint64 { return &b.words[n>>6&uint64(len(b.words)-1)] }

// has reports whether n, a number in the window, is in the set.
func (b *bitmap) has(n uint64) bool { return len(b.words) > 0 && *b.word(n)>>(n&63)&1 != 0 }

func (b *bitmap) set(n uint64)   { *b.word(n) |= 1 << (n & 63) }
func (b *bitmap) clear(n uint64) { *b.word(n) &^= 1 << (n & 63) }

// get returns the bits of the 64 numbers from n.
func (b *bitmap) get(n uint64) uint64 {
	if len(b.words) == 0 {
		return 0
	}
	s := n & 63
	return *b.word(n)>>s | *b.word(n + 64)<<(64-s)
}

// add adds n+i for every bit i that is set in mask.
func (b *bitmap) add(n, mask uint64) {
	s := n & 63
	*b.word(n) |= mask << s
	*b.word(n + 64) |= mask >> (64 - s)
}

// remove removes n+i for every bit i that is set in mask.
func (b *bitmap) remove(n, mask uint64) {
	if len(b.words) == 0 {
		return
	}
	s := n & 63
	*b.word(n) &^= mask << s
	*b.word(n + 64) &^= mask >> (64 - s)
}

// drop removes all numbers from low to below high.
func (b *bitmap) drop(low, high uint64) {
	for ; low < high; low += 64 {
		b.remove(low, ones(high-low))
	}
}

// run removes the numbers from n up to the first that is missing, and returns their count.
func (b *bitmap) run(n uint64) (count uint64) {
	for {
		k := uint64(bits.TrailingZeros64(^b.get(n + count)))
		b.remove(n+count, ones(k))
		count += k
		if k < 64 {
			return count
		}
	}
}

// ones returns a mask with the lowest n bits set, at most 64.
func ones(n uint64) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}
