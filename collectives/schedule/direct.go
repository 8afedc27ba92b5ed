package schedule

// Direct all-reduce, reduce-scatter and all-gather: every rank exchanges with every other at once. The buffer
// is one block per rank. Reduce-scatter: rank r sends block d to rank d, and reduces what comes for its own.
// All-gather: rank r sends its own block to all. All-reduce is the first and then the second, piece by piece.
// Each half takes n−1 messages of size/n per rank, (n−1)/n of the buffer, in a single step: the fewest steps,
// and an incast of n−1 flows at every rank.

type direct struct {
	Spec
	blocks
}

func newDirect(s Spec) direct { return direct{s, cutBlocks(s.Size, s.Ranks, s.Type.Size())} }

func (d direct) tags() int64 {
	return 2 * int64(1+pieces(d.size(0), d.Chunk)) // a block may begin and end in the middle of a piece
}

func (d direct) layout(rank int) Layout { return inPlace(d.Spec, d.blocks, rank) }

func (d direct) program(rank int) Program {
	w := newWeave(d.Size, d.Chunk, d.volume(rank))
	up, down := around(rank, d.Ranks)
	at, own := d.at(rank), d.size(rank)
	if d.Collective != AllGather {
		for _, peer := range up {
			w.send(peer, d.at(peer), d.size(peer))
		}
		for i, peer := range down { // one after the other, so that one is the last
			w.reduce(peer, at, own, i == len(down)-1)
		}
		w.stage++
	}
	if d.Collective != ReduceScatter {
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
	switch d.Collective {
	case ReduceScatter:
		return scatter
	case AllGather:
		return Traffic{Sends: each, Receives: others, Sent: scatter.Received, Received: scatter.Sent}
	}
	both := others + each
	total := scatter.Sent + scatter.Received
	return Traffic{Sends: both, Receives: both, Sent: total, Received: total}
}

func (d direct) peers(rank int) (sends, receives []int) { return around(rank, d.Ranks) }

func (d direct) inflow(int) int { return d.Ranks - 1 }
