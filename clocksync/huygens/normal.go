package huygens

import (
	"math"
	"slices"
)

// normal is the normal equations of the mesh. Their matrix is the Laplacian N, the sum of w b b^T
// over the edges, with w = 1/sigma^2 and b = 1 at one end and -1 at the other; the mean of all
// nodes is the gauge. With N = L L^T (Cholesky) and M the inverse of L, N^-1 = M^T M. Dropping an
// edge changes the inverse by a matrix of rank one (Sherman and Morrison), which is kept apart.
//
// Work and memory are of order nodes^2 and edges times nodes, except for L and M, which take
// nodes^3/6 multiplications each.
type normal struct {
	n int // number of nodes
	// w has L below the diagonal and the transpose of M above it. Their diagonals are each other's
	// inverse; that of M is stored. So column j of M is w[j*n+j : j*n+n].
	w       []float64
	free    []float64   // by edge: variance of its residual relative to its own; 0: nothing else connects its ends
	x       []float64   // the solution without the dropped edges
	changes []change    // of the dropped edges
	spare   [][]float64 // vectors for reuse
	z       []float64   // the result of difference
}

// change is the update of the inverse for a dropped edge: scale far far^T.
type change struct {
	far   []float64
	scale float64
}

// factor builds and factorizes the equations of n nodes, from the edges whose ends have an index.
// It returns false if the matrix is not positive definite.
func (v *normal) factor(n int, edges []measured, index []int) bool {
	v.n = n
	v.w = slices.Grow(v.w[:0], n*n)[:n*n]
	clear(v.w)
	var total float64
	for i := range edges {
		e := &edges[i]
		if e.dropped || index[e.from] < 0 {
			continue
		}
		a, b, w := index[e.from], index[e.to], 1/(e.sigma*e.sigma)
		v.w[a*n+a] += w
		v.w[b*n+b] += w
		v.w[max(a, b)*n+min(a, b)] -= w
		total += w
	}
	gauge := total / float64(n) / float64(n)
	for i := range n {
		for j := range i + 1 {
			v.w[i*n+j] += gauge
		}
	}
	if !cholesky(v.w, n) {
		return false
	}
	invert(v.w, n)
	return true
}

// begin computes x and free, before any edge is dropped.
func (v *normal) begin(edges []measured, index []int) {
	for _, c := range v.changes {
		v.spare = append(v.spare, c.far)
	}
	v.changes = v.changes[:0]
	v.free = slices.Grow(v.free[:0], len(edges))[:len(edges)]
	for i := range edges {
		e := &edges[i]
		if e.dropped || index[e.from] < 0 {
			v.free[i] = 0
			continue
		}
		z := v.difference(index[e.from], index[e.to])
		v.free[i] = 1 - dot(z, z)/(e.sigma*e.sigma)
	}
	v.x = v.solution(v.x, edges, index, func(e *measured) float64 { return e.d })
}

// difference returns M b without its leading zeros: the difference of columns to and from of M.
func (v *normal) difference(from, to int) []float64 {
	n, first := v.n, min(from, to)
	v.z = slices.Grow(v.z[:0], n)[:n-first]
	clear(v.z)
	copy(v.z[to-first:], v.w[to*n+to:to*n+n])
	axpy(v.z[from-first:], -1, v.w[from*n+from:from*n+n])
	return v.z
}

// solution returns N^-1 r = M^T (M r), where r is the sum of w of(e) b over the edges.
func (v *normal) solution(x []float64, edges []measured, index []int, of func(*measured) float64) []float64 {
	n := v.n
	r := make([]float64, n)
	for i := range edges {
		e := &edges[i]
		if e.dropped || index[e.from] < 0 {
			continue
		}
		y := of(e) / (e.sigma * e.sigma)
		r[index[e.to]] += y
		r[index[e.from]] -= y
	}
	v.z = slices.Grow(v.z[:0], n)[:n]
	clear(v.z)
	for j, y := range r {
		axpy(v.z[j:], y, v.w[j*n+j:j*n+n])
	}
	x = slices.Grow(x[:0], n)[:n]
	for i := range x {
		x[i] = dot(v.w[i*n+i:i*n+n], v.z[i:])
	}
	return x
}

