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
// dropped, the worst first, and it solves again: a dropped edge is a change of rank one of the inverse.
type solver struct {
	n     int
	index []int     // of each node among those that are solved, or -1
	l     []float64 // Laplacian, then its Cholesky factor
	inv   []float64 // inverse
	sizes []float64
	far   []float64 // inv times an edge that is dropped
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
	for range rounds {
		v.offsets(&a, edges, anchor)
		if !v.reject(&a, edges, m) {
			break
		}
	}
	if a.dropped == 0 {
		return a, true
	}
	v.distrust(&a, edges, anchor)
	if m = v.choose(n, edges, anchor); m < 2 || !v.factor(m, edges) { // once more from the edges, without what downdates rounded
		a.in = make([]bool, n)
		return a, false
	}
	v.offsets(&a, edges, anchor)
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

// factor builds the Laplacian with the mean as gauge, and its inverse by Cholesky.
func (v *solver) factor(m int, edges []measured) bool {
	v.n = m
	v.l = slices.Grow(v.l[:0], m*m)[:m*m]
	v.inv = slices.Grow(v.inv[:0], m*m)[:m*m]
	clear(v.l)
	var total float64
	for i := range edges {
		e := &edges[i]
		if e.dropped || v.index[e.from] < 0 {
			continue
		}
		a, b, w := v.index[e.from], v.index[e.to], 1/(e.sigma*e.sigma)
		v.l[a*m+a] += w
		v.l[b*m+b] += w
		v.l[a*m+b] -= w
		v.l[b*m+a] -= w
		total += w
	}
	gauge := total / float64(m) / float64(m)
	for i := range v.l {
		v.l[i] += gauge
	}
	return cholesky(v.l, m) && invert(v.l, v.inv, m)
}

// offsets solves for offsets and rates and moves them to the gauge.
func (v *solver) offsets(a *answer, edges []measured, anchor int) {
	m := v.n
	rhs, rates := make([]float64, m), make([]float64, m)
	for i := range edges {
		e := &edges[i]
		if e.dropped || v.index[e.from] < 0 {
			continue
		}
		f, t, w := v.index[e.from], v.index[e.to], 1/(e.sigma*e.sigma)
		rhs[t] += w * e.d
		rhs[f] -= w * e.d
		rates[t] += w * e.s
		rates[f] -= w * e.s
	}
	ref := -1
	if anchor >= 0 {
		ref = v.index[anchor]
	}
	for i, k := range v.index {
		a.in[i] = k >= 0
		a.x[i], a.s[i], a.sigma[i] = 0, 0, 0
		if k < 0 {
			continue
		}
		for j := range m {
			c := v.inv[k*m+j]
			if ref >= 0 {
				c -= v.inv[ref*m+j]
			}
			a.x[i] += c * rhs[j]
			a.s[i] += c * rates[j]
		}
		variance := v.inv[k*m+k]
		if ref >= 0 {
			variance += v.inv[ref*m+ref] - 2*v.inv[k*m+ref]
		}
		a.sigma[i] = math.Sqrt(max(0, variance))
	}
}

// reject drops the edges whose residual is out of proportion, the worst first, and reports whether there were any. The
// residuals are held against their own median, since the standard deviations of edges are estimates.
func (v *solver) reject(a *answer, edges []measured, m int) bool {
	v.sizes = v.sizes[:0]
	var chi float64
	for i := range edges {
		if e := &edges[i]; !e.dropped && v.index[e.from] >= 0 {
			r := (a.x[e.to] - a.x[e.from] - e.d) / e.sigma
			chi += r * r
			v.sizes = append(v.sizes, v.residual(a, e))
		}
	}
	free := len(v.sizes) - m + 1
	if free <= 0 {
		a.health = 0
		return false
	}
	a.health = chi / float64(free)
	worst := slices.Max(v.sizes)
	slices.Sort(v.sizes)
	scale := max(v.sizes[len(v.sizes)/2]/normalMedian, 1e-12)
	limit := max(outlier*scale, worst/2)
	found := false
	var far []int
	for i := range edges {
		if e := &edges[i]; !e.dropped && v.index[e.from] >= 0 && v.residual(a, e) > limit {
			far = append(far, i)
		}
	}
	for _, i := range far {
		if v.drop(&edges[i]) {
			a.dropped++
			found = true
		}
	}
	return found
}

// normalMedian is the median size of what is normally distributed, in standard deviations.
const normalMedian = 0.6745

// freedom is what an edge's residual has of its variance, relative: 1 less the share of the edge in what connects its ends.
func (v *solver) freedom(e *measured) float64 {
	f, t, m := v.index[e.from], v.index[e.to], v.n
	return 1 - (v.inv[f*m+f]+v.inv[t*m+t]-2*v.inv[f*m+t])/(e.sigma*e.sigma)
}

// residual is the standardized residual of an edge; 0 of one that nothing else can be held against.
func (v *solver) residual(a *answer, e *measured) float64 {
	free := v.freedom(e)
	if free < bridge {
		return 0
	}
	return math.Abs(a.x[e.to]-a.x[e.from]-e.d) / (e.sigma * math.Sqrt(free))
}

// drop takes an edge out of the inverse (Sherman and Morrison), unless nothing else connects its ends any more.
func (v *solver) drop(e *measured) bool {
	free := v.freedom(e)
	if free < bridge {
		return false
	}
	f, t, m := v.index[e.from], v.index[e.to], v.n
	v.far = slices.Grow(v.far[:0], m)[:m]
	for k := range m {
		v.far[k] = v.inv[t*m+k] - v.inv[f*m+k]
	}
	scale := 1 / (e.sigma * e.sigma * free)
	for k, x := range v.far {
		row := v.inv[k*m : k*m+m]
		for j, y := range v.far {
			row[j] += scale * x * y
		}
	}
	e.dropped = true
	return true
}

// cholesky replaces the lower half of a symmetric matrix by its factor. It returns false if it is not positive definite.
func cholesky(a []float64, n int) bool {
	for j := range n {
		row := a[j*n : j*n+j]
		d := a[j*n+j]
		for _, x := range row {
			d -= x * x
		}
		if !(d > 0) {
			return false
		}
		d = math.Sqrt(d)
		a[j*n+j] = d
		for i := j + 1; i < n; i++ {
			s := a[i*n+j]
			other := a[i*n : i*n+j]
			for k, x := range row {
				s -= x * other[k]
			}
			a[i*n+j] = s / d
		}
	}
	return true
}

// invert writes the inverse of the matrix whose Cholesky factor is l.
func invert(l, inv []float64, n int) bool {
	column := make([]float64, n)
	for c := range n {
		clear(column)
		for i := c; i < n; i++ { // forward: L y = e_c
			s := 0.0
			if i == c {
				s = 1
			}
			for k, x := range l[i*n+c : i*n+i] {
				s -= x * column[c+k]
			}
			column[i] = s / l[i*n+i]
		}
		for i := n - 1; i >= 0; i-- { // backward: L^T x = y
			s := column[i] / l[i*n+i]
			column[i] = s
			for k, x := range l[i*n : i*n+i] {
				column[k] -= x * s
			}
		}
		for i, x := range column {
			inv[i*n+c] = x
		}
	}
	return true
}
