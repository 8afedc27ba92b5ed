package schedule

// newChain returns a broadcast or reduce along a chain: the ring of all ranks, cut before the root,
// as NCCL does it (nccl src/device/broadcast.h and reduce.h). The root sends to the next rank,
// which sends to the one after it, and so on. A reduce runs in the other direction. Cut into
// pieces, a broadcast takes little longer than one message over one link. Uncut it takes n−1
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
