package huygens

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// Every node has the requested degree (one node one less if no such mesh exists), owns half of its
// edges, and reaches every other.
func TestMeshIsConnectedAndRegular(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 90).Draw(t, "nodes")
		degree := rapid.IntRange(1, 20).Draw(t, "degree")
		seed := rapid.Uint64().Draw(t, "seed")
		edges := Mesh(n, degree, seed)
		if !reflect.DeepEqual(edges, Mesh(n, degree, seed)) {
			t.Fatal("two nodes know different meshes")
		}
		count, owns := make([]int, n), make([]int, n)
		reach := map[[2]int]bool{}
		var v solver
		var all []measured
		for _, e := range edges {
			a, b := int(e.Owner), int(e.Peer)
			if a == b || reach[[2]int{a, b}] || reach[[2]int{b, a}] {
				t.Fatalf("edge %v is repeated or a loop", e)
			}
			reach[[2]int{a, b}] = true
			count[a]++
			count[b]++
			owns[a]++
			all = append(all, measured{from: a, to: b, sigma: 1})
		}
		if got := v.choose(n, all, -1); got != n {
			t.Fatalf("%d of %d nodes are connected", got, n)
		}
		want := min(max(degree, 2), n-1)
		less := 0
		for i, c := range count {
			switch {
			case c == want-1 && want*n%2 == 1:
				less++
			case c != want:
				t.Fatalf("node %d of %d has %d neighbours, want %d", i, n, c, want)
			}
			if d := 2*owns[i] - c; d < -2 || d > 2 {
				t.Fatalf("node %d owns %d of %d edges", i, owns[i], c)
			}
		}
		if less > 1 {
			t.Fatalf("%d nodes of %d have less than %d neighbours", less, n, want)
		}
	})
	if Mesh(1, 3, 1) != nil {
		t.Error("a node alone has edges")
	}
}

// noisyMesh returns a mesh and the errors of its edges.
func noisyMesh(n, degree int, sigma float64, r *rand.Rand) ([]measured, []float64) {
	truth := make([]float64, n)
	for i := range truth {
		truth[i] = r.NormFloat64() * 1e6
	}
	var edges []measured
	for _, e := range Mesh(n, degree, 1) {
		a, b := int(e.Owner), int(e.Peer)
		edges = append(edges, measured{from: a, to: b, sigma: sigma, d: truth[b] - truth[a] + sigma*r.NormFloat64(), s: (truth[b] - truth[a]) * 1e-12})
	}
	return edges, truth
}

// The solution is that of the normal equations, as another library solves them.
func TestSolveAgainstGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	edges, _ := noisyMesh(20, 6, 100, r)
	for i := range edges {
		edges[i].sigma = 50 + 100*r.Float64()
	}
	var v solver
	got, ok := v.solve(20, edges, 3)
	if !ok {
		t.Fatal("not solved")
	}
	edges = slices.DeleteFunc(edges, func(e measured) bool { return e.dropped }) // one in 16000 is beyond four deviations by chance
	a := mat.NewDense(len(edges)+1, 20, nil)
	b := mat.NewVecDense(len(edges)+1, nil)
	for i, e := range edges {
		a.Set(i, e.to, 1/e.sigma)
		a.Set(i, e.from, -1/e.sigma)
		b.SetVec(i, e.d/e.sigma)
	}
	a.Set(len(edges), 3, 1)
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if d := got.x[i] - x.AtVec(i); math.Abs(d) > 1e-4 {
			t.Errorf("node %d: %v, gonum says %v", i, got.x[i], x.AtVec(i))
		}
	}
	if got.x[3] != 0 || got.dropped > 1 || got.health > 3 {
		t.Errorf("anchor %v, dropped %d, health %v", got.x[3], got.dropped, got.health)
	}
}

// Foster's law: over all edges the mean squared error falls to (M-1)/E of what it was; around any
// loop it is 0.
func TestNetworkEffectFollowsFoster(t *testing.T) {
	for _, degree := range []int{4, 10, 20} {
		var before, after float64
		edgeCount := 0
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			edges, truth := noisyMesh(64, degree, 100, r)
			edgeCount = len(edges)
			var v solver
			a, ok := v.solve(64, edges, -1)
			if !ok {
				t.Fatal("not solved")
			}
			for _, e := range edges {
				d := truth[e.to] - truth[e.from]
				before += (e.d - d) * (e.d - d)
				after += (a.x[e.to] - a.x[e.from] - d) * (a.x[e.to] - a.x[e.from] - d)
			}
		}
		got, want := math.Sqrt(after/before), math.Sqrt(63/float64(edgeCount))
		if math.Abs(got/want-1) > 0.06 {
			t.Errorf("degree %d: errors fall to %.3f, want %.3f", degree, got, want)
		}
	}
}

// Outliers are dropped, and do not shift the solution.
func TestFalseEdgesAreDropped(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	edges, truth := noisyMesh(32, 10, 1000, r) // 1 ns
	for _, i := range []int{3, 30, 57, 90, 121} {
		edges[i].d += 5e6 * float64(1+i%3) // 5 to 15 us
	}
	var v solver
	a, ok := v.solve(32, edges, 0)
	if !ok || a.dropped != 5 {
		t.Fatalf("solved %v, dropped %d; want 5", ok, a.dropped)
	}
	for i := range truth {
		if e := a.x[i] - (truth[i] - truth[0]); math.Abs(e) > 5000 {
			t.Errorf("node %d is wrong by %.0f ps", i, e)
		}
	}
}

