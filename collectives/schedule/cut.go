package schedule

import "weft/units"

// blocks divides a part of a buffer into blocks, usually one per rank. If their number does not
// divide the number of elements, the first blocks are longer by one element.
type blocks struct {
	from    units.Bytes // offset of the first block
	each    units.Bytes // elements in every block
	extra   units.Bytes // number of blocks with one element more
	element units.Bytes // size of an element
}

// cutBlocks divides size bytes, a multiple of an element, into n blocks.
func cutBlocks(size units.Bytes, n int, element units.Bytes) blocks {
	elements := size / element
	return blocks{each: elements / units.Bytes(n), extra: elements % units.Bytes(n), element: element}
}

// at returns the offset of block b in bytes.
func (k blocks) at(b int) units.Bytes {
	i := units.Bytes(b)
	return k.from + (i*k.each+min(i, k.extra))*k.element
}

// size returns the size of block b in bytes, which may be 0.
func (k blocks) size(b int) units.Bytes {
	if units.Bytes(b) < k.extra {
		return k.long()
	}
	return k.short()
}

// long and short return the two sizes of blocks in bytes. The first extra blocks are long.
func (k blocks) long() units.Bytes  { return (k.each + 1) * k.element }
func (k blocks) short() units.Bytes { return k.each * k.element }

// cut divides block b into n blocks.
func (k blocks) cut(b, n int) blocks {
	sub := cutBlocks(k.size(b), n, k.element)
	sub.from = k.at(b)
	return sub
}

// pieces returns the number of messages of all n blocks, each cut by itself.
func (k blocks) pieces(n int, chunk units.Bytes) int {
	return int(k.extra)*pieces(k.long(), chunk) + (n-int(k.extra))*pieces(k.short(), chunk)
}

// pieces returns the number of messages into which n bytes are cut.
func pieces(n, chunk units.Bytes) int {
	switch {
	case n == 0:
		return 0
	case chunk == 0:
		return 1
	}
	return int((n + chunk - 1) / chunk)
}

// piece returns offset and size of the p-th piece of n bytes.
func piece(n, chunk units.Bytes, p int) (off, size units.Bytes) {
	if chunk == 0 {
		return 0, n
	}
	off = units.Bytes(p) * chunk
	return off, min(chunk, n-off)
}

// region is the part of a buffer that a message is read from or written to.
type region struct {
	buf       Buf
	off, size units.Bytes
}

// appendPieces appends the ops that send or receive a region piece by piece, with tags from 0. op
// has kind and peer. All of them depend on the ops in after, and share its memory.
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
