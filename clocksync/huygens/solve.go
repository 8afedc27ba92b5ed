package huygens

import (
	"math"
	"slices"
)

// measured is an edge for the solver: d is the measured x[to] - x[from] in ps, with standard
// deviation sigma, and s that of the rates, as logarithms.
type measured struct {
	from, to int
	d, s     float64
	sigma    float64
	dropped  bool
}

// answer is the solution, by node.
type answer struct {
	x, s    []float64 // errors of the offsets, in ps, and of the rates
	sigma   []float64 // standard deviation of x
	in      []bool    // the node is in the component that was solved
	health  float64   // sum of squared standardized residuals per degree of freedom
	dropped int       // number of dropped edges
}

// Limits of the solver. Our choices.
const (
	outlier = 4  // standardized residual above which an edge is dropped
	rounds  = 25 // maximum number of rounds of dropping
	// bridge is the smallest normal.free of an edge that other edges can check: below it, nothing
	// else connects its ends.
	bridge = 1e-3
	// minSigma is the smallest standard deviation of an edge, as a share of the median: a node that
	// claims high accuracy for its edges gives them at most 16 times the weight of others.
	minSigma = 0.25
)

// solver makes edges agree (Huygens' network effect): x minimises the weighted sum of the squares
// of x[to] - x[from] - d, which is the smallest correction of the edges that closes all loops.
// Outliers are dropped, the worst first (normal.go).
type solver struct {
	normal
	index []int     // by node: its number among the solved nodes, or -1
	sizes []float64 // scratch: sigmas or residuals
	far   []int     // scratch: the edges that a round drops
}

// solve returns the errors of n nodes, relative to the anchor, or to their mean if anchor is -1. A
// node with most of its edges dropped is left out: nobody knows which of its edges are right. ok is
// false if no two nodes are connected.
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
		// again from the edges, without the rounding errors of updates
		if m = v.choose(n, edges, anchor); m < 2 || !v.factor(m, edges) {
			return a, false
		}
	}
	v.offsets(&a, edges, v.index, anchor)
	return a, true
}

// level raises the sigmas of edges that claim to be far better than the median; see minSigma.
func (v *solver) level(edges []measured) {
	v.sizes = v.sizes[:0]
	for i := range edges {
		v.sizes = append(v.sizes, edges[i].sigma)
	}
	if len(v.sizes) == 0 {
		return
	}
	slices.Sort(v.sizes)
	least := minSigma * v.sizes[len(v.sizes)/2]
	for i := range edges {
		edges[i].sigma = max(edges[i].sigma, least)
	}
}

// distrust drops all edges of nodes that lost more than half of them, except the anchor.
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

// choose numbers the nodes of the anchor's component, or of the largest one, and returns their
// count.
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

// factor sets up the normal equations for the edges between the m chosen nodes.
func (v *solver) factor(m int, edges []measured) bool { return v.normal.factor(m, edges, v.index) }

// reject drops the worst outliers and reports whether there were any. Residuals are compared with
// their own median, since the standard deviations of edges are only estimates.
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
		if v.free[i] >= bridge { // other edges still connect its ends
			v.drop(i, edges, v.index)
			a.dropped++
			found = true
		}
	}
	return found
}

// normalMedian is the median of the absolute value of a normal distribution, in standard
// deviations.
const normalMedian = 0.6745

// residual returns the standardized residual of edge i; 0 if no other edges can check it.
func (v *solver) residual(i int, e *measured) float64 {
	if v.free[i] < bridge {
		return 0
	}
	return math.Abs(v.misfit(e, v.index)) / (e.sigma * math.Sqrt(v.free[i]))
}
