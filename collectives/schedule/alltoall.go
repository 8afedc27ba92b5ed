package schedule

import (
	"math/rand/v2"

	"weft/units"
)

// allToAll is the direct all-to-all: rank r sends block d of its input to rank d, first to r+1,
// then to r+2, and so on around (PC4, section IV-C: n(n−1) flows; STrack, section 4.3: windows of
// 16 to 64). Parallel limits the peers that a rank sends to at once: the send to r+i waits until
// the one to r+i−Parallel is acknowledged. It does not limit the peers that a rank receives from,
// as windowed does; while all ranks are in step, a rank receives from as many as it sends to.
//
// With Shuffle each rank draws its own order, like threads that poll many queues. Then a receiver
// is sometimes served by all peers at once and sometimes by none, which never happens in step.
//
// The input has one block per rank. A rank's output holds its block of every rank's input, in rank
// order. With Chunk a message consists of several pieces on one connection. The connection carries
// them in order, so waiting for the last piece is waiting for all of them.
type allToAll struct {
	Spec
	blocks
}

var allToAllOfRanks = collective{
	name: AllToAll, facts: Facts{Shared: true, Blocks: true}, bus: allButOne,
	due: func(s Spec, rank int) elements { return ownBlock(s, rank) * elements(s.Ranks) },
	variants: []variant{
		{Direct, func(f *Facts) { f.Window, f.Shuffle = true, true }, by(newAllToAll)},
		{Windowed, func(f *Facts) { f.Window, f.Windowed = true, true }, by(newWindowed)},
		{Pairwise, nil, by(newPairwise)},
	},
}

func newAllToAll(s Spec) allToAll { return allToAll{s, cutBlocks(s.Size, s.Ranks, s.Type.Size())} }

func (a allToAll) tags() int64 { return int64(max(1, pieces(a.size(0), a.Chunk))) }

// slot returns the offset of the data from peer in the output of rank.
func (a allToAll) slot(rank, peer int) units.Bytes { return units.Bytes(peer) * a.size(rank) }

func (a allToAll) layout(rank int) Layout {
	own := a.size(rank)
	l := Layout{In: a.Size, Out: own * units.Bytes(a.Ranks)}
	if own == 0 {
		return l
	}
	l.Local = []Copy{{Off: a.slot(rank, rank), Len: own, From: a.at(rank)}}
	l.Result = make([]Want, a.Ranks)
	for peer := range l.Result {
		l.Result[peer] = Want{Off: a.slot(rank, peer), Len: own, Rank: peer, From: a.at(rank)}
	}
	return l
}

func (a allToAll) program(rank int) Program {
	n := a.Ranks
	v := a.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	last := make([]int32, 0, n-1) // the last piece of each send so far
	up, down := a.peers(rank)
	for _, to := range up {
		if a.size(to) == 0 {
			continue
		}
		var after []int32
		if w := len(last) - a.Parallel; a.Parallel > 0 && w >= 0 {
			after = last[w : w+1 : w+1]
		}
		p = appendPieces(p, Op{Kind: Send, Peer: to}, region{In, a.at(to), a.size(to)}, a.Chunk, after)
		last = append(last, int32(len(p)-1))
	}
	for _, from := range down {
		p = appendPieces(p, Op{Kind: Recv, Peer: from, Final: true},
			region{Out, a.slot(rank, from), a.size(rank)}, a.Chunk, nil)
	}
	return p
}

func (a allToAll) volume(rank int) Traffic {
	own, n := a.size(rank), a.Ranks
	return Traffic{
		Sends:    a.pieces(n, a.Chunk) - pieces(own, a.Chunk),
		Receives: (n - 1) * pieces(own, a.Chunk),
		Sent:     a.Size - own,
		Received: units.Bytes(n-1) * own,
	}
}

func (a allToAll) peers(rank int) (sends, receives []int) {
	sends, receives = otherRanks(rank, a.Ranks)
	if a.Shuffle != 0 {
		r := rand.New(rand.NewPCG(a.Shuffle, uint64(rank)))
		r.Shuffle(len(sends), func(i, k int) { sends[i], sends[k] = sends[k], sends[i] })
	}
	return sends, receives
}

// inflow is the number of peers that a rank sends to, if all ranks are in step. With shuffled
// orders all peers may send to it at once.
func (a allToAll) inflow(int) int {
	if a.Parallel > 0 && a.Shuffle == 0 {
		return min(a.Parallel, a.Ranks-1)
	}
	return a.Ranks - 1
}

// otherRanks returns all ranks but one in both orders around the ring: upwards from rank+1, and
// downwards from rank−1.
func otherRanks(rank, n int) (up, down []int) {
	up, down = make([]int, 0, n-1), make([]int, 0, n-1)
	for i := 1; i < n; i++ {
		up, down = append(up, mod(rank+i, n)), append(down, mod(rank-i, n))
	}
	return up, down
}
