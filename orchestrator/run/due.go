package run

import (
	"weft/collectives/schedule"
	"weft/units"
)

// due is how many elements of a rank's result are to be compared at the end of a collective: all that the collective is
// for. It does not ask the layout by which they are compared, which may be what is wrong.
func due(s schedule.Spec, rank int) int64 {
	all, n := s.Size/s.Type.Size(), units.Bytes(s.Ranks)
	block := all / n // of the rank; the first ones are longer by one where it does not divide
	if units.Bytes(rank) < all%n {
		block++
	}
	if rank != s.Root {
		switch s.Collective {
		case schedule.Reduce, schedule.Gather, schedule.Incast:
			return 0
		case schedule.ParameterServer:
			if s.Algorithm == schedule.Push {
				return 0
			}
		}
	}
	switch s.Collective {
	case schedule.ReduceScatter, schedule.Scatter:
		return int64(block)
	case schedule.AllToAll:
		return int64(block * n)
	case schedule.Incast:
		return int64((n - 1) * units.Bytes(max(1, s.Flows)) * all)
	}
	return int64(all)
}
