package schedule

// ring is the ring all-reduce, reduce-scatter or all-gather in NCCL's order (nccl
// src/device/all_reduce.h, runRing; reduce_scatter.h; all_gather.h).
//
// The buffer has one block per rank. In step k = 0 ... 2n−3 of an all-reduce, rank r sends block
// r−1−k to rank r+1 and receives block r−2−k from rank r−1, so it forwards in each step what it
// received in the step before. The first n−1 receives reduce, the others replace. So each rank
// sends 2(n−1) messages of size/n. Reduce-scatter is the first n−1 steps, after which rank r holds
// the reduction of block r. All-gather is the other n−1 steps, which begin with each rank's own
// block.
//
// Blocks are cut into pieces of Chunk, and each piece is forwarded as soon as it has arrived (NCCL:
// 128 kB).
//
// Everything happens in place, in Out. A receive that replaces a piece waits until the earlier send
// of that piece is acknowledged, since it may have to be retransmitted. The message cannot arrive
// before all of that send has, so this only ever waits for acknowledgements that were lost.
type ring struct {
	Spec
	halves
	blocks
	first, end int // the steps [first, end) of an all-reduce that take place
}

func newRing(s Spec, h halves) ring {
	g := ring{Spec: s, halves: h, blocks: cutBlocks(s.Size, s.Ranks, s.Type.Size()), end: 2 * (s.Ranks - 1)}
	if !h.scatter {
		g.first = s.Ranks - 1
	}
	if !h.gather {
		g.end = s.Ranks - 1
	}
	return g
}

// steps returns the number of blocks that each rank sends, and receives.
func (g ring) steps() int { return g.end - g.first }

// maxPieces returns the number of pieces of the longest block.
func (g ring) maxPieces() int { return pieces(g.size(0), g.Chunk) }

func (g ring) tags() int64 { return int64(g.steps()) * int64(g.maxPieces()) }

func (g ring) layout(rank int) Layout { return inPlace(g.Spec, g.halves, g.blocks, rank) }

func (g ring) program(rank int) Program {
	n := g.Ranks
	v := g.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	edges := make([]int32, 0, cap(p)) // backs every After
	sentAt := make([]int32, 0, n)     // first send of each step of the first half
	received := int32(0)              // first receive of the step before
	after := func(op int32) []int32 {
		edges = append(edges, op)
		return edges[len(edges)-1 : len(edges) : len(edges)]
	}
	for k := g.first; k < g.end; k++ {
		b := mod(rank-1-k, n)
		if first := int32(len(p)); k < n-1 {
			sentAt = append(sentAt, first)
		}
		for i := range pieces(g.size(b), g.Chunk) {
			op := g.op(Send, mod(rank+1, n), b, k, i)
			if k > g.first {
				op.After = after(received + int32(i))
			}
			p = append(p, op)
		}
		received = int32(len(p))
		b = mod(rank-2-k, n)
		for i := range pieces(g.size(b), g.Chunk) {
			op := g.op(Recv, mod(rank-1, n), b, k, i)
			op.Reduce, op.Final = k < n-1, k >= n-2
			if back := k - (n - 1); !op.Reduce && back < len(sentAt) { // block b was sent in step back
				op.After = after(sentAt[back] + int32(i))
			}
			p = append(p, op)
		}
	}
	return p
}

// op returns the op for piece i of block b in step k.
func (g ring) op(kind Kind, peer, b, k, i int) Op {
	off, size := piece(g.size(b), g.Chunk, i)
	tag := uint32((k-g.first)*g.maxPieces() + i)
	return Op{Kind: kind, Peer: peer, Tag: tag, Buf: Out, Off: g.at(b) + off, Len: size}
}

// volume follows from this: in each half a rank sends all blocks but one, and receives all but one.
func (g ring) volume(rank int) Traffic {
	next, before := mod(rank+1, g.Ranks), mod(rank-1, g.Ranks)
	all := g.blocks.pieces(g.Ranks, g.Chunk)
	var v Traffic
	pass := func(notSent, notReceived int) {
		v.Sends += all - pieces(g.size(notSent), g.Chunk)
		v.Receives += all - pieces(g.size(notReceived), g.Chunk)
		v.Sent += g.Size - g.size(notSent)
		v.Received += g.Size - g.size(notReceived)
	}
	if g.scatter {
		pass(rank, before)
	}
	if g.gather {
		pass(next, rank)
	}
	return v
}

func (g ring) peers(rank int) (sends, receives []int) {
	return []int{mod(rank+1, g.Ranks)}, []int{mod(rank-1, g.Ranks)}
}

func (g ring) inflow(int) int { return 1 }

// inPlace returns the layout of an in-place all-reduce, reduce-scatter or all-gather. The block of
// each rank lies in Out where it lies in the whole buffer.
func inPlace(s Spec, h halves, k blocks, rank int) Layout {
	l := Layout{Out: s.Size}
	at, own := k.at(rank), k.size(rank)
	if h.scatter {
		l.Local = []Copy{{Len: s.Size}}
	} else if own > 0 {
		l.Local = []Copy{{Off: at, Len: own}}
	}
	switch {
	case h.both():
		l.Result = []Want{{Len: s.Size, Rank: All}}
	case h.scatter && own > 0:
		l.Result = []Want{{Off: at, Len: own, Rank: All, From: at}}
	case h.gather:
		l.Result = make([]Want, 0, s.Ranks)
		for r := range s.Ranks {
			if k.size(r) > 0 {
				l.Result = append(l.Result, Want{Off: k.at(r), Len: k.size(r), Rank: r})
			}
		}
	}
	return l
}
