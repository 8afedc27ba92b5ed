package schedule

import (
	"slices"
	"testing"
)

// doubleTree returns the parent and the children of a rank in tree k of a double binary tree of n.
func doubleTree(n, k, rank int) (parent int, children []int) {
	t := newDoubleBinaryTree(Spec{Ranks: n, Size: 8})
	return t.all[k].parent(rank), t.all[k].children(rank)
}

// For n = 8, tree 0: 4 is child of 0; 4 → {2, 6}; 2 → {1, 3}; 6 → {5, 7}. Tree 1 is its mirror.
func TestDoubleBinaryTreeOfEight(t *testing.T) {
	for rank, want := range [][]int{{4}, nil, {1, 3}, nil, {2, 6}, nil, {5, 7}, nil} {
		if _, got := doubleTree(8, 0, rank); !slices.Equal(got, want) {
			t.Errorf("tree 0: children of %d are %v, want %v", rank, got, want)
		}
	}
	for rank, want := range [][]int{nil, {2, 0}, nil, {5, 1}, nil, {6, 4}, nil, {3}} {
		if _, got := doubleTree(8, 1, rank); !slices.Equal(got, want) {
			t.Errorf("tree 1: children of %d are %v, want %v", rank, got, want)
		}
	}
}

// The pictures in nccl's trees.cc: 14 ranks in one tree, 12 ranks mirrored, 13 ranks shifted.
func TestTreesOfNCCL(t *testing.T) {
	tree14 := [][]int{{8}, nil, {1, 3}, nil, {2, 6}, nil, {5, 7}, nil, {4, 12}, nil, {9, 11}, nil, {10, 13}, nil}
	for v, want := range tree14 {
		if got := btreeChildren(v, 14); !slices.Equal(got, want) {
			t.Errorf("children of %d of 14 are %v, want %v", v, got, want)
		}
	}
	mirror12 := map[int][]int{11: {3}, 3: {7, 1}, 7: {9, 5}, 1: {2, 0}, 9: {10, 8}, 5: {6, 4}, 0: nil, 10: nil}
	for rank, want := range mirror12 {
		if _, got := doubleTree(12, 1, rank); !slices.Equal(got, want) {
			t.Errorf("mirror: children of %d of 12 are %v, want %v", rank, got, want)
		}
	}
	shift13 := map[int][]int{1: {9}, 9: {5, 0}, 5: {3, 7}, 0: {11}, 3: {2, 4}, 7: {6, 8}, 11: {10, 12}, 12: nil}
	for rank, want := range shift13 {
		if _, got := doubleTree(13, 1, rank); !slices.Equal(got, want) {
			t.Errorf("shift: children of %d of 13 are %v, want %v", rank, got, want)
		}
	}
}

// Both trees span all ranks, parents and children agree, no rank has more than two children, and no
// rank is an inner node of both, except for the root of an odd number.
func TestDoubleBinaryTree(t *testing.T) {
	for n := 2; n <= 300; n++ {
		inner := make([]int, n)
		for k := range 2 {
			roots := 0
			for rank := range n {
				parent, children := doubleTree(n, k, rank)
				if len(children) > 2 {
					t.Fatalf("n=%d tree %d: rank %d has children %v", n, k, rank, children)
				}
				if len(children) > 0 && parent >= 0 {
					inner[rank]++
				}
				for _, c := range children {
					if up, _ := doubleTree(n, k, c); up != rank {
						t.Fatalf("n=%d tree %d: the parent of %d is %d, not %d", n, k, c, up, rank)
					}
				}
				steps := 0
				for at := rank; ; steps++ {
					up, _ := doubleTree(n, k, at)
					if up < 0 {
						break
					}
					if _, down := doubleTree(n, k, up); !slices.Contains(down, at) || steps > 10 {
						t.Fatalf("n=%d tree %d: %d is no child of %d, or %d has no root", n, k, at, up, rank)
					}
					at = up
				}
				if parent < 0 {
					roots++
				}
			}
			if roots != 1 {
				t.Fatalf("n=%d tree %d: %d roots", n, k, roots)
			}
		}
		for rank, times := range inner {
			if times > 1 {
				t.Fatalf("n=%d: rank %d is an inner one of both trees", n, rank)
			}
		}
	}
}
