package schedule

import (
	"slices"

	"weft/units"
)

// Trees: ranks that reduce towards a root, that hand on what comes from it, or both, piece by piece. A leaf
// sends a piece up; an inner rank waits for that piece from its children, reduces, and sends it up; the root
// has the reduction and sends it down; everybody hands it down to its children. A rank that receives a piece
// from above in place of the one it sent up waits until that is acknowledged.
//
// What trees there are is the business of chain.go, binary.go, binomial.go and server.go.

type trees struct {
	Spec
	up, down bool
	all      []tree
}

// tree is a tree over the ranks and the part of the buffer that moves along it.
type tree struct {
	stretch
	parent   func(rank int) int   // -1: the root
	children func(rank int) []int // in the order in which they are served
}

// steps returns into how many pieces a tree's part is cut.
func (t *trees) pieces(k *tree) int { return pieces(k.size, t.Chunk) }

// tags: a rank is a child of another in one tree, and its parent in one.
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

// branch is a rank's place in a tree.
type branch struct {
	*tree
	parent   int
	children []int
}

func (t *trees) branches(rank int) []branch {
	b := make([]branch, len(t.all))
	for i := range t.all {
		k := &t.all[i]
		b[i] = branch{k, k.parent(rank), k.children(rank)}
	}
	return b
}

func (t *trees) program(rank int) Program {
	v := t.volume(rank)
	w := climber{
		trees: t, ops: make(Program, 0, v.Sends+v.Receives),
		edges: make([]int32, 0, v.Sends+v.Receives), tags: map[port]uint32{},
	}
	all := t.branches(rank)
	most := 0
	for i := range all {
		most = max(most, t.pieces(all[i].tree))
	}
	for i := range most {
		for k := range all {
			if i < t.pieces(all[k].tree) {
				w.climb(&all[k], i, most > 1)
			}
		}
	}
	return w.ops
}

// climber collects the ops of a rank in all trees.
type climber struct {
	*trees
	ops   Program
	edges []int32 // backs every After
	tags  map[port]uint32
}

// climb adds what a rank does with a piece: each step after the one before, but that it sends to all its
// children at once.
func (w *climber) climb(b *branch, i int, pipelined bool) {
	off, size := piece(b.size, w.Chunk, i)
	last := int32(-1)
	op := Op{Buf: Out, Off: b.off + off, Len: size}
	add := func(kind Kind, peer int) *Op {
		op := op
		op.Kind, op.Peer = kind, peer
		op.Tag = w.tags[port{kind, peer}]
		w.tags[port{kind, peer}]++
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
		add(Send, b.children[len(b.children)-1-k]) // the last to be heard is the first to be told
	}
}

func (t *trees) volume(rank int) Traffic {
	var v Traffic
	for _, b := range t.branches(rank) {
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
	for _, b := range t.branches(rank) {
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

// inflow: pieces come up and down at the same time, unless there is but one.
func (t *trees) inflow(rank int) int {
	all := t.branches(rank)
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

// newRooted returns the broadcast, or the reduce, of the whole buffer along one tree. It is given by places,
// of which the root has place 0; the children of a place in the order in which they are heard.
func newRooted(s Spec, parent func(v int) int, children func(v int) []int) *trees {
	place := func(rank int) int { return mod(rank-s.Root, s.Ranks) }
	rank := func(place int) int { return mod(place+s.Root, s.Ranks) }
	return &trees{
		Spec: s, up: s.Collective == Reduce, down: s.Collective == Broadcast,
		all: []tree{moved(stretch{0, s.Size}, place, rank, parent, children)},
	}
}

// moved returns a tree of places as one of ranks.
func moved(part stretch, place, rank func(int) int, parent func(v int) int, children func(v int) []int) tree {
	return tree{
		stretch: part,
		parent: func(r int) int {
			if v := parent(place(r)); v >= 0 {
				return rank(v)
			}
			return -1
		},
		children: func(r int) []int {
			c := children(place(r))
			for i := range c {
				c[i] = rank(c[i])
			}
			return c
		},
	}
}

// bytesOf is a count as a factor of sizes.
func bytesOf(n int) units.Bytes { return units.Bytes(n) }
