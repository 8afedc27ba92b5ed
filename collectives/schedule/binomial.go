package schedule

// newBinomialTree returns a broadcast or reduce along a binomial tree, in ⌈log2 n⌉ steps (MPICH's
// bcast and reduce for short messages). The parent of position v, counted from the root, is v
// without its lowest set bit; its children are v + 2^k for all k below that bit. A reduce receives
// from the smallest subtree first, and a broadcast sends to the largest first. The root sends or
// receives the whole buffer once per child.
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
