package schedule

import (
	"slices"

	"weft/units"
)

// builder collects the ops of one rank on its buffer Out and derives their dependencies from the
// regions they access:
//
//   - A send waits for the receives that last wrote what it reads.
//   - A receive waits for the earlier receives that wrote its region, and for the sends that have
//     read it since. A send reads until it is acknowledged.
//   - After serialize, a send waits for the sends before it, so that they do not share the line.
//
// Regions are cut at multiples of Chunk in the buffer, not in the region. So the pieces of a part
// of a region lie within the pieces of the whole, and each can move on as soon as it has arrived.
//
// Tags count the messages to each peer and from each peer. Both ends must add what they exchange in
// the same order.
type builder struct {
	chunk    units.Bytes // Spec.Chunk
	stage    uint8       // Op.Stage of the receives that are added
	ops      Program
	lastSend int32                // the last send, -1 if none
	fence    int32                // the send that all further sends wait for, -1 if none
	edges    []int32              // backs every After
	cells    [][]access           // for each piece of the buffer, its accesses in ascending order
	tags     map[direction]uint32 // the next tag
}

// access records the ops that accessed a part of a cell since its last write. The part begins where
// that of the access before ends.
type access struct {
	end     units.Bytes // offset in the buffer
	writer  int32       // the receive that wrote it last, -1 if none
	readers []int32     // the sends that have read it since
}

// direction is one of the two directions between this rank and a peer.
type direction struct {
	kind Kind
	peer int
}

// newBuilder returns an empty builder for a buffer of size bytes. v is the traffic of the program,
// from which memory is allocated.
func newBuilder(size, chunk units.Bytes, v Traffic) *builder {
	w := &builder{
		chunk: chunk, tags: map[direction]uint32{}, lastSend: -1, fence: -1,
		ops: make(Program, 0, v.Sends+v.Receives), edges: make([]int32, 0, v.Sends+v.Receives),
		cells: make([][]access, gridPieces(0, size, chunk)),
	}
	for i := range w.cells {
		end := size
		if chunk > 0 {
			end = min(size, units.Bytes(i+1)*chunk)
		}
		w.cells[i] = []access{{end: end, writer: -1}}
	}
	return w
}

// gridPieces returns the number of pieces into which [off, off+n) of a buffer is cut, if it is cut
// at multiples of chunk in the buffer.
func gridPieces(off, n, chunk units.Bytes) int {
	switch {
	case n == 0:
		return 0
	case chunk == 0:
		return 1
	}
	return int((off+n-1)/chunk - off/chunk + 1)
}

// serialize makes all further sends wait until the last send is acknowledged. A connection carries
// its messages in order, so this covers all sends to the same peer.
func (w *builder) serialize() { w.fence = w.lastSend }

// send adds ops that send [off, off+n) to a peer.
func (w *builder) send(peer int, off, n units.Bytes) {
	w.add(Op{Kind: Send, Peer: peer}, off, n)
}

// replace adds ops that overwrite [off, off+n) with a message from a peer. They are final.
func (w *builder) replace(peer int, off, n units.Bytes) {
	w.add(Op{Kind: Recv, Peer: peer, Final: true}, off, n)
}

// reduce adds ops that reduce a message from a peer into [off, off+n).
func (w *builder) reduce(peer int, off, n units.Bytes, final bool) {
	w.add(Op{Kind: Recv, Peer: peer, Reduce: true, Final: final}, off, n)
}

// add appends one op for each piece of [off, off+n).
func (w *builder) add(op Op, off, n units.Bytes) {
	op.Buf, op.Stage = Out, w.stage
	to := direction{op.Kind, op.Peer}
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
			w.lastSend = int32(len(w.ops))
		}
		w.ops = append(w.ops, op)
	}
}

// wait returns the dependencies of the next op, whose region lies in one cell, and records its
// access.
func (w *builder) wait(cell int, op *Op) []int32 {
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
		after(w.fence)
	}
	for k := range uses {
		u := &uses[k]
		if len(u.readers) == 0 || op.Kind == Send {
			after(u.writer) // a receive that waits for readers waits for the writer through them
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
	if op.Kind == Recv { // one write, so one access from now on
		uses[0].end = uses[len(uses)-1].end
		w.cells[cell] = slices.Delete(w.cells[cell], i+1, j)
	}
	if len(w.edges) == from {
		return nil
	}
	return slices.Clip(w.edges[from:])
}

// cut splits the accesses of a cell so that [from, to) consists of whole ones, and returns their
// indices [i, j).
func (w *builder) cut(cell int, from, to units.Bytes) (i, j int) {
	split := func(at units.Bytes) int {
		uses := w.cells[cell]
		k, found := slices.BinarySearchFunc(uses, at, func(u access, at units.Bytes) int { return int(u.end - at) })
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
