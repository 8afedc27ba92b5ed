package schedule

// hierarchical is an all-reduce over groups of g = Group ranks, for networks that are faster inside
// a group than between groups. Rank r is member r mod g of group ⌊r/g⌋. The buffer has one block
// per member, and there are three phases:
//
//  1. A ring inside each group reduce-scatters the blocks. Then member l holds its group's part of
//     block l.
//  2. The members l of all groups all-reduce block l along a ring of their own.
//  3. The ring inside each group gathers all blocks.
//
// With m = n/g groups, each rank sends 2(m−1)/m of size/g between groups, a g-th of what one ring
// of all ranks sends, in 2(g−1) + 2(m−1) steps instead of 2(n−1). Pieces of Chunk move from phase
// to phase as they arrive.
type hierarchical struct {
	Spec
	blocks     // one per member
	groups int // m
}

func newHierarchical(s Spec) hierarchical {
	return hierarchical{s, cutBlocks(s.Size, s.Group, s.Type.Size()), s.Ranks / s.Group}
}

// subring is a ring of some of the ranks, seen from one of them.
type subring struct {
	blocks              // one per member
	position, count int // this rank's position, and the number of members
	rank            func(position int) int
}

// local returns the ring of a rank inside its group.
func (h hierarchical) local(rank int) subring {
	first := rank - rank%h.Group
	return subring{h.blocks, rank % h.Group, h.Group, func(p int) int { return first + p }}
}

// across returns the ring of a rank between groups, on its block.
func (h hierarchical) across(rank int) subring {
	member := rank % h.Group
	rankOf := func(p int) int { return p*h.Group + member }
	return subring{h.blocks.cut(member, h.groups), rank / h.Group, h.groups, rankOf}
}

// tags relies on the two rings of a rank having no other member in common, so each has its own
// peers.
func (h hierarchical) tags() int64 {
	steps := max(h.Group, h.groups) - 1
	return 2 * int64(steps) * int64(1+pieces(h.size(0), h.Chunk))
}

func (h hierarchical) layout(rank int) Layout {
	return inPlace(h.Spec, scatterAndGather, h.blocks, rank)
}

func (h hierarchical) program(rank int) Program {
	w := newBuilder(h.Size, h.Chunk, h.volume(rank))
	local, across := h.local(rank), h.across(rank)
	local.scatter(w, h.groups == 1)
	across.scatter(w, true)
	across.gather(w)
	local.gather(w)
	return w.ops
}

// scatter adds the first half of a ring all-reduce (see ring), after which each rank holds the
// block of its position. Its last receives are final if final is
// true.
func (c subring) scatter(w *builder, final bool) {
	for k := range c.count - 1 {
		b := mod(c.position-1-k, c.count)
		w.send(c.next(), c.at(b), c.size(b))
		b = mod(b-1, c.count)
		w.reduce(c.before(), c.at(b), c.size(b), final && k == c.count-2)
	}
	w.stage++
}

// gather adds the second half of a ring all-reduce.
func (c subring) gather(w *builder) {
	for k := range c.count - 1 {
		b := mod(c.position-k, c.count)
		w.send(c.next(), c.at(b), c.size(b))
		b = mod(b-1, c.count)
		w.replace(c.before(), c.at(b), c.size(b))
	}
	w.stage++
}

func (c subring) next() int   { return c.rank(mod(c.position+1, c.count)) }
func (c subring) before() int { return c.rank(mod(c.position-1, c.count)) }

func (h hierarchical) volume(rank int) Traffic {
	var v Traffic
	for _, c := range []subring{h.local(rank), h.across(rank)} {
		if c.count == 1 {
			continue
		}
		for b := range c.count { // each twice, except for those that a half leaves out
			n, size := gridPieces(c.at(b), c.size(b), h.Chunk), c.size(b)
			sent, received := 2, 2
			if b == c.position {
				sent, received = sent-1, received-1
			}
			if b == mod(c.position+1, c.count) {
				sent--
			}
			if b == mod(c.position-1, c.count) {
				received--
			}
			v.Sends, v.Sent = v.Sends+sent*n, v.Sent+bytesOf(sent)*size
			v.Receives, v.Received = v.Receives+received*n, v.Received+bytesOf(received)*size
		}
	}
	return v
}

func (h hierarchical) peers(rank int) (sends, receives []int) {
	for _, c := range []subring{h.local(rank), h.across(rank)} {
		if c.count > 1 {
			sends, receives = append(sends, c.next()), append(receives, c.before())
		}
	}
	return sends, receives
}

func (h hierarchical) inflow(int) int { return 1 }
