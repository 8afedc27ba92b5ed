package schedule

import (
	"slices"

	"weft/units"
)

// Recursive halving and doubling (Rabenseifner; MPICH's reduce-scatter and all-gather, astra-sim's
// HalvingDoubling). All-reduce: of a power of two of ranks, in step k rank r exchanges halves of what it still
// works on with rank r XOR 2^k: it sends one half, reduces the other, and goes on with that; after the last
// step it holds the reduction of one block. Then the same steps backwards, doubling what it holds. Each rank
// sends 2(n−1)/n of the buffer in 2·log2 n messages. FarFirst takes the steps the other way around, the
// farthest peer first; which rank exchanges how much with which differs then, the totals do not.
//
// Of n ranks that are no power of two, the largest power p below takes part: of the first 2(n−p) ranks, the
// even ones hand their whole buffer to the odd ones before, and get the result from them after (MPICH).
//
// Reduce-scatter by recursive halving is the first half with the farthest peer first, so that rank r ends
// with block r; all-gather by recursive doubling is the second, from the nearest peer on. Both are for powers
// of two.
//
// A rank begins a step when both messages of the step before are done, as with MPI_Sendrecv: no rank waits for
// others than its peer. It could begin when the other's message has come, but its own would then share the line
// with the next, to a peer that does not wait yet: 16 ranks that begin 0.2 ms apart took 5.0 ms instead of 3.0 ms
// for 16 MB at 100 Gb/s; 2.7 ms either way when they begin together.

type halving struct {
	Spec
	blocks
	steps  int // log2 of the ranks that take part
	folded int // ranks that do not
}

func newHalving(s Spec) halving {
	h := halving{Spec: s}
	for 2<<h.steps <= s.Ranks {
		h.steps++
	}
	h.folded = s.Ranks - 1<<h.steps
	h.blocks = cutBlocks(s.Size, 1<<h.steps, s.Type.Size())
	h.FarFirst = s.FarFirst || s.Collective != AllReduce
	return h
}

// part returns the number of a rank among those that take part; ok is false for the others.
func (h halving) part(rank int) (c int, ok bool) {
	switch {
	case rank >= 2*h.folded:
		return rank - h.folded, true
	case rank%2 == 1:
		return rank / 2, true
	}
	return 0, false
}

// rankOf is the inverse of part.
func (h halving) rankOf(c int) int {
	if c < h.folded {
		return 2*c + 1
	}
	return c + h.folded
}

// exchange is one step: what is given to the peer in the first half of an all-reduce and kept, and in the
// second half the other way around.
type exchange struct {
	peer       int
	give, keep stretch
}

// stretch is a part of a buffer.
type stretch struct{ off, size units.Bytes }

// exchanges returns the steps of the first half.
func (h halving) exchanges(c int) []exchange {
	x := make([]exchange, h.steps)
	lo, hi := 0, 1<<h.steps // blocks it works on
	span := func(lo, hi int) stretch { return stretch{h.at(lo), h.at(hi) - h.at(lo)} }
	for k := range x {
		distance := 1 << k
		if h.FarFirst {
			distance = 1 << (h.steps - 1 - k)
		}
		mid := (lo + hi) / 2
		x[k] = exchange{h.rankOf(c ^ distance), span(mid, hi), span(lo, mid)}
		if c&distance == 0 {
			hi = mid
		} else {
			x[k].give, x[k].keep = x[k].keep, x[k].give
			lo = mid
		}
	}
	return x
}

// tags: two that fold exchange the whole buffer, others at most half of it in either half of the work.
func (h halving) tags() int64 { return 2 * int64(gridPieces(0, h.Size, h.Chunk)) }

func (h halving) layout(rank int) Layout { return inPlace(h.Spec, h.blocks, rank) }

func (h halving) program(rank int) Program {
	w := newWeave(h.Size, h.Chunk, h.volume(rank))
	c, ok := h.part(rank)
	if !ok {
		w.send(rank+1, 0, h.Size)
		w.replace(rank+1, 0, h.Size)
		return w.ops
	}
	if c < h.folded {
		w.reduce(rank-1, 0, h.Size, false)
		w.stage++
	}
	x := h.exchanges(c)
	if h.Collective != AllGather {
		for k := range x {
			w.turn()
			w.send(x[k].peer, x[k].give.off, x[k].give.size)
			w.reduce(x[k].peer, x[k].keep.off, x[k].keep.size, k == len(x)-1)
			w.stage++
		}
	}
	if h.Collective != ReduceScatter {
		for k := len(x) - 1; k >= 0; k-- {
			w.turn()
			w.send(x[k].peer, x[k].keep.off, x[k].keep.size)
			w.replace(x[k].peer, x[k].give.off, x[k].give.size)
			w.stage++
		}
	}
	if c < h.folded {
		w.turn()
		w.send(rank-1, 0, h.Size)
	}
	return w.ops
}

func (h halving) volume(rank int) Traffic {
	whole := gridPieces(0, h.Size, h.Chunk)
	c, ok := h.part(rank)
	if !ok {
		return Traffic{Sends: whole, Receives: whole, Sent: h.Size, Received: h.Size}
	}
	var v Traffic
	if c < h.folded {
		v = Traffic{Sends: whole, Receives: whole, Sent: h.Size, Received: h.Size}
	}
	for _, x := range h.exchanges(c) {
		give, keep := gridPieces(x.give.off, x.give.size, h.Chunk), gridPieces(x.keep.off, x.keep.size, h.Chunk)
		if h.Collective != AllGather {
			v.Sends, v.Sent = v.Sends+give, v.Sent+x.give.size
			v.Receives, v.Received = v.Receives+keep, v.Received+x.keep.size
		}
		if h.Collective != ReduceScatter {
			v.Sends, v.Sent = v.Sends+keep, v.Sent+x.keep.size
			v.Receives, v.Received = v.Receives+give, v.Received+x.give.size
		}
	}
	return v
}

func (h halving) peers(rank int) (sends, receives []int) {
	c, ok := h.part(rank)
	if !ok {
		return []int{rank + 1}, []int{rank + 1}
	}
	x := h.exchanges(c)
	for k := range x {
		if h.Collective == AllGather {
			k = len(x) - 1 - k
		}
		sends = append(sends, x[k].peer)
	}
	receives = slices.Clone(sends)
	if c < h.folded { // heard first, answered last
		sends = append(sends[:len(sends):len(sends)], rank-1)
		receives = append([]int{rank - 1}, receives...)
	}
	return sends, receives
}

func (h halving) inflow(int) int { return 1 }
