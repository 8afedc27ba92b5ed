package schedule

// Windowed all-to-all: a rank sends to at most Parallel peers at once, and receives from at most as many
// (STrack, section 4.3, which does not say how the receiver's limit is kept). The order and the sender's limit
// are those of alltoall.go: rank r sends to r+1, r+2, ... around, and the message to r+i waits until the one
// to r+i−Parallel is acknowledged.
//
// The receiver's limit needs a word from the receiver. Nothing that a sender hears otherwise tells it what
// its receiver still waits for from others: if one rank's link is slow, all others may come to it one after
// the other and none may end. So the first Parallel messages to a rank need no leave, and the one from r−i
// after them waits for a credit: a message of one element that r sends to r−i when the message from
// r−(i−Parallel) is there, all of it. Of the messages i, i+Parallel, i+2·Parallel, ... to a rank at most one
// is therefore under way, and Parallel in all, however late or early anybody is. There is no deadlock: what a
// message waits for belongs to messages with a smaller i.
//
// A rank sends and receives n−1 messages of size/n and n−1−Parallel credits. Credits land behind the result
// in Out.

import "weft/units"

type windowed struct{ allToAll }

func newWindowed(s Spec) windowed { return windowed{newAllToAll(s)} }

// creditTag is the Tag of a credit, the last from one rank to another.
func (a windowed) creditTag() uint32 { return uint32(a.allToAll.tags()) }

func (a windowed) tags() int64 { return a.allToAll.tags() + 1 }

func (a windowed) layout(rank int) Layout {
	l := a.allToAll.layout(rank)
	l.Out += a.element * units.Bytes(max(0, a.Ranks-1-a.Parallel))
	return l
}

func (a windowed) program(rank int) Program {
	n, w := a.Ranks, a.Parallel
	v := a.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	credits := a.slot(rank, n) // where they land
	last := make([]int32, 0, n-1)
	for i := 1; i < n; i++ {
		to := mod(rank+i, n)
		if a.size(to) == 0 {
			continue
		}
		var after []int32
		if k := len(last) - w; k >= 0 {
			after = append(after, last[k])
		}
		if i > w {
			after = append(after, int32(len(p)))
			p = append(p, Op{
				Kind: Recv, Credit: true, Buf: Out, Peer: to, Tag: a.creditTag(),
				Off: credits + units.Bytes(i-w-1)*a.element, Len: a.element,
			})
		}
		p = appendPieces(p, Op{Kind: Send, Peer: to}, region{In, a.at(to), a.size(to)}, a.Chunk, after)
		last = append(last, int32(len(p)-1))
	}
	own := a.size(rank)
	if own == 0 {
		return p
	}
	first := int32(len(p))
	pieces := int32(pieces(own, a.Chunk))
	for i := 1; i < n; i++ {
		from := mod(rank-i, n)
		p = appendPieces(p, Op{Kind: Recv, Peer: from, Final: true}, region{Out, a.slot(rank, from), own}, a.Chunk, nil)
	}
	for i := w + 1; i < n; i++ {
		after := make([]int32, pieces)
		for k := range after {
			after[k] = first + int32(i-w-1)*pieces + int32(k)
		}
		p = append(p, Op{
			Kind: Send, Credit: true, Peer: mod(rank-i, n), Tag: a.creditTag(), Len: a.element, After: after,
		})
	}
	return p
}

func (a windowed) volume(rank int) Traffic {
	v := a.allToAll.volume(rank)
	for i := a.Parallel + 1; i < a.Ranks; i++ {
		if a.size(mod(rank+i, a.Ranks)) > 0 {
			v.Receives, v.Received = v.Receives+1, v.Received+a.element
		}
		if a.size(rank) > 0 {
			v.Sends, v.Sent = v.Sends+1, v.Sent+a.element
		}
	}
	return v
}

// peers: data goes up and credits go down, so every rank may do both with every other.
func (a windowed) peers(rank int) (sends, receives []int) { return around(rank, a.Ranks) }
