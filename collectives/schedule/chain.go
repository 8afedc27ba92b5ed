package schedule

// Chain: broadcast and reduce along the ring, open at the root, as NCCL does them (nccl src/device/broadcast.h
// and reduce.h). The root sends to the next rank, that to the one after it, and so on; reduce goes the other
// way. Cut into pieces, a broadcast takes little longer than one message over one link; uncut it takes n−1
// messages one after the other.

func newChain(s Spec) *trees {
	return newRooted(s,
		func(v int) int { return v - 1 },
		func(v int) []int {
			if v+1 == s.Ranks {
				return nil
			}
			return []int{v + 1}
		})
}
