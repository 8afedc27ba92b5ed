package schedule

// pairwise is the pairwise all-to-all: in each of n−1 steps a rank sends one block and receives one
// (MPICH's alltoall for long messages). In step k, rank r exchanges blocks with r XOR k if n is a
// power of two; otherwise it sends to r+k and receives from r−k. A step begins when both messages
// of the step before are complete.
type pairwise struct{ allToAll }

func newPairwise(s Spec) pairwise { return pairwise{newAllToAll(s)} }

// partners returns the receiver and the sender that a rank exchanges blocks with in step k.
func (a pairwise) partners(rank, k int) (to, from int) {
	if n := a.Ranks; n&(n-1) != 0 {
		return mod(rank+k, n), mod(rank-k, n)
	}
	return rank ^ k, rank ^ k
}

func (a pairwise) program(rank int) Program {
	v := a.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	edges := make([]int32, 0, 2*a.Ranks)
	var after []int32
	for k := 1; k < a.Ranks; k++ {
		to, from := a.partners(rank, k)
		begin := len(edges)
		p = appendPieces(p, Op{Kind: Send, Peer: to}, region{In, a.at(to), a.size(to)}, a.Chunk, after)
		if a.size(to) > 0 {
			edges = append(edges, int32(len(p)-1))
		}
		p = appendPieces(p, Op{Kind: Recv, Peer: from, Final: true},
			region{Out, a.slot(rank, from), a.size(rank)}, a.Chunk, nil)
		if a.size(rank) > 0 {
			edges = append(edges, int32(len(p)-1))
		}
		if len(edges) > begin {
			after = edges[begin:len(edges):len(edges)]
		}
	}
	return p
}

func (a pairwise) peers(rank int) (sends, receives []int) {
	for k := 1; k < a.Ranks; k++ {
		to, from := a.partners(rank, k)
		sends, receives = append(sends, to), append(receives, from)
	}
	return sends, receives
}

func (a pairwise) inflow(int) int { return 1 }
