package schedule

import "weft/units"

// blocks divides a buffer into one block per rank, equal to within an element: the first blocks are longer
// by one when the elements do not divide.
type blocks struct {
	each, extra units.Bytes // elements of every block; how many blocks have one more
}

func cutBlocks(size units.Bytes, n int) blocks {
	elements := size / Element
	return blocks{each: elements / units.Bytes(n), extra: elements % units.Bytes(n)}
}

// at returns where block b begins, in bytes.
func (k blocks) at(b int) units.Bytes {
	i := units.Bytes(b)
	return (i*k.each + min(i, k.extra)) * Element
}

// size returns the length of block b in bytes; it may be 0.
func (k blocks) size(b int) units.Bytes {
	if units.Bytes(b) < k.extra {
		return (k.each + 1) * Element
	}
	return k.each * Element
}

// pieces returns into how many messages n bytes are cut.
func pieces(n, chunk units.Bytes) int {
	switch {
	case n == 0:
		return 0
	case chunk == 0:
		return 1
	}
	return int((n + chunk - 1) / chunk)
}

// piece returns where the p-th piece of n bytes begins and how long it is.
func piece(n, chunk units.Bytes, p int) (off, size units.Bytes) {
	if chunk == 0 {
		return 0, n
	}
	off = units.Bytes(p) * chunk
	return off, min(chunk, n-off)
}

// region is where a message is read or written.
type region struct {
	buf       Buf
	off, size units.Bytes
}

// appendPieces appends the ops that move a region to or from a peer piece by piece, with tags from 0. They
// share the edges in after.
func appendPieces(p Program, op Op, r region, chunk units.Bytes, after []int32) Program {
	for i := range pieces(r.size, chunk) {
		off, size := piece(r.size, chunk, i)
		op.Buf, op.Off, op.Len = r.buf, r.off+off, size
		op.Tag, op.After = uint32(i), after
		p = append(p, op)
	}
	return p
}

// mod returns a modulo n in [0, n).
func mod(a, n int) int {
	if a %= n; a < 0 {
		a += n
	}
	return a
}
