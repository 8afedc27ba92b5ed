package schedule

// Incast: every rank but the root sends Size bytes to the root, all at once (PC4, Fig. 6a; the push half of
// a parameter server). The root's output holds the senders' inputs in rank order.

import "weft/units"

type incast struct{ Spec }

func newIncast(s Spec) incast { return incast{s} }

func (c incast) tags() int64 { return int64(pieces(c.Size, c.Chunk)) }

// slot is where the root's output holds what comes from a sender.
func (c incast) slot(sender int) units.Bytes {
	if sender > c.Root {
		sender--
	}
	return units.Bytes(sender) * c.Size
}

func (c incast) layout(rank int) Layout {
	if rank != c.Root {
		return Layout{In: c.Size}
	}
	l := Layout{Out: units.Bytes(c.Ranks-1) * c.Size, Result: make([]Want, 0, c.Ranks-1)}
	for sender := range c.Ranks {
		if sender != c.Root {
			l.Result = append(l.Result, Want{Off: c.slot(sender), Len: c.Size, Rank: sender})
		}
	}
	return l
}

func (c incast) program(rank int) Program {
	v := c.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	if rank != c.Root {
		return appendPieces(p, Op{Kind: Send, Peer: c.Root}, region{In, 0, c.Size}, c.Chunk, nil)
	}
	for sender := range c.Ranks {
		if sender != c.Root {
			p = appendPieces(p, Op{Kind: Recv, Peer: sender, Final: true},
				region{Out, c.slot(sender), c.Size}, c.Chunk, nil)
		}
	}
	return p
}

func (c incast) volume(rank int) Traffic {
	each := pieces(c.Size, c.Chunk)
	if rank != c.Root {
		return Traffic{Sends: each, Sent: c.Size}
	}
	return Traffic{Receives: each * (c.Ranks - 1), Received: units.Bytes(c.Ranks-1) * c.Size}
}
