package schedule

import "weft/units"

// windowed is an all-to-all in which a rank sends to at most Parallel peers at once, and receives
// from at most as many (STrack, section 4.3, which does not say how the receiver's limit is
// enforced). The order and the sender's limit are those of allToAll: rank r sends to r+1, r+2, ...,
// and the message to r+i waits until the one to r+i−Parallel is acknowledged.
//
// The receiver's limit needs feedback from the receiver. No sender can otherwise know which
// messages its receiver still expects from others: if one rank's link is slow, all others may
// arrive at it one by one while none completes. So the first Parallel messages to a rank need no
// permission. The message from r−i after them waits for a credit: a message of one element that r
// sends to r−i once the message from r−(i−Parallel) has arrived completely. Of the messages i,
// i+Parallel, i+2·Parallel, ... to a rank at most one is therefore in flight, which makes Parallel
// in all, whatever the timing. There is no deadlock, because a message only depends on messages
// with a smaller i.
//
// A rank sends and receives n−1 messages of size/n and n−1−Parallel credits. Credits are written
// behind the result in Out.
type windowed struct{ allToAll }

func newWindowed(s Spec) windowed { return windowed{newAllToAll(s)} }

// creditTag returns the tag of a credit, which is the last message from one rank to another.
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
	credits := a.slot(rank, n) // behind the result
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

// peers returns all other ranks in both directions: data goes to successors and credits to
// predecessors.
func (a windowed) peers(rank int) (sends, receives []int) { return otherRanks(rank, a.Ranks) }
