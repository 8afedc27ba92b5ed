package schedule

import (
	"slices"

	"weft/units"
)

// trees is a collective along one or more trees: a reduction up to the root, a broadcast down from
// it, or both, piece by piece. A leaf sends a piece up. An inner rank waits for that piece from its
// children, reduces it, and sends it up. The root then has the reduction of the piece and sends it
// down, and inner ranks forward it to their children. A rank that replaces the piece that it sent
// up by the one that comes down waits until the former is acknowledged.
//
// The shapes of trees are in chain.go, binary.go, binomial.go and server.go.
type trees struct {
	Spec
	up, down bool   // whether there is a reduction, and a broadcast
	all      []tree // the trees, which share the ranks
}

// tree is a tree over the ranks and the part of the buffer that moves along it.
type tree struct {
	extent
	parent   func(rank int) int   // the parent of a rank, -1 for the root
	children func(rank int) []int // the children of a rank, in the order in which it receives from them
}

// pieces returns the number of pieces of a tree's part of the buffer.
func (t *trees) pieces(k *tree) int { return pieces(k.size, t.Chunk) }

// tags allows for a pair of ranks being parent and child in every tree.
func (t *trees) tags() int64 {
	n := 0
	for i := range t.all {
		n += t.pieces(&t.all[i])
	}
	return int64(n)
}

func (t *trees) layout(rank int) Layout {
	l := Layout{Out: t.Size}
	want := Want{Len: t.Size, Rank: t.Root}
	if t.up {
		want.Rank = All
	}
	if t.up || rank == t.Root {
		l.Local = []Copy{{Len: t.Size}}
	}
	if t.down || rank == t.Root {
		l.Result = []Want{want}
	}
	return l
}

// node is the position of one rank in a tree.
type node struct {
	*tree
	parent   int // -1 for the root
	children []int
}

// nodes returns the positions of a rank in all trees.
func (t *trees) nodes(rank int) []node {
	b := make([]node, len(t.all))
	for i := range t.all {
		k := &t.all[i]
		b[i] = node{k, k.parent(rank), k.children(rank)}
	}
	return b
}

func (t *trees) program(rank int) Program {
	v := t.volume(rank)
	w := treeBuilder{
		trees: t, ops: make(Program, 0, v.Sends+v.Receives),
		edges: make([]int32, 0, v.Sends+v.Receives), tags: map[direction]uint32{},
	}
	all := t.nodes(rank)
	most := 0
	for i := range all {
		most = max(most, t.pieces(all[i].tree))
	}
	for i := range most {
		for k := range all {
			if i < t.pieces(all[k].tree) {
				w.addPiece(&all[k], i, most > 1)
			}
		}
	}
	return w.ops
}

// treeBuilder collects the ops of a rank over all trees.
type treeBuilder struct {
	*trees
	ops   Program
	edges []int32 // backs every After
	tags  map[direction]uint32
}

// addPiece adds the ops of a rank for piece i of one tree. Each depends on the op before, except
// that the sends to all children depend on the same op.
func (w *treeBuilder) addPiece(b *node, i int, pipelined bool) {
	off, size := piece(b.size, w.Chunk, i)
	last := int32(-1)
	op := Op{Buf: Out, Off: b.off + off, Len: size}
	add := func(kind Kind, peer int) *Op {
		op := op
		op.Kind, op.Peer = kind, peer
		op.Tag = w.tags[direction{kind, peer}]
		w.tags[direction{kind, peer}]++
		if last >= 0 {
			w.edges = append(w.edges, last)
			op.After = slices.Clip(w.edges[len(w.edges)-1:])
		}
		w.ops = append(w.ops, op)
		return &w.ops[len(w.ops)-1]
	}
	if w.up {
		for k, child := range b.children {
			r := add(Recv, child)
			r.Reduce, r.Final = true, b.parent < 0 && k == len(b.children)-1
			last = int32(len(w.ops) - 1)
		}
		if b.parent >= 0 {
			add(Send, b.parent)
			last = int32(len(w.ops) - 1)
		}
	}
	if !w.down {
		return
	}
	if b.parent >= 0 {
		r := add(Recv, b.parent)
		r.Final = true
		if w.up && !pipelined {
			r.Stage = 1
		}
		last = int32(len(w.ops) - 1)
	}
	for k := range b.children {
		add(Send, b.children[len(b.children)-1-k]) // the child that reduces last is served first
	}
}

