package graph

import (
	"fmt"
	"slices"

	"weft/collectives/schedule"
	"weft/units"
)

// Part is the part of a rank in a collective, before it is known which parts belong together.
type Part struct {
	Op         int32 // index of the Collective among the rank's ops
	Group      string
	Members    []int32 // of the group; nil: the file does not say
	Name       string  // of the collective, "" for none
	Collective string
	Size       func(ranks int) int64 // as in schedule.Spec, for a number of ranks
	Root       int64                 // rank of the root; -1: the first member
}

// Join makes calls of parts, by rank: the n-th collective of a group at each of its members is one.
// The members of a group are those that a part lists; else all ranks for the group "", and those
// with a part in others.
func (g *Graph) Join(parts [][]Part) error {
	groups := g.groups(parts)
	type key struct {
		group string
		n     int
	}
	calls := map[key]int32{}
	for rank := range parts {
		seen := map[string]int{}
		for i := range parts[rank] {
			p := &parts[rank][i]
			op := &g.Ranks[rank][p.Op]
			k := key{p.Group, seen[p.Group]}
			seen[p.Group]++
			members := groups[p.Group]
			n := p.Size(len(members))
			size, kind, err := sizeOf(p.Collective, n, len(members))
			if err != nil {
				return g.Errorf(rank, op, "%s of group %q: %w", p.Collective, p.Group, err)
			}
			if int64(size) != n {
				g.Notes.Changed("collectives become larger: a multiple of 2 bytes, and at least 2 for each rank", 1,
					func() string { return g.Where(rank, op) })
			}
			call, ok := calls[k]
			if !ok {
				root := 0
				if p.Root >= 0 {
					if root = slices.Index(members, int32(min(p.Root, MaxRanks))); root < 0 {
						return g.Errorf(rank, op, "root %d is no member of group %q", p.Root, p.Group)
					}
				}
				call = int32(len(g.Calls))
				calls[k] = call
				g.Calls = append(g.Calls, Call{Name: p.Name, Collective: p.Collective, Type: kind, Size: size,
					Members: members, Root: root, Place: op.Place})
			}
			if c := &g.Calls[call]; c.Collective != p.Collective || c.Size != size {
				return g.Errorf(rank, op, "collective %d of group %q is %s of %v; another rank has %s of %v", k.n,
					p.Group,
					p.Collective, size, c.Collective, c.Size)
			}
			op.Call = call
		}
	}
	return nil
}

// groups returns the members of each group.
func (g *Graph) groups(parts [][]Part) map[string][]int32 {
	found, said := map[string][]int32{}, map[string][]int32{}
	for rank := range parts {
		for i := range parts[rank] {
			p := &parts[rank][i]
			if p.Members != nil {
				said[p.Group] = p.Members
			}
			if all := found[p.Group]; len(all) == 0 || all[len(all)-1] != int32(rank) {
				found[p.Group] = append(all, int32(rank))
			}
		}
	}
	for name := range found {
		switch members, ok := said[name]; {
		case ok:
			found[name] = members
		case name == "":
			every := make([]int32, len(g.Ranks))
			for r := range every {
				every[r] = int32(r)
			}
			found[name] = every
		}
	}
	return found
}

// sizeOf returns the size of a collective and a type of elements that it has a whole number of, one
// for each rank if the ranks share the buffer. A size that is no such number becomes the next.
func sizeOf(name string, n int64, ranks int) (units.Bytes, schedule.Type, error) {
	least := int64(1)
	if schedule.Of(name).Shared {
		least = int64(ranks)
	}
	switch {
	case n < 1 || n > int64(MaxSize):
		return 0, "", fmt.Errorf("%d bytes in %d ranks; expected 1 byte to %v", n, ranks, units.Bytes(MaxSize))
	case n >= 4*least && n%4 == 0:
		return units.Bytes(n), schedule.Float32, nil
	}
	return units.Bytes(max(2*least, n+n%2)), schedule.BFloat16, nil
}
