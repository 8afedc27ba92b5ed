package huygens

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// Every node has the degree that was asked for, or one less or more in a small mesh, and every node reaches every other.
func TestMeshIsConnectedAndRegular(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 90).Draw(t, "nodes")
		degree := rapid.IntRange(1, 20).Draw(t, "degree")
		seed := rapid.Uint64().Draw(t, "seed")
		edges := Mesh(n, degree, seed)
		if !reflect.DeepEqual(edges, Mesh(n, degree, seed)) {
			t.Fatal("two nodes know different meshes")
		}
		count := make([]int, n)
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
			all = append(all, measured{from: a, to: b, sigma: 1})
		}
		if got := v.choose(n, all, -1); got != n {
			t.Fatalf("%d of %d nodes are connected", got, n)
		}
		want := min(max(degree, 2), n-1)
		for i, c := range count {
			if c < want-2 || c > want+1 || n > 2*degree+4 && c < want-1 {
				t.Fatalf("node %d of %d has %d neighbours, want %d", i, n, c, want)
			}
		}
	})
	if Mesh(1, 3, 1) != nil {
		t.Error("a node alone has edges")
	}
}

// graph is a mesh with errors of its edges.
func graph(n, degree int, sigma float64, r *rand.Rand) ([]measured, []float64) {
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

// The solution is that of the normal equations, solved by another library.
func TestSolveAgainstGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	edges, _ := graph(20, 6, 100, r)
	for i := range edges {
		edges[i].sigma = 50 + 100*r.Float64()
	}
	var v solver
	got, ok := v.solve(20, edges, 3)
	if !ok {
		t.Fatal("not solved")
	}
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
	if got.x[3] != 0 || got.dropped != 0 || got.health > 3 {
		t.Errorf("anchor %v, dropped %d, health %v", got.x[3], got.dropped, got.health)
	}
}

// Foster's law: over all edges the mean squared error falls to (M-1)/E of what it was; around any loop it is 0.
func TestNetworkEffectFollowsFoster(t *testing.T) {
	for _, degree := range []int{4, 10, 20} {
		var before, after float64
		edgeCount := 0
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			edges, truth := graph(64, degree, 100, r)
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

// Edges that do not fit are dropped, and do not bend the others.
func TestFalseEdgesAreDropped(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	edges, truth := graph(32, 10, 1000, r) // 1 ns
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

// A window of 256 nodes has to be solved in much less than a window lasts in an emulation: 20 ms times its dilation.
func BenchmarkSolve256(b *testing.B) {
	edges, _ := graph(256, 10, 100, rand.New(rand.NewPCG(1, 1)))
	var v solver
	for b.Loop() {
		if _, ok := v.solve(256, edges, 0); !ok {
			b.Fatal("not solved")
		}
	}
}