// misfit returns the residual of an edge: the solution's difference of its ends minus its own.
func (v *normal) misfit(e *measured, index []int) float64 {
	return v.x[index[e.to]] - v.x[index[e.from]] - e.d
}

// drop removes edge i. Other edges must connect its ends.
func (v *normal) drop(i int, edges []measured, index []int) {
	e, n := &edges[i], v.n
	f, t := index[e.from], index[e.to]
	var far []float64
	if k := len(v.spare); k > 0 {
		far, v.spare = v.spare[k-1], v.spare[:k-1]
	}
	far = slices.Grow(far[:0], n)[:n] // N^-1 b
	z := v.difference(f, t)
	first := n - len(z)
	for k := range far {
		from := max(k, first)
		far[k] = dot(v.w[k*n+from:k*n+n], z[from-first:])
	}
	for _, c := range v.changes {
		axpy(far, c.scale*(c.far[t]-c.far[f]), c.far)
	}
	scale := 1 / (e.sigma * e.sigma * v.free[i])
	axpy(v.x, scale*v.misfit(e, index), far)
	e.dropped = true
	v.changes = append(v.changes, change{far, scale})
	for k := range edges {
		if o := &edges[k]; !o.dropped && index[o.from] >= 0 {
			d := (far[index[o.to]] - far[index[o.from]]) / o.sigma
			v.free[k] -= scale * d * d
		}
	}
}

// offsets writes the solution for offsets and rates to a, relative to the anchor, or to the mean if
// anchor is -1. No edge may have been dropped since factor.
func (v *normal) offsets(a *answer, edges []measured, index []int, anchor int) {
	n, ref := v.n, -1
	if anchor >= 0 {
		ref = index[anchor]
	}
	x := v.solution(nil, edges, index, func(e *measured) float64 { return e.d })
	s := v.solution(nil, edges, index, func(e *measured) float64 { return e.s })
	for i, k := range index {
		a.in[i] = k >= 0
		if k < 0 {
			continue
		}
		a.x[i], a.s[i] = x[k], s[k]
		z := v.w[k*n+k : k*n+n]
		if ref >= 0 {
			a.x[i], a.s[i] = x[k]-x[ref], s[k]-s[ref]
			z = v.difference(ref, k)
		}
		a.sigma[i] = math.Sqrt(dot(z, z))
	}
}

// cholesky replaces the lower triangle of a symmetric matrix by its Cholesky factor. It returns
// false if the matrix is not positive definite.
func cholesky(a []float64, n int) bool {
	for j := range n {
		row := a[j*n : j*n+j]
		d := a[j*n+j] - dot(row, row)
		if !(d > 0) {
			return false
		}
		d = math.Sqrt(d)
		a[j*n+j] = d
		for i := j + 1; i < n; i++ {
			a[i*n+j] = (a[i*n+j] - dot(row, a[i*n:i*n+j])) / d
		}
	}
	return true
}

// invert writes the transpose of the inverse of a lower triangular factor into the upper triangle,
// and replaces the diagonal by its inverse.
func invert(a []float64, n int) {
	for i := range n {
		d := 1 / a[i*n+i]
		a[i*n+i] = d
		for j := range i {
			a[j*n+i] = -d * dot(a[i*n+j:i*n+i], a[j*n+j:j*n+i])
		}
	}
}

// dot returns the dot product of two vectors; the second may be longer. Four independent sums hide
// the latency of the additions. The conversions prevent fused operations, so that results are the
// same on every machine.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s, t, u, v float64
	for len(a) >= 4 && len(b) >= 4 {
		s += float64(a[0] * b[0])
		t += float64(a[1] * b[1])
		u += float64(a[2] * b[2])
		v += float64(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s += float64(x * b[i])
	}
	return (s + t) + (u + v)
}

// axpy adds a*x to y, over the length of x.
func axpy(y []float64, a float64, x []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float64(a * v)
	}
}
