package schedule

import (
	"slices"

	"weft/units"
)

// weave collects the ops of one rank, on its buffer Out, and finds out which of them must wait for which:
//
//   - a send waits for the receives that last wrote what it reads,
//   - a receive waits for the receives that wrote before it what it writes, and for the sends that read it
//     since: they read until they are acknowledged,
//   - and after turn, a send waits for those before, so that they do not have to share the line with it.
//
// Regions are cut where multiples of Chunk are in the buffer, not in the region, so that pieces of the parts
// of a region lie within the pieces of the whole and each move on when it has come.
//
// Tags count the messages to a peer, and from one. Both ends must name what they exchange in the same order.
type weave struct {
	chunk units.Bytes
	stage uint8
	ops   Program
	sent  int32 // the last op that sends; -1: none
	ahead int32 // the op that sends wait for since the last turn; -1: none
	edges []int32
	cells [][]use // by piece of the buffer
	tags  map[port]uint32
}

// use is who has used the stretch of a cell that ends at end, since it was last written.
type use struct {
	end     units.Bytes
	writer  int32 // the op that wrote it; -1: none
	readers []int32
}

// port is one direction to or from a peer.
type port struct {
	kind Kind
	peer int
}

// newWeave begins a program of v on a buffer of the given size.
func newWeave(size, chunk units.Bytes, v Traffic) *weave {
	w := &weave{
		chunk: chunk, tags: map[port]uint32{}, sent: -1, ahead: -1,
		ops: make(Program, 0, v.Sends+v.Receives), edges: make([]int32, 0, v.Sends+v.Receives),
		cells: make([][]use, gridPieces(0, size, chunk)),
	}
	for i := range w.cells {
		end := size
		if chunk > 0 {
			end = min(size, units.Bytes(i+1)*chunk)
		}
		w.cells[i] = []use{{end: end, writer: -1}}
	}
	return w
}

// gridPieces is into how many pieces [off, off+n) of a buffer is cut.
func gridPieces(off, n, chunk units.Bytes) int {
	switch {
	case n == 0:
		return 0
	case chunk == 0:
		return 1
	}
	return int((off+n-1)/chunk - off/chunk + 1)
}

// turn makes the sends that follow wait until the last one is acknowledged. A connection carries its messages in
// order, so that is all to the same peer.
func (w *weave) turn() { w.ahead = w.sent }

// send sends [off, off+n) to a peer.
func (w *weave) send(peer int, off, n units.Bytes) {
	w.add(Op{Kind: Send, Peer: peer}, off, n)
}

// replace receives [off, off+n) from a peer in place of what is there, for the last time.
func (w *weave) replace(peer int, off, n units.Bytes) {
	w.add(Op{Kind: Recv, Peer: peer, Final: true}, off, n)
}

// reduce receives [off, off+n) from a peer and reduces it into what is there.
func (w *weave) reduce(peer int, off, n units.Bytes, final bool) {
	w.add(Op{Kind: Recv, Peer: peer, Reduce: true, Final: final}, off, n)
}

// add appends the pieces of an op.
func (w *weave) add(op Op, off, n units.Bytes) {
	op.Buf, op.Stage = Out, w.stage
	to := port{op.Kind, op.Peer}
	for i, end := 0, off+n; off < end; off += op.Len {
		op.Off, op.Len = off, end-off
		if w.chunk > 0 {
			i = int(off / w.chunk)
			op.Len = min(op.Len, units.Bytes(i+1)*w.chunk-off)
		}
		op.Tag = w.tags[to]
		w.tags[to]++
		op.After = w.wait(i, &op)
		if op.Kind == Send {
			w.sent = int32(len(w.ops))
		}
		w.ops = append(w.ops, op)
	}
}

// wait returns what the next op, which lies in a cell, waits for, and takes note of it there.
func (w *weave) wait(cell int, op *Op) []int32 {
	at := int32(len(w.ops))
	i, j := w.cut(cell, op.Off, op.Off+op.Len)
	uses := w.cells[cell][i:j]
	from := len(w.edges)
	after := func(op int32) {
		if op >= 0 && !slices.Contains(w.edges[from:], op) {
			w.edges = append(w.edges, op)
		}
	}
	if op.Kind == Send {
		after(w.ahead)
	}
	for k := range uses {
		u := &uses[k]
		if len(u.readers) == 0 || op.Kind == Send {
			after(u.writer) // or else its readers waited for it
		}
		if op.Kind == Send {
			u.readers = append(u.readers, at)
			continue
		}
		for _, r := range u.readers {
			after(r)
		}
		u.writer, u.readers = at, nil
	}
	if op.Kind == Recv { // one stretch from now on
		uses[0].end = uses[len(uses)-1].end
		w.cells[cell] = slices.Delete(w.cells[cell], i+1, j)
	}
	if len(w.edges) == from {
		return nil
	}
	return slices.Clip(w.edges[from:])
}

// cut makes [from, to) of a cell whole stretches and returns which: [i, j).
func (w *weave) cut(cell int, from, to units.Bytes) (i, j int) {
	split := func(at units.Bytes) int {
		uses := w.cells[cell]
		k, found := slices.BinarySearchFunc(uses, at, func(u use, at units.Bytes) int { return int(u.end - at) })
		if !found {
			left := uses[k]
			left.end, left.readers = at, slices.Clone(left.readers)
			w.cells[cell] = slices.Insert(uses, k, left)
		}
		return k + 1
	}
	start := units.Bytes(cell) * w.chunk
	if from > start {
		i = split(from)
	}
	return i, split(to)
}
