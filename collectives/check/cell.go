package check

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// cell is a stretch of a buffer that is moved and reduced only as a whole: the multiset of the inputs that
// came together in it. It is never changed in place, so messages and buffers can share it. Equal multisets
// are equal cells: once is used whenever it can be.
type cell struct {
	at   int      // index of the input cells in once
	once uint64   // the ranks below 64 whose cell at is there once, if that is all
	many []source // else all inputs, sorted
}

// source is a cell of a rank's input.
type source struct{ rank, cell int }

func compare(a, b source) int {
	return cmp.Or(a.rank-b.rank, a.cell-b.cell)
}

// input is the cell that holds one input.
func input(rank, at int) cell {
	if rank < 64 {
		return cell{at: at, once: 1 << rank}
	}
	return cell{many: []source{{rank, at}}}
}

// everyone is the cell that holds the same input of n ranks.
func everyone(n, at int) cell {
	if n <= 64 {
		return cell{at: at, once: 1<<n - 1}
	}
	c := cell{many: make([]source, n)}
	for r := range n {
		c.many[r] = source{r, at}
	}
	return c
}

// add returns the multiset sum of two cells.
func add(a, b cell) cell {
	switch {
	case a.empty():
		return b
	case b.empty():
		return a
	case a.many == nil && b.many == nil && a.at == b.at && a.once&b.once == 0:
		return cell{at: a.at, once: a.once | b.once}
	}
	many := append(a.sources(), b.sources()...)
	slices.SortFunc(many, compare)
	return cell{many: many}
}

func (c cell) empty() bool { return c.once == 0 && c.many == nil }

func (c cell) equal(d cell) bool {
	return c.once == d.once && (c.at == d.at || c.once == 0) && slices.Equal(c.many, d.many)
}

// sources returns a list of all inputs of its own.
func (c cell) sources() []source {
	all := slices.Clone(c.many)
	for m := c.once; m != 0; m &= m - 1 {
		all = append(all, source{bits.TrailingZeros64(m), c.at})
	}
	return all
}

func (c cell) String() string { return fmt.Sprint(c.sources()) }
