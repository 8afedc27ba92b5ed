package schedule

// direct is the all-reduce, reduce-scatter or all-gather in which every rank exchanges messages
// with all others at once. The buffer has one block per rank. In a reduce-scatter, rank r sends
// block d to rank d and reduces what it receives into its own block. In an all-gather, rank r sends
// its own block to all others. An all-reduce is a reduce-scatter and then an all-gather, piece by
// piece.
//
// Each half takes n−1 messages of size/n per rank, (n−1)/n of the buffer, in a single step. That is
// the fewest steps possible, and an incast of n−1 flows at every rank.
type direct struct {
	Spec
	halves
	blocks
}

func newDirect(s Spec, h halves) direct {
	return direct{s, h, cutBlocks(s.Size, s.Ranks, s.Type.Size())}
}

func (d direct) tags() int64 {
	return 2 * int64(1+pieces(d.size(0), d.Chunk)) // blocks may begin and end inside a piece
}

func (d direct) layout(rank int) Layout { return inPlace(d.Spec, d.halves, d.blocks, rank) }

func (d direct) program(rank int) Program {
	w := newBuilder(d.Size, d.Chunk, d.volume(rank))
	up, down := otherRanks(rank, d.Ranks)
	at, own := d.at(rank), d.size(rank)
	if d.scatter {
		for _, peer := range up {
			w.send(peer, d.at(peer), d.size(peer))
		}
		for i, peer := range down { // the builder orders them, so that the last one is final
			w.reduce(peer, at, own, i == len(down)-1)
		}
		w.stage++
	}
	if d.gather {
		for _, peer := range up {
			w.send(peer, at, own)
		}
		for _, peer := range down {
			w.replace(peer, d.at(peer), d.size(peer))
		}
	}
	return w.ops
}

func (d direct) volume(rank int) Traffic {
	count := func(b int) int { return gridPieces(d.at(b), d.size(b), d.Chunk) }
	own, n := d.size(rank), d.Ranks
	others, each := 0, (n-1)*count(rank)
	for b := range n {
		if b != rank {
			others += count(b)
		}
	}
	scatter := Traffic{Sends: others, Receives: each, Sent: d.Size - own, Received: own * bytesOf(n-1)}
	switch {
	case !d.gather:
		return scatter
	case !d.scatter:
		return Traffic{Sends: each, Receives: others, Sent: scatter.Received, Received: scatter.Sent}
	}
	both := others + each
	total := scatter.Sent + scatter.Received
	return Traffic{Sends: both, Receives: both, Sent: total, Received: total}
}

func (d direct) peers(rank int) (sends, receives []int) { return otherRanks(rank, d.Ranks) }

func (d direct) inflow(int) int { return d.Ranks - 1 }
