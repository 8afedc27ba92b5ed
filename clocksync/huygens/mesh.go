package huygens

import (
	"math/rand/v2"
	"slices"

	"weft/clocksync"
)

// Edge is an edge of the mesh: both ends probe, and Owner computes.
type Edge struct {
	Owner, Peer clocksync.Node
}

// Mesh returns the edges of a connected mesh of nodes, in which each node has degree neighbours: all others when there
// are no more. It is a function of its arguments, so that every node knows the same mesh: a union of random rings
// through all nodes, and for an odd degree a matching. In a dense mesh, where rings would share
// edges and no others are found, some nodes have one or two neighbours less, or one more.
func Mesh(nodes, degree int, seed uint64) []Edge {
	if nodes < 2 {
		return nil
	}
	if degree >= nodes-1 {
		return complete(nodes)
	}
	degree = max(degree, 2)                      // a ring, so that it is connected
	r := rand.New(rand.NewPCG(seed, 0x4d455348)) // "MESH"
	m := mesher{nodes: nodes, taken: make([]bool, nodes*nodes)}
	for range degree / 2 {
		m.ring(r)
	}
	if degree%2 == 1 {
		m.matching(r)
	}
	m.fill(degree)
	return m.edges
}

// fill adds edges to nodes that miss more than two, which those of a dense mesh may: nearly every edge of its last rings is taken.
func (m *mesher) fill(degree int) {
	count := make([]int, m.nodes)
	for _, e := range m.edges {
		count[e.Owner]++
		count[e.Peer]++
	}
	for a := range m.nodes {
		for count[a] < degree-2 {
			least := -1
			for b := range m.nodes {
				if b != a && !m.taken[a*m.nodes+b] && (least < 0 || count[b] < count[least]) {
					least = b
				}
			}
			m.add(a, least) // there is one: the degree is less than all others
			count[a]++
			count[least]++
		}
	}
}

// complete is the mesh of all pairs; each node owns about half of its edges.
func complete(nodes int) []Edge {
	var edges []Edge
	for a := range nodes {
		for b := a + 1; b < nodes; b++ {
			e := Edge{clocksync.Node(a), clocksync.Node(b)}
			if (a+b)%2 == 1 {
				e = Edge{e.Peer, e.Owner}
			}
			edges = append(edges, e)
		}
	}
	return edges
}

type mesher struct {
	nodes int
	taken []bool
	edges []Edge
}

// tries is how often a ring without repeated edges is looked for.
const tries = 50

// ring adds a random ring; its repeated edges are left out.
func (m *mesher) ring(r *rand.Rand) {
	best, fewest := []int(nil), m.nodes+1
	for range tries {
		p := r.Perm(m.nodes)
		repeats := 0
		for i, a := range p {
			if m.taken[a*m.nodes+p[(i+1)%m.nodes]] {
				repeats++
			}
		}
		if repeats < fewest {
			best, fewest = p, repeats
		}
		if repeats == 0 {
			break
		}
	}
	m.repair(best)
	for i, a := range best {
		m.add(a, best[(i+1)%m.nodes])
	}
}

// repair swaps nodes of a ring until no edge repeats, or nothing helps.
func (m *mesher) repair(p []int) {
	n := m.nodes
	bad := func(i int) bool { return m.taken[p[(i+n)%n]*n+p[(i+1+n)%n]] }
	around := func(i int) (b int) {
		if bad(i - 1) {
			b++
		}
		if bad(i) {
			b++
		}
		return b
	}
	for i := range n {
		for j := 0; j < n && bad(i); j++ {
			k := (i + 1) % n
			before := around(k) + around(j)
			p[k], p[j] = p[j], p[k]
			if around(k)+around(j) >= before {
				p[k], p[j] = p[j], p[k]
			}
		}
	}
}

// matching adds an edge to each node, but for one if their number is odd.
func (m *mesher) matching(r *rand.Rand) {
	left := r.Perm(m.nodes)
	for len(left) > 1 {
		a := left[0]
		k := slices.IndexFunc(left[1:], func(b int) bool { return !m.taken[a*m.nodes+b] })
		if k >= 0 {
			m.add(a, left[k+1])
			left = slices.Delete(left, k+1, k+2)
		}
		left = left[1:]
	}
}

func (m *mesher) add(a, b int) {
	if a == b || m.taken[a*m.nodes+b] {
		return
	}
	m.taken[a*m.nodes+b], m.taken[b*m.nodes+a] = true, true
	m.edges = append(m.edges, Edge{clocksync.Node(a), clocksync.Node(b)})
}
