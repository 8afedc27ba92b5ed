package symbolic

import (
	"slices"

	"weft/units"
)

// linear is the linear function of an extent: byte x stands for a + b·x modulo 2^64. The zero value
// is an extent without contributions.
type linear struct{ a, b uint64 }

// shift returns the function of content that is moved by d bytes.
func (l linear) shift(d units.Bytes) linear { return linear{l.a - l.b*uint64(d), l.b} }

// plus returns the function of the sum.
func (l linear) plus(m linear) linear { return linear{l.a + m.a, l.b + m.b} }

// extent is a part of a buffer, up to end, with one linear function.
type extent struct {
	end units.Bytes
	linear
}

// content is a buffer or a region: extents from 0, without gaps, where neighbours differ.
type content []extent

// blank returns content of the given size without contributions.
func blank(c content, size units.Bytes) content {
	if size == 0 {
		return c[:0]
	}
	return append(c[:0], extent{end: size})
}

// cut splits the extent around at, and returns the index of the extent that begins there.
func (c content) cut(at units.Bytes) (content, int) {
	if at == 0 {
		return c, 0
	}
	i, found := slices.BinarySearchFunc(c, at, func(s extent, at units.Bytes) int { return int(s.end - at) })
	if !found {
		c = slices.Insert(c, i, extent{at, c[i].linear})
	}
	return c, i + 1
}

// region appends a copy of [off, off+n) to into, with offsets from 0.
func (c content) region(into content, off, n units.Bytes) content {
	i, _ := slices.BinarySearchFunc(c, off+1, func(s extent, at units.Bytes) int { return int(s.end - at) })
	for ; ; i++ {
		into = append(into, extent{min(c[i].end, off+n) - off, c[i].shift(-off)})
		if c[i].end >= off+n {
			return into
		}
	}
}

// put replaces the content from off by m, or adds m to it.
func (c content) put(off units.Bytes, m content, add bool) content {
	var i, j int
	for _, s := range m { // cut where m does
		c, _ = c.cut(off + s.end)
	}
	c, i = c.cut(off)
	from := i
	for _, s := range m {
		moved := s.shift(off)
		for j = i; j < len(c) && c[j].end <= off+s.end; j++ {
			if add {
				c[j].linear = c[j].plus(moved)
			} else {
				c[j].linear = moved
			}
		}
		i = j
	}
	return c.merge(max(0, from-1), min(len(c), i+1))
}

// merge joins equal neighbours among the extents [i, j).
func (c content) merge(i, j int) content {
	to := i
	for k := i; k < j; k++ {
		if k+1 < j && c[k].linear == c[k+1].linear {
			continue // the next one covers both
		}
		c[to] = c[k]
		to++
	}
	return slices.Delete(c, to, j)
}

// differ returns the number of bytes in [off, off+n) whose function is not want.
func (c content) differ(off, n units.Bytes, want linear) (bytes units.Bytes) {
	i, _ := slices.BinarySearchFunc(c, off+1, func(s extent, at units.Bytes) int { return int(s.end - at) })
	for at := off; at < off+n; i++ {
		end := min(c[i].end, off+n)
		if c[i].linear != want {
			bytes += end - at
		}
		at = end
	}
	return bytes
}

// first returns the first byte of [off, off+n) whose function is not want. It returns false if
// there is none.
func (c content) first(off, n units.Bytes, want linear) (units.Bytes, bool) {
	i, _ := slices.BinarySearchFunc(c, off+1, func(s extent, at units.Bytes) int { return int(s.end - at) })
	for at := off; at < off+n; i++ {
		if c[i].linear != want {
			return at, true
		}
		at = c[i].end
	}
	return 0, false
}
