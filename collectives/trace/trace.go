package trace

import (
	"fmt"

	"weft/collectives/schedule"
	"weft/units"
)

// Item is a line of a trace.
type Item struct {
	Name       string
	Collective string
	Algorithm  string // never auto
	Type       schedule.Type
	Op         schedule.Reduction // sum where nothing is reduced
	Size       units.Bytes
	Chunk      units.Bytes
	Compute    units.Time
	Jitter     units.Time
	Start      units.Time // if not Previous
	Previous   bool       // computing begins when the line before is done
	Repeat     int
	Group      int // 0: all ranks
	Stride     int // at least 1
	Root       int // rank in the group
	Parallel   int
	Local      int
	Shift      int // 0 but for permute
}

// Groups returns the groups that n ranks form: lists of ranks, in the order of their first ranks. Every rank is in
// one of them.
func (it *Item) Groups(n int) ([][]int, error) {
	size := it.Group
	if size == 0 {
		size = n / it.Stride
	}
	block := size * it.Stride
	if size < 2 || n < block || n%block != 0 {
		return nil, fmt.Errorf("%d ranks do not form groups of %d, %d apart", n, size, it.Stride)
	}
	groups := make([][]int, 0, n/size)
	for first := 0; first < n; first += block {
		for offset := range it.Stride {
			members := make([]int, size)
			for i := range members {
				members[i] = first + offset + i*it.Stride
			}
			groups = append(groups, members)
		}
	}
	return groups, nil
}

// Spec returns what a group of so many ranks does.
func (it *Item) Spec(ranks int) (schedule.Spec, error) {
	s := schedule.Spec{
		Collective: it.Collective, Algorithm: it.Algorithm, Ranks: ranks, Type: it.Type, Op: it.Op, Root: it.Root,
		Size: it.Size, Chunk: it.Chunk, Parallel: it.Parallel, Group: it.Local,
	}
	var err error
	if it.Shift != 0 {
		if s.Permute, err = schedule.Shift(ranks, it.Shift); err != nil {
			return s, err
		}
	}
	_, err = schedule.Tags(s)
	return s, err
}
