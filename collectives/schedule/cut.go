package schedule

import "weft/units"

// blocks divides a stretch of a buffer into blocks, usually one per rank, equal to within an element: the
// first ones are longer by one when the elements do not divide.
type blocks struct {
	from        units.Bytes // where the first begins
	each, extra units.Bytes // elements of every block; how many blocks have one more
	element     units.Bytes
}

func cutBlocks(size units.Bytes, n int, element units.Bytes) blocks {
	elements := size / element
	return blocks{each: elements / units.Bytes(n), extra: elements % units.Bytes(n), element: element}
}

// at returns where block b begins, in bytes.
func (k blocks) at(b int) units.Bytes {
	i := units.Bytes(b)
	return k.from + (i*k.each+min(i, k.extra))*k.element
}

// size returns the length of block b in bytes; it may be 0.
func (k blocks) size(b int) units.Bytes {
	if units.Bytes(b) < k.extra {
		return k.long()
	}
	return k.short()
}

// long and short are the two lengths of blocks; the first extra ones are long.
func (k blocks) long() units.Bytes  { return (k.each + 1) * k.element }
func (k blocks) short() units.Bytes { return k.each * k.element }

// cut divides block b in its turn.
func (k blocks) cut(b, n int) blocks {
	sub := cutBlocks(k.size(b), n, k.element)
	sub.from = k.at(b)
	return sub
}

// pieces is into how many messages n blocks are cut, each by itself.
func (k blocks) pieces(n int, chunk units.Bytes) int {
	return int(k.extra)*pieces(k.long(), chunk) + (n-int(k.extra))*pieces(k.short(), chunk)
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
