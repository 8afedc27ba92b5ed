package schedule

import "weft/units"

var incastOfRoot = collective{
	name: Incast, facts: Facts{Rooted: true, RootApart: true, Flows: true},
	bus:      unity, // ours: the rate of the root's link
	due:      func(s Spec, rank int) elements { return elements((s.Ranks-1)*max(1, s.Flows)) * atRoot(s, rank) },
	variants: []variant{{Direct, nil, by(newIncast)}},
}

// incast sends Size bytes on each of Flows flows from every other rank to the root, all at once
// (PC4, Fig. 6a; with several flows PC4, Table II). The root's output holds the senders' inputs in
// rank order. It is like the push half of a parameter server, without the reduction.
type incast struct{ Spec }

func newIncast(s Spec) incast { return incast{s} }

// flows returns the number of flows of each sender.
func (c incast) flows() int { return max(1, c.Flows) }

func (c incast) tags() int64 { return int64(c.flows()) * int64(pieces(c.Size, c.Chunk)) }

// input returns the bytes that one sender sends.
func (c incast) input() units.Bytes { return units.Bytes(c.flows()) * c.Size }

// slot returns the offset of a sender's data in the root's output.
func (c incast) slot(sender int) units.Bytes {
	if sender > c.Root {
		sender--
	}
	return units.Bytes(sender) * c.input()
}

func (c incast) layout(rank int) Layout {
	if rank != c.Root {
		return Layout{In: c.input()}
	}
	l := Layout{Out: units.Bytes(c.Ranks-1) * c.input(), Result: make([]Want, 0, c.Ranks-1)}
	for sender := range c.Ranks {
		if sender != c.Root {
			l.Result = append(l.Result, Want{Off: c.slot(sender), Len: c.input(), Rank: sender})
		}
	}
	return l
}

func (c incast) program(rank int) Program {
	v := c.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	if rank != c.Root {
		return c.append(p, Op{Kind: Send, Peer: c.Root}, In, 0)
	}
	for sender := range c.Ranks {
		if sender != c.Root {
			p = c.append(p, Op{Kind: Recv, Peer: sender, Final: true}, Out, c.slot(sender))
		}
	}
	return p
}

// append appends the ops of all flows between a sender and the root. Their data lies in the buffer
// one flow after the other, from off. op has kind and peer.
func (c incast) append(p Program, op Op, buf Buf, off units.Bytes) Program {
	for flow := range c.flows() {
		first := len(p)
		p = appendPieces(p, op, region{buf, off + units.Bytes(flow)*c.Size, c.Size}, c.Chunk, nil)
		for i := first; i < len(p); i++ {
			p[i].Flow = int32(flow)
			p[i].Tag += uint32(flow * (len(p) - first))
		}
	}
	return p
}

func (c incast) volume(rank int) Traffic {
	each := c.flows() * pieces(c.Size, c.Chunk)
	if rank != c.Root {
		return Traffic{Sends: each, Sent: c.input()}
	}
	return Traffic{Receives: each * (c.Ranks - 1), Received: units.Bytes(c.Ranks-1) * c.input()}
}

func (c incast) peers(rank int) (sends, receives []int) {
	if rank != c.Root {
		return []int{c.Root}, nil
	}
	for sender := range c.Ranks {
		if sender != c.Root {
			receives = append(receives, sender)
		}
	}
	return nil, receives
}

func (c incast) inflow(rank int) int {
	if rank != c.Root {
		return 0
	}
	return (c.Ranks - 1) * c.flows()
}
