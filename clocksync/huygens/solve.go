package huygens

import (
	"math"
	"slices"
)

// measured is an edge as the coordinator sees it: x[to] - x[from] was measured as d, and as s for the rates, with a
// standard deviation of d.
type measured struct {
	from, to int
	d, s     float64
	sigma    float64
	dropped  bool
}

// answer is what a solution says of each node.
type answer struct {
	x, s    []float64 // errors of the offsets and of the rates
	sigma   []float64 // standard deviation of x
	in      []bool    // the node is in the part of the mesh that was solved
	health  float64   // sum of squared standardized residuals per degree of freedom
	dropped int
}

// outlier is the standardized residual beyond which an edge is dropped; rounds bounds how often that is done.
const (
	outlier = 4
	rounds  = 25
	// bridge is what an edge's residual leaves of its variance, relative, below which nothing else connects its ends: it
	// cannot be held against anything.
	bridge = 1e-3
	// lightest is how small a standard deviation of an edge counts, as a share of the median of all: what one node claims
	// of its own edges gives it no more than 16 times the weight of others.
	lightest = 0.25
)

// solver makes edges agree (network effect): x minimises the weighted sum of squares of x[to] - x[from] - d, which is
// what the least change of the edges around all loops comes to. Edges whose residual is far out of proportion are
// dropped, the worst first (normal.go).
type solver struct {
	normal
	index []int // of each node among those that are solved, or -1
	sizes []float64
	far   []int // edges that a round drops
}

// solve returns the errors of n nodes such that those of the anchor are 0; without one (-1) their mean is. A node most of
// whose edges had to be dropped is told nothing: which of them are right, nobody knows. ok is false when no two nodes are
// connected.
func (v *solver) solve(n int, edges []measured, anchor int) (a answer, ok bool) {
	a = answer{x: make([]float64, n), s: make([]float64, n), sigma: make([]float64, n), in: make([]bool, n)}
	v.level(edges)
	m := v.choose(n, edges, anchor)
	if m < 2 || !v.factor(m, edges) {
		return a, false
	}
	v.begin(edges, v.index)
	for range rounds {
		if !v.reject(&a, edges) {
			break
		}
	}
	if a.dropped > 0 {
		v.distrust(&a, edges, anchor)
		if m = v.choose(n, edges, anchor); m < 2 || !v.factor(m, edges) { // once more from the edges, without what changes rounded
			return a, false
		}
	}
	v.offsets(&a, edges, v.index, anchor)
	return a, true
}

// level keeps edges that claim to be far better than the median from outweighing all others.
func (v *solver) level(edges []measured) {
	v.sizes = v.sizes[:0]
	for i := range edges {
		v.sizes = append(v.sizes, edges[i].sigma)
	}
	if len(v.sizes) == 0 {
		return
	}
	slices.Sort(v.sizes)
	least := lightest * v.sizes[len(v.sizes)/2]
	for i := range edges {
		edges[i].sigma = max(edges[i].sigma, least)
	}
}

// distrust drops what is left of the edges of nodes most of whose edges were dropped, other than the anchor.
func (v *solver) distrust(a *answer, edges []measured, anchor int) {
	kept, gone := make([]int, len(a.x)), make([]int, len(a.x))
	for i := range edges {
		count := kept
		if edges[i].dropped {
			count = gone
		}
		count[edges[i].from]++
		count[edges[i].to]++
	}
	for i := range edges {
		e := &edges[i]
		if e.dropped {
			continue
		}
		for _, k := range [2]int{e.from, e.to} {
			if k != anchor && gone[k] > kept[k] && !e.dropped {
				e.dropped = true
				a.dropped++
			}
		}
	}
}

// choose numbers the nodes of the component that the anchor is in, or of the largest, and returns how many they are.
func (v *solver) choose(n int, edges []measured, anchor int) int {
	root := make([]int, n)
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for i := range edges {
		if e := &edges[i]; !e.dropped {
			root[find(e.from)] = find(e.to)
		}
	}
	count := make([]int, n)
	best := 0
	for i := range n {
		count[find(i)]++
	}
	for i := range n {
		if count[i] > count[best] {
			best = i
		}
	}
	if anchor >= 0 && count[find(anchor)] > 1 {
		best = find(anchor)
	}
	v.index = slices.Grow(v.index[:0], n)[:n]
	m := 0
	for i := range n {
		v.index[i] = -1
		if find(i) == best {
			v.index[i] = m
			m++
		}
	}
	return m
}

// factor sets the normal equations up for the edges between the m nodes that were chosen.
func (v *solver) factor(m int, edges []measured) bool { return v.normal.factor(m, edges, v.index) }

// reject drops the edges whose residual is out of proportion, the worst first, and reports whether there were any. The
// residuals are held against their own median, since the standard deviations of edges are estimates.
func (v *solver) reject(a *answer, edges []measured) bool {
	v.sizes = v.sizes[:0]
	var chi float64
	for i := range edges {
		if e := &edges[i]; !e.dropped && v.index[e.from] >= 0 {
			r := v.misfit(e, v.index) / e.sigma
			chi += r * r
			v.sizes = append(v.sizes, v.residual(i, e))
		}
	}
	free := len(v.sizes) - v.n + 1
	if free <= 0 {
		a.health = 0
		return false
	}
	a.health = chi / float64(free)
	worst := slices.Max(v.sizes)
	slices.Sort(v.sizes)
	scale := max(v.sizes[len(v.sizes)/2]/normalMedian, 1e-12)
	limit := max(outlier*scale, worst/2)
	v.far = v.far[:0]
	for i := range edges {
		if e := &edges[i]; !e.dropped && v.index[e.from] >= 0 && v.residual(i, e) > limit {
			v.far = append(v.far, i)
		}
	}
	found := false
	for _, i := range v.far {
		if v.free[i] >= bridge { // something else connects its ends, still
			v.drop(i, edges, v.index)
			a.dropped++
			found = true
		}
	}
	return found
}

// normalMedian is the median size of what is normally distributed, in standard deviations.
const normalMedian = 0.6745

// residual is the standardized residual of edge i; 0 of one that nothing else can be held against.
func (v *solver) residual(i int, e *measured) float64 {
	if v.free[i] < bridge {
		return 0
	}
	return math.Abs(v.misfit(e, v.index)) / (e.sigma * math.Sqrt(v.free[i]))
}
