package schedule

// newBinaryTree returns a broadcast or reduce along a binary tree as NCCL builds it (nccl
// src/graph/trees.cc, ncclGetBtree). In the tree over positions 0 to n−1, position 0 is the root,
// and its only child is the highest power of two below n. Position v > 0 with lowest set bit b has
// the children v − b/2 and v + b/2, where the distance of the second is halved until it exists. For
// n = 8:
//
//	0 → 4    4 → {2, 6}    2 → {1, 3}    6 → {5, 7}
//
// Positions count from the root. No rank sends more than twice what it receives.
func newBinaryTree(s Spec) *trees {
	return newRooted(s,
		func(v int) int { return btreeParent(v, s.Ranks) },
		func(v int) []int { return btreeChildren(v, s.Ranks) })
}

// newDoubleBinaryTree returns an all-reduce that moves half of the buffer along each of two binary
// trees, up and then down (nccl src/graph/trees.cc, ncclGetDtree). The second tree is the first
// with ranks counted from the other end, or for odd n shifted by one. So an inner node of one tree
// is a leaf of the other, and no rank sends or receives more than twice the buffer. Two children
// send to a parent at once, a 2:1 incast (STrack, section 4.3). NCCL has at most 8 chunks in flight
// per connection; here only the transport limits them.
func newDoubleBinaryTree(s Spec) *trees {
	n := s.Ranks
	s.Root = 0
	half := cutBlocks(s.Size, 2, s.Type.Size())
	parent := func(v int) int { return btreeParent(v, n) }
	children := func(v int) []int { return btreeChildren(v, n) }
	same := func(r int) int { return r }
	position := func(r int) int { return n - 1 - r }
	rank := position // which is its own inverse
	if n%2 == 1 {
		position = func(r int) int { return mod(r-1, n) }
		rank = func(v int) int { return mod(v+1, n) }
	}
	return &trees{
		Spec: s, up: true, down: true,
		all: []tree{
			relabel(extent{half.at(0), half.size(0)}, same, same, parent, children),
			relabel(extent{half.at(1), half.size(1)}, position, rank, parent, children),
		},
	}
}

// btreeParent returns the parent of position v of n, or -1 for the root.
func btreeParent(v, n int) int {
	if v == 0 {
		return -1
	}
	bit := v & -v
	if up := (v ^ bit) | bit<<1; up < n {
		return up
	}
	return v ^ bit
}

// btreeChildren returns the children of position v of n.
func btreeChildren(v, n int) []int {
	if v == 0 {
		top := 1
		for 2*top < n {
			top *= 2
		}
		return []int{top}
	}
	half := (v & -v) / 2
	if half == 0 {
		return nil
	}
	c := make([]int, 1, 2)
	c[0] = v - half
	for ; half > 0; half /= 2 {
		if v+half < n {
			return append(c, v+half)
		}
	}
	return c
}
