package schedule

// Binary trees as NCCL builds them (nccl src/graph/trees.cc, ncclGetBtree and ncclGetDtree). In the tree over
// places 0 to n−1, place 0 is the root and its only child is the highest power of two below n; place v > 0
// with lowest set bit b has as children v − b/2 and v + b/2, the second halved in distance until it exists.
// For n = 8: 0 → 4, 4 → {2, 6}, 2 → {1, 3}, 6 → {5, 7}.
//
// Broadcast and reduce move the whole buffer along one such tree, its places counted from the root: nobody
// sends more than twice what it receives.
//
// Double binary tree: an all-reduce that moves half of the buffer along each of two trees, up and down. The
// second is the first with ranks counted from the other end, or for odd n shifted by one: so a rank that is
// an inner one of either tree is a leaf of the other, and nobody sends or receives more than twice the
// buffer. Two children send to a parent at once: a 2:1 incast (STrack, section 4.3). NCCL has at most 8
// chunks under way per connection; here the transport alone limits that.

func newBinaryTree(s Spec) *trees {
	return newRooted(s,
		func(v int) int { return btreeParent(v, s.Ranks) },
		func(v int) []int { return btreeChildren(v, s.Ranks) })
}

func newDoubleBinaryTree(s Spec) *trees {
	n := s.Ranks
	s.Root = 0
	half := cutBlocks(s.Size, 2, s.Type.Size())
	parent := func(v int) int { return btreeParent(v, n) }
	children := func(v int) []int { return btreeChildren(v, n) }
	same := func(r int) int { return r }
	place := func(r int) int { return n - 1 - r }
	rank := place
	if n%2 == 1 {
		place = func(r int) int { return mod(r-1, n) }
		rank = func(v int) int { return mod(v+1, n) }
	}
	return &trees{
		Spec: s, up: true, down: true,
		all: []tree{
			moved(stretch{half.at(0), half.size(0)}, same, same, parent, children),
			moved(stretch{half.at(1), half.size(1)}, place, rank, parent, children),
		},
	}
}

// btreeParent is the parent of place v of n, -1 for the root.
func btreeParent(v, n int) int {
	if v == 0 {
		return -1
	}
	bit := v & -v
	if up := v ^ bit | bit<<1; up < n {
		return up
	}
	return v ^ bit
}

// btreeChildren are the children of place v of n.
func btreeChildren(v, n int) []int {
	if v == 0 {
		top := 1
		for 2*top < n {
			top *= 2
		}
		return []int{top}
	}
	half := v & -v / 2
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
