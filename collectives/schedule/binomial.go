package schedule

// Binomial tree: broadcast and reduce in ⌈log2 n⌉ steps (MPICH's bcast and reduce for short messages). Place
// v, counted from the root, has as its parent v without its lowest bit, and as children v + 2^k for all k
// below that bit. In a reduce the smallest subtree is heard first; in a broadcast the largest is told first.
// The root moves the whole buffer once for each child.

func newBinomialTree(s Spec) *trees {
	return newRooted(s,
		func(v int) int {
			if v == 0 {
				return -1
			}
			return v & (v - 1)
		},
		func(v int) (c []int) {
			for bit := 1; v&bit == 0 && v+bit < s.Ranks; bit <<= 1 {
				c = append(c, v+bit)
			}
			return c
		})
}
