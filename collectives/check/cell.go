package check

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// cell is the content of a part of a buffer that is only moved and reduced as a whole: the multiset
// of the inputs that were reduced into it. It is immutable, so messages and buffers can share it.
// Equal multisets have equal representations: once is used whenever possible.
type cell struct {
	at   int      // index of the input cells of once
	once uint64   // bitmap of the ranks below 64 whose cell at occurs once, if there is nothing else
	many []source // otherwise all inputs, sorted
}

// source is a cell of a rank's input.
type source struct{ rank, cell int }

func compare(a, b source) int {
	return cmp.Or(a.rank-b.rank, a.cell-b.cell)
}

// input returns the cell with one input.
func input(rank, at int) cell {
	if rank < 64 {
		return cell{at: at, once: 1 << rank}
	}
	return cell{many: []source{{rank, at}}}
}

// everyone returns the cell with the same input of n ranks.
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

// sources returns a new list of all inputs.
func (c cell) sources() []source {
	all := slices.Clone(c.many)
	for m := c.once; m != 0; m &= m - 1 {
		all = append(all, source{bits.TrailingZeros64(m), c.at})
	}
	return all
}

func (c cell) String() string { return fmt.Sprint(c.sources()) }
