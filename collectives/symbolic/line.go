package symbolic

import (
	"slices"

	"weft/units"
)

// line is what the bytes of a stretch stand for: byte x is a + b·x modulo 2^64. The zero line is a stretch
// that holds nothing.
type line struct{ a, b uint64 }

// shift returns the line of content that is moved by d bytes.
func (l line) shift(d units.Bytes) line { return line{l.a - l.b*uint64(d), l.b} }

// plus returns the line of the sum.
func (l line) plus(m line) line { return line{l.a + m.a, l.b + m.b} }

// stretch is a part of a buffer, up to end, that has one line.
type stretch struct {
	end units.Bytes
	line
}

// content is a buffer or a region: stretches from 0 on, without gaps, no two neighbours alike.
type content []stretch

// blank returns content of the given length that holds nothing.
func blank(c content, size units.Bytes) content {
	if size == 0 {
		return c[:0]
	}
	return append(c[:0], stretch{end: size})
}

// cut makes at the end of a stretch and returns the index of the stretch that begins there.
func (c content) cut(at units.Bytes) (content, int) {
	if at == 0 {
		return c, 0
	}
	i, found := slices.BinarySearchFunc(c, at, func(s stretch, at units.Bytes) int { return int(s.end - at) })
	if !found {
		c = slices.Insert(c, i, stretch{at, c[i].line})
	}
	return c, i + 1
}

// region returns a copy of [off, off+n), from 0 on.
func (c content) region(into content, off, n units.Bytes) content {
	i, _ := slices.BinarySearchFunc(c, off+1, func(s stretch, at units.Bytes) int { return int(s.end - at) })
	for ; ; i++ {
		into = append(into, stretch{min(c[i].end, off+n) - off, c[i].shift(-off)})
		if c[i].end >= off+n {
			return into
		}
	}
}

// put replaces [off, off+n) by m, which has that length, or adds m to it.
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
				c[j].line = c[j].plus(moved)
			} else {
				c[j].line = moved
			}
		}
		i = j
	}
	return c.merge(max(0, from-1), min(len(c), i+1))
}

// merge joins neighbours that are alike among stretches [i, j).
func (c content) merge(i, j int) content {
	to := i
	for k := i; k < j; k++ {
		if k+1 < j && c[k].line == c[k+1].line {
			continue // the next one covers both
		}
		c[to] = c[k]
		to++
	}
	return slices.Delete(c, to, j)
}

// differ returns how many bytes of [off, off+n) do not have line want.
func (c content) differ(off, n units.Bytes, want line) (bytes units.Bytes) {
	i, _ := slices.BinarySearchFunc(c, off+1, func(s stretch, at units.Bytes) int { return int(s.end - at) })
	for at := off; at < off+n; i++ {
		end := min(c[i].end, off+n)
		if c[i].line != want {
			bytes += end - at
		}
		at = end
	}
	return bytes
}

// first returns the first byte of [off, off+n) that does not have line want; false: all do.
func (c content) first(off, n units.Bytes, want line) (units.Bytes, bool) {
	i, _ := slices.BinarySearchFunc(c, off+1, func(s stretch, at units.Bytes) int { return int(s.end - at) })
	for at := off; at < off+n; i++ {
		if c[i].line != want {
			return at, true
		}
		at = c[i].end
	}
	return 0, false
}
