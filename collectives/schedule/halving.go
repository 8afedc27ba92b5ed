package schedule

import (
	"slices"

	"weft/units"
)

// halving is the halving-doubling all-reduce, the recursive-halving reduce-scatter or the
// recursive-doubling all-gather (Rabenseifner; MPICH's reduce-scatter and all-gather; astra-sim's
// HalvingDoubling).
//
// All-reduce among a power of two of ranks: in step k, rank r and rank r XOR 2^k exchange halves of
// the region that they still work on. Each sends one half, reduces the other, and continues with
// that. After the last step a rank holds the reduction of one block. Then the same steps run
// backwards, and double what a rank holds. Each rank sends 2(n−1)/n of the buffer in 2·log2 n
// messages. FarFirst reverses the order of the peers. This changes which ranks exchange how much,
// but not the totals.
//
// If n is not a power of two, the largest power p below n takes part. Of the first 2(n−p) ranks,
// the even ones send their whole buffer to their odd neighbour before, and receive the result from
// it after (MPICH). These are called folded.
//
// Reduce-scatter is the first half with the farthest peer first, so that rank r ends with block r.
// All-gather is the second half, with the nearest peer first. Both need a power of two of ranks.
//
// A rank begins a step when both messages of the step before are complete, as with MPI_Sendrecv, so
// it waits for no rank but its peer. It could begin as soon as the peer's message has arrived. But
// its own message would then share the line with the next one, to a peer that does not need it yet:
// at 100 Gb/s 16 ranks that start 0.2 ms apart took 5.0 ms for 16 MB instead of 3.0 ms, and 2.7 ms
// either way if they start together.
type halving struct {
	Spec
	halves
	blocks
	steps  int // log2 of the number of ranks that take part
	folded int // number of folded ranks
}

func newHalving(s Spec, does halves) halving {
	h := halving{Spec: s, halves: does}
	for 2<<h.steps <= s.Ranks {
		h.steps++
	}
	h.folded = s.Ranks - 1<<h.steps
	h.blocks = cutBlocks(s.Size, 1<<h.steps, s.Type.Size())
	h.FarFirst = s.FarFirst || !does.both()
	return h
}

// participant returns the index of a rank among those that take part. ok is false for folded ranks.
func (h halving) participant(rank int) (c int, ok bool) {
	switch {
	case rank >= 2*h.folded:
		return rank - h.folded, true
	case rank%2 == 1:
		return rank / 2, true
	}
	return 0, false
}

// rankOf is the inverse of participant.
func (h halving) rankOf(c int) int {
	if c < h.folded {
		return 2*c + 1
	}
	return c + h.folded
}

// exchange is a step with one peer. In the first half of an all-reduce a rank sends give and
// reduces into keep. In the second half it sends keep and receives give.
type exchange struct {
	peer       int
	give, keep extent
}

// extent is a part of a buffer, in bytes.
type extent struct{ off, size units.Bytes }

// exchanges returns the steps of the first half for participant c.
func (h halving) exchanges(c int) []exchange {
	x := make([]exchange, h.steps)
	lo, hi := 0, 1<<h.steps // the blocks [lo, hi) that it still works on
	span := func(lo, hi int) extent { return extent{h.at(lo), h.at(hi) - h.at(lo)} }
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

// tags is enough for both cases: a folded rank and its neighbour exchange the whole buffer, and
// other pairs at most half of it in each half of an all-reduce.
func (h halving) tags() int64 { return 2 * int64(gridPieces(0, h.Size, h.Chunk)) }

func (h halving) layout(rank int) Layout { return inPlace(h.Spec, h.halves, h.blocks, rank) }

func (h halving) program(rank int) Program {
	w := newBuilder(h.Size, h.Chunk, h.volume(rank))
	c, ok := h.participant(rank)
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
	if h.scatter {
		for k := range x {
			w.serialize()
			w.send(x[k].peer, x[k].give.off, x[k].give.size)
			w.reduce(x[k].peer, x[k].keep.off, x[k].keep.size, k == len(x)-1)
			w.stage++
		}
	}
	if h.gather {
		for k := len(x) - 1; k >= 0; k-- {
			w.serialize()
			w.send(x[k].peer, x[k].keep.off, x[k].keep.size)
			w.replace(x[k].peer, x[k].give.off, x[k].give.size)
			w.stage++
		}
	}
	if c < h.folded {
		w.serialize()
		w.send(rank-1, 0, h.Size)
	}
	return w.ops
}

func (h halving) volume(rank int) Traffic {
	whole := gridPieces(0, h.Size, h.Chunk)
	c, ok := h.participant(rank)
	if !ok {
		return Traffic{Sends: whole, Receives: whole, Sent: h.Size, Received: h.Size}
	}
	var v Traffic
	if c < h.folded {
		v = Traffic{Sends: whole, Receives: whole, Sent: h.Size, Received: h.Size}
	}
	for _, x := range h.exchanges(c) {
		give, keep := gridPieces(x.give.off, x.give.size, h.Chunk), gridPieces(x.keep.off, x.keep.size, h.Chunk)
		if h.scatter {
			v.Sends, v.Sent = v.Sends+give, v.Sent+x.give.size
			v.Receives, v.Received = v.Receives+keep, v.Received+x.keep.size
		}
		if h.gather {
			v.Sends, v.Sent = v.Sends+keep, v.Sent+x.keep.size
			v.Receives, v.Received = v.Receives+give, v.Received+x.give.size
		}
	}
	return v
}

func (h halving) peers(rank int) (sends, receives []int) {
	c, ok := h.participant(rank)
	if !ok {
		return []int{rank + 1}, []int{rank + 1}
	}
	x := h.exchanges(c)
	for k := range x {
		if !h.scatter {
			k = len(x) - 1 - k
		}
		sends = append(sends, x[k].peer)
	}
	receives = slices.Clone(sends)
	if c < h.folded { // the folded rank sends first and receives last
		sends = append(sends[:len(sends):len(sends)], rank-1)
		receives = append([]int{rank - 1}, receives...)
	}
	return sends, receives
}

func (h halving) inflow(int) int { return 1 }