func (t *trees) volume(rank int) Traffic {
	var v Traffic
	for _, b := range t.nodes(rank) {
		above := 0
		if b.parent >= 0 {
			above = 1
		}
		below, n := len(b.children), t.pieces(b.tree)
		if t.up {
			v.Sends, v.Sent = v.Sends+above*n, v.Sent+bytesOf(above)*b.size
			v.Receives, v.Received = v.Receives+below*n, v.Received+bytesOf(below)*b.size
		}
		if t.down {
			v.Sends, v.Sent = v.Sends+below*n, v.Sent+bytesOf(below)*b.size
			v.Receives, v.Received = v.Receives+above*n, v.Received+bytesOf(above)*b.size
		}
	}
	return v
}

func (t *trees) peers(rank int) (sends, receives []int) {
	add := func(list *[]int, peer int) {
		if peer >= 0 && !slices.Contains(*list, peer) {
			*list = append(*list, peer)
		}
	}
	for _, b := range t.nodes(rank) {
		for _, child := range b.children {
			if t.up {
				add(&receives, child)
			}
		}
		if t.up {
			add(&sends, b.parent)
		}
		if !t.down {
			continue
		}
		add(&receives, b.parent)
		for _, child := range slices.Backward(b.children) {
			add(&sends, child)
		}
	}
	return sends, receives
}

// inflow counts parents and children together if there are several pieces, since some come up while
// others come down. A single piece comes up before it comes down.
func (t *trees) inflow(rank int) int {
	all := t.nodes(rank)
	pipelined := false
	var above, below []int
	for _, b := range all {
		pipelined = pipelined || t.pieces(b.tree) > 1
		if b.parent >= 0 && t.down {
			above = append(above, b.parent)
		}
		if t.up {
			below = append(below, b.children...)
		}
	}
	distinct := func(list []int) int {
		slices.Sort(list)
		return len(slices.Compact(list))
	}
	if pipelined {
		return distinct(append(above, below...))
	}
	return max(distinct(above), distinct(below))
}

// down and up make a broadcast or a reduction along trees.
func down(build func(Spec) *trees) func(Spec) *trees {
	return func(s Spec) *trees { t := build(s); t.down = true; return t }
}

func up(build func(Spec) *trees) func(Spec) *trees {
	return func(s Spec) *trees { t := build(s); t.up = true; return t }
}

// newRooted returns one tree for the whole buffer. The tree is given over positions 0 to n−1; the
// root rank has position 0, and the others follow in order. children returns the children of a
// position in the order in which it receives from them.
func newRooted(s Spec, parent func(v int) int, children func(v int) []int) *trees {
	position := func(rank int) int { return mod(rank-s.Root, s.Ranks) }
	rank := func(position int) int { return mod(position+s.Root, s.Ranks) }
	return &trees{
		Spec: s,
		all:  []tree{relabel(extent{0, s.Size}, position, rank, parent, children)},
	}
}

// relabel returns a tree over positions as a tree over ranks.
func relabel(part extent, position, rank func(int) int, parent func(v int) int, children func(v int) []int) tree {
	return tree{
		extent: part,
		parent: func(r int) int {
			if v := parent(position(r)); v >= 0 {
				return rank(v)
			}
			return -1
		},
		children: func(r int) []int {
			c := children(position(r))
			for i := range c {
				c[i] = rank(c[i])
			}
			return c
		},
	}
}

// bytesOf converts a count to a factor of sizes.
func bytesOf(n int) units.Bytes { return units.Bytes(n) }
