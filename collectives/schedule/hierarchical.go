package schedule

// Hierarchical all-reduce over groups of local ranks, for networks that are faster inside a group than
// between groups: rank r is member r mod g of group ⌊r/g⌋, g being Group. The buffer is one block per member.
// A ring inside each group reduce-scatters the blocks, so that member l holds what its group adds to block l;
// the members l of all groups all-reduce that block along a ring of their own; and the ring inside each group
// gathers all blocks. So what crosses between groups is 2(m−1)/m of size/g per rank with m = n/g groups, a
// g-th of what one ring of all ranks moves, and steps are 2(g−1) + 2(m−1), not 2(n−1).
//
// Pieces of Chunk go on from phase to phase, each when it has come.

type hierarchical struct {
	Spec
	blocks
	groups int
}

func newHierarchical(s Spec) hierarchical {
	return hierarchical{s, cutBlocks(s.Size, s.Group, s.Type.Size()), s.Ranks / s.Group}
}

// circle is a ring of count members; place is this rank's among them.
type circle struct {
	blocks
	place, count int
	rank         func(place int) int
}

// local and across are the rings of a rank inside its group and between groups.
func (h hierarchical) local(rank int) circle {
	first := rank - rank%h.Group
	return circle{h.blocks, rank % h.Group, h.Group, func(p int) int { return first + p }}
}

func (h hierarchical) across(rank int) circle {
	member := rank % h.Group
	return circle{h.blocks.cut(member, h.groups), rank / h.Group, h.groups, func(p int) int { return p*h.Group + member }}
}

// tags: both rings may lead to the same peer only if they have the same two members, which they cannot.
func (h hierarchical) tags() int64 {
	steps := max(h.Group, h.groups) - 1
	return 2 * int64(steps) * int64(1+pieces(h.size(0), h.Chunk))
}

func (h hierarchical) layout(rank int) Layout { return inPlace(h.Spec, h.blocks, rank) }

func (h hierarchical) program(rank int) Program {
	w := newWeave(h.Size, h.Chunk, h.volume(rank))
	local, across := h.local(rank), h.across(rank)
	local.scatter(w, h.groups == 1)
	across.scatter(w, true)
	across.gather(w)
	local.gather(w)
	return w.ops
}

// scatter adds the first half of a ring all-reduce (see ring.go), after which the rank at each place holds the
// block of that number.
func (c circle) scatter(w *weave, final bool) {
	for k := range c.count - 1 {
		b := mod(c.place-1-k, c.count)
		w.send(c.next(), c.at(b), c.size(b))
		b = mod(b-1, c.count)
		w.reduce(c.before(), c.at(b), c.size(b), final && k == c.count-2)
	}
	w.stage++
}

// gather adds the second half.
func (c circle) gather(w *weave) {
	for k := range c.count - 1 {
		b := mod(c.place-k, c.count)
		w.send(c.next(), c.at(b), c.size(b))
		b = mod(b-1, c.count)
		w.replace(c.before(), c.at(b), c.size(b))
	}
	w.stage++
}

func (c circle) next() int   { return c.rank(mod(c.place+1, c.count)) }
func (c circle) before() int { return c.rank(mod(c.place-1, c.count)) }

func (h hierarchical) volume(rank int) Traffic {
	var v Traffic
	for _, c := range []circle{h.local(rank), h.across(rank)} {
		if c.count == 1 {
			continue
		}
		for b := range c.count { // each twice, but for those that stay once
			n, size := gridPieces(c.at(b), c.size(b), h.Chunk), c.size(b)
			sent, received := 2, 2
			if b == c.place {
				sent, received = sent-1, received-1
			}
			if b == mod(c.place+1, c.count) {
				sent--
			}
			if b == mod(c.place-1, c.count) {
				received--
			}
			v.Sends, v.Sent = v.Sends+sent*n, v.Sent+bytesOf(sent)*size
			v.Receives, v.Received = v.Receives+received*n, v.Received+bytesOf(received)*size
		}
	}
	return v
}

func (h hierarchical) peers(rank int) (sends, receives []int) {
	for _, c := range []circle{h.local(rank), h.across(rank)} {
		if c.count > 1 {
			sends, receives = append(sends, c.next()), append(receives, c.before())
		}
	}
	return sends, receives
}

func (h hierarchical) inflow(int) int { return 1 }
