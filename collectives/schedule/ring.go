package schedule

// Ring all-reduce in NCCL's order (nccl src/device/all_reduce.h, runRing). The buffer is one block per rank.
// Step 0 sends block r−1 to r+1. The block received in step k, r−2−k, is sent on in step k+1: the first n−1
// receives add to what is there, the others replace it. So each rank sends 2(n−1) messages of size/n, and
// message k waits for message k−1 from the other side.
//
// Blocks are cut into pieces of Chunk that move on as they arrive, each on its own (NCCL: 128 kB).
//
// In place: everything happens in Out. A receive that replaces a piece waits until the earlier send of that
// piece is acknowledged, since an unacknowledged piece may have to be read again. The message cannot have
// come before its receiver had all of that send, so this waits only for acknowledgements that were lost.

type ring struct {
	Spec
	blocks
}

func newRing(s Spec) ring { return ring{s, cutBlocks(s.Size, s.Ranks)} }

// steps is how many blocks each rank sends, and receives.
func (g ring) steps() int { return 2 * (g.Ranks - 1) }

// most is the number of pieces of the longest block.
func (g ring) most() int { return pieces(g.size(0), g.Chunk) }

func (g ring) tags() int64 { return int64(g.steps()) * int64(g.most()) }

func (g ring) layout(int) Layout {
	return Layout{
		Out:    g.Size,
		Local:  []Copy{{Len: g.Size}},
		Result: []Want{{Len: g.Size, Rank: Sum}},
	}
}

func (g ring) program(rank int) Program {
	n := g.Ranks
	v := g.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	edges := make([]int32, 0, cap(p)) // backs every After
	sentAt := make([]int32, 0, n)     // where the sends of each step begin
	received := int32(0)              // where the receives of the step before begin
	after := func(op int32) []int32 {
		edges = append(edges, op)
		return edges[len(edges)-1 : len(edges) : len(edges)]
	}
	for k := range g.steps() {
		b := mod(rank-1-k, n)
		first := int32(len(p))
		if k < n {
			sentAt = append(sentAt, first)
		}
		for i := range pieces(g.size(b), g.Chunk) {
			op := g.op(Send, mod(rank+1, n), b, k, i)
			if k > 0 {
				op.After = after(received + int32(i))
			}
			p = append(p, op)
		}
		received = int32(len(p))
		b = mod(rank-2-k, n)
		for i := range pieces(g.size(b), g.Chunk) {
			op := g.op(Recv, mod(rank-1, n), b, k, i)
			op.Reduce, op.Final = k < n-1, k >= n-2
			if !op.Reduce { // block b left in step k−(n−1)
				op.After = after(sentAt[k-(n-1)] + int32(i))
			}
			p = append(p, op)
		}
	}
	return p
}

// op is piece i of block b in step k.
func (g ring) op(kind Kind, peer, b, k, i int) Op {
	off, size := piece(g.size(b), g.Chunk, i)
	return Op{Kind: kind, Peer: peer, Tag: uint32(k*g.most() + i), Buf: Out, Off: g.at(b) + off, Len: size}
}

// volume: each block twice, but for two blocks that pass only once in either direction.
func (g ring) volume(rank int) Traffic {
	next, before := mod(rank+1, g.Ranks), mod(rank-1, g.Ranks)
	long := int(g.extra) // blocks longer by an element come first
	all := 2 * (long*pieces(g.size(0), g.Chunk) + (g.Ranks-long)*pieces(g.each*Element, g.Chunk))
	count := func(b int) int { return pieces(g.size(b), g.Chunk) }
	return Traffic{
		Sends:    all - count(rank) - count(next),
		Receives: all - count(rank) - count(before),
		Sent:     2*g.Size - g.size(rank) - g.size(next),
		Received: 2*g.Size - g.size(rank) - g.size(before),
	}
}