func TestSolvingWhatFallsApart(t *testing.T) {
	edge := func(a, b int) measured { return measured{from: a, to: b, d: 1, sigma: 1} }
	var v solver
	a, ok := v.solve(6, []measured{edge(0, 1), edge(2, 3), edge(3, 4)}, 0)
	if !ok || !a.in[1] || a.in[2] || a.in[5] {
		t.Errorf("with anchor 0: %v %v", ok, a.in)
	}
	a, ok = v.solve(6, []measured{edge(0, 1), edge(2, 3), edge(3, 4)}, -1)
	if !ok || a.in[0] || !a.in[2] || math.Abs(a.x[4]-1) > 1e-9 {
		t.Errorf("the largest part: %v %v %v", ok, a.in, a.x)
	}
	if _, ok := v.solve(3, nil, -1); ok {
		t.Error("no edges were solved")
	}
	if cholesky([]float64{0}, 1) {
		t.Error("a singular matrix has a factor")
	}
}

// meshWithLiars returns a mesh in which some nodes falsify their own edges by lie, and claim
// deviations of 1 ps.
func meshWithLiars(n, degree int, lie func(e measured, k int) (float64, bool)) ([]measured, []float64) {
	edges, truth := noisyMesh(n, degree, 500, rand.New(rand.NewPCG(9, 2)))
	for i := range edges {
		if by, lies := lie(edges[i], i); lies {
			edges[i].d += by
			edges[i].sigma = 1
		}
	}
	return edges, truth
}

// Lies in reports hardly affect other nodes, whatever certainty the liars claim.
func TestNodesThatLieAboutTheirEdges(t *testing.T) {
	for name, lie := range map[string]func(e measured, k int) (float64, bool){
		"by microseconds":          func(e measured, k int) (float64, bool) { return 5e6 * float64(e.to%3+1), e.from == 3 },
		"by one amount":            func(e measured, k int) (float64, bool) { return 5e6, e.from == 3 },
		"by a little":              func(e measured, k int) (float64, bool) { return 4e3 * float64(k%3-1), e.from == 3 },
		"two of them, in one tone": func(e measured, k int) (float64, bool) { return 5e6, e.from == 3 || e.from == 7 },
		"one edge":                 func(e measured, k int) (float64, bool) { return 1e6, e.from == 3 && e.to > 10 },
	} {
		edges, truth := meshWithLiars(16, 6, lie)
		var v solver
		a, ok := v.solve(16, edges, 0)
		if !ok {
			t.Fatalf("%s: not solved", name)
		}
		for i := range truth {
			if e := a.x[i] - (truth[i] - truth[0]); i != 3 && i != 7 && (!a.in[i] || math.Abs(e) > 3000) {
				t.Errorf("%s: honest node %d is moved by %.0f ps, told %v", name, i, e, a.in[i])
			}
		}
	}
}

// Dropping edges from the solution gives the same result as solving without them.
func TestDroppingEdgesIsSolvingWithoutThem(t *testing.T) {
	edges, _ := noisyMesh(20, 6, 100, rand.New(rand.NewPCG(5, 2)))
	var with, without solver
	for _, v := range []*solver{&with, &without} {
		v.choose(20, edges, 0)
		v.factor(20, edges)
		v.begin(edges, v.index)
		for i := range edges {
			if v == &with && i%7 == 3 {
				v.drop(i, edges, v.index)
			}
		}
	}
	for i := range edges {
		if a, b := with.free[i], without.free[i]; !edges[i].dropped && math.Abs(a-b) > 1e-9 {
			t.Errorf("edge %d: what is left of its variance is %g, want %g", i, a, b)
		}
	}
	for i := range 20 {
		if a, b := with.x[i]-with.x[0], without.x[i]-without.x[0]; math.Abs(a-b) > 1e-6 {
			t.Errorf("node %d: %g, want %g", i, a, b)
		}
	}
}

// With M, the inverse of the factor, M N M^T is the identity.
func TestInverseOfAFactor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		b := mat.NewDense(n, n, nil)
		for i := range n {
			for j := range n {
				b.Set(i, j, r.NormFloat64())
			}
			b.Set(i, i, b.At(i, i)+float64(n)) // well conditioned
		}
		var a mat.Dense
		a.Mul(b, b.T())
		w := slices.Clone(a.RawMatrix().Data)
		if !cholesky(w, n) {
			t.Fatal("a positive definite matrix has no factor")
		}
		invert(w, n)
		m := mat.NewDense(n, n, nil)
		for j := range n {
			for i := j; i < n; i++ {
				m.Set(i, j, w[j*n+i])
			}
		}
		var one mat.Dense
		one.Mul(m, &a)
		one.Mul(&one, m.T())
		for i := range n {
			for j := range n {
				want := 0.0
				if i == j {
					want = 1
				}
				if math.Abs(one.At(i, j)-want) > 1e-8 {
					t.Fatalf("M A M^T at %d, %d is %g", i, j, one.At(i, j))
				}
			}
		}
	})
}

// A window of 256 nodes has to be solved in much less than a window lasts in an emulation: 20 ms
// times its dilation.
func BenchmarkSolve256(b *testing.B) {
	edges, _ := noisyMesh(256, 10, 100, rand.New(rand.NewPCG(1, 1)))
	var v solver
	for b.Loop() {
		if _, ok := v.solve(256, slices.Clone(edges), 0); !ok {
			b.Fatal("not solved")
		}
	}
}

// The same with every ninth edge false, by different amounts.
func BenchmarkSolve256False(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	edges, _ := noisyMesh(256, 10, 100, r)
	for i := 0; i < len(edges); i += 9 {
		edges[i].d += 1e6 * math.Exp(3*r.NormFloat64())
	}
	var v solver
	for b.Loop() {
		if _, ok := v.solve(256, slices.Clone(edges), 0); !ok {
			b.Fatal("not solved")
		}
	}
}
