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
	Op         schedule.Reduction // sum if nothing is reduced
	Size       units.Bytes
	Chunk      units.Bytes
	Compute    units.Time
	Jitter     units.Time
	Start      units.Time // if not Previous
	Previous   bool       // computing begins after the line before
	Repeat     int
	Group      int // ranks per group, 0 for all ranks
	Stride     int // at least 1
	Root       int // rank in the group
	Parallel   int
	Local      int
	Shift      int // 0 except for permute
}

// Groups returns the groups of n ranks: lists of ranks, in the order of their first ranks. Every
// rank is in exactly one. It returns an error if n ranks do not form groups of that size and
// stride.
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

// Spec returns the collective of a group with a number of ranks.
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
