package schedule

// gather is the direct gather or scatter. The root's buffer of Size has one block per rank. Every
// rank sends its block to the root, or receives it from there, all at once. Either moves (n−1)/n of
// the buffer over the root's link.
type gather struct {
	Spec
	blocks
	scatter bool // the other direction
}

var gatherToRoot = collective{
	name: Gather, facts: Facts{Rooted: true, Shared: true, Blocks: true}, bus: allButOne, due: atRoot,
	variants: []variant{{Direct, nil, by(newGather)}},
}

var scatterOfRoot = collective{
	name: Scatter, facts: Facts{Rooted: true, Shared: true, Blocks: true}, bus: allButOne, due: ownBlock,
	variants: []variant{{Direct, nil, by(newScatter)}},
}

func newGather(s Spec) gather { return gather{s, cutBlocks(s.Size, s.Ranks, s.Type.Size()), false} }

func newScatter(s Spec) gather {
	g := newGather(s)
	g.scatter = true
	return g
}

func (g gather) tags() int64 { return int64(pieces(g.size(0), g.Chunk)) }

func (g gather) layout(rank int) Layout {
	at, own := g.at(rank), g.size(rank)
	root := rank == g.Root
	var l Layout
	switch {
	case g.scatter:
		l.Out = own
		if own > 0 {
			l.Result = []Want{{Len: own, Rank: g.Root, From: at}}
		}
		if root {
			l.In = g.Size
			if own > 0 {
				l.Local = []Copy{{Len: own, From: at}}
			}
		}
	case root:
		l.Out = g.Size
		if own > 0 {
			l.Local = []Copy{{Off: at, Len: own}}
		}
		for r := range g.Ranks {
			if g.size(r) > 0 {
				l.Result = append(l.Result, Want{Off: g.at(r), Len: g.size(r), Rank: r})
			}
		}
	default:
		l.In = own
	}
	return l
}

func (g gather) program(rank int) Program {
	v := g.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	up, down := otherRanks(g.Root, g.Ranks)
	switch {
	case rank == g.Root && g.scatter:
		for _, r := range up {
			p = appendPieces(p, Op{Kind: Send, Peer: r}, region{In, g.at(r), g.size(r)}, g.Chunk, nil)
		}
	case rank == g.Root:
		for _, r := range down {
			p = appendPieces(p, Op{Kind: Recv, Peer: r, Final: true}, region{Out, g.at(r), g.size(r)}, g.Chunk, nil)
		}
	case g.scatter:
		p = appendPieces(p, Op{Kind: Recv, Peer: g.Root, Final: true}, region{Out, 0, g.size(rank)}, g.Chunk, nil)
	default:
		p = appendPieces(p, Op{Kind: Send, Peer: g.Root}, region{In, 0, g.size(rank)}, g.Chunk, nil)
	}
	return p
}

func (g gather) volume(rank int) Traffic {
	own := g.size(rank)
	out := Traffic{Sends: pieces(own, g.Chunk), Sent: own} // as for a gather
	if rank == g.Root {
		out = Traffic{Receives: g.pieces(g.Ranks, g.Chunk) - pieces(own, g.Chunk), Received: g.Size - own}
	}
	if g.scatter {
		return Traffic{Sends: out.Receives, Receives: out.Sends, Sent: out.Received, Received: out.Sent}
	}
	return out
}

func (g gather) peers(rank int) (sends, receives []int) {
	switch up, down := otherRanks(g.Root, g.Ranks); {
	case rank == g.Root && g.scatter:
		return up, nil
	case rank == g.Root:
		return nil, down
	case g.scatter:
		return nil, []int{g.Root}
	}
	return []int{g.Root}, nil
}

func (g gather) inflow(rank int) int {
	switch {
	case g.scatter == (rank == g.Root):
		return 0
	case g.scatter:
		return 1
	}
	return g.Ranks - 1
}
