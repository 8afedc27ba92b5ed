package huygens

import (
	"math/rand/v2"

	"weft/clocksync"
)

// Edge is an edge of the mesh: both ends probe, and Owner computes.
type Edge struct {
	Owner, Peer clocksync.Node
}

// Mesh returns the edges of a connected mesh in which each node has degree neighbours, at least two
// and at most all others. If nodes and degree are both odd, one node has one neighbour less, since
// every edge has two ends. Mesh is a function of its arguments, so that every node computes the
// same one: a ring through all nodes in random order, chords of that ring, and then random
// exchanges of the ends of two chords, which keep every degree. Each node owns half of its edges,
// plus or minus one.
func Mesh(nodes, degree int, seed uint64) []Edge {
	if nodes < 2 {
		return nil
	}
	degree = max(degree, 2) // a ring, so that it is connected
	if degree >= nodes-1 {
		return complete(nodes)
	}
	r := rand.New(rand.NewPCG(seed, 0x4d455348)) // "MESH"
	m := mesher{nodes: nodes, order: r.Perm(nodes), taken: make([]bool, nodes*nodes)}
	for span := 1; span <= degree/2; span++ {
		for i := range nodes {
			m.chord(i, span)
		}
	}
	if degree%2 == 1 { // half around: a matching
		for i := range nodes / 2 {
			m.chord(i, nodes/2)
		}
	}
	m.mix(r)
	return m.edges
}

// complete returns the mesh of all pairs; each node owns about half of its edges.
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

// mesher is a mesh in construction.
type mesher struct {
	nodes int
	order []int  // nodes around the ring
	taken []bool // by both ends: there is an edge
	edges []Edge // the ring first, then the chords
}

// chord adds the edge from position i of the ring to the position span further.
func (m *mesher) chord(i, span int) {
	e := Edge{clocksync.Node(m.order[i]), clocksync.Node(m.order[(i+span)%m.nodes])}
	m.set(e, true)
	m.edges = append(m.edges, e)
}

// set records whether there is an edge between two nodes.
func (m *mesher) set(e Edge, taken bool) {
	m.taken[int(e.Owner)*m.nodes+int(e.Peer)], m.taken[int(e.Peer)*m.nodes+int(e.Owner)] = taken, taken
}

// has reports whether there is an edge between two nodes, in either direction.
func (m *mesher) has(e Edge) bool { return m.taken[int(e.Owner)*m.nodes+int(e.Peer)] }

// exchanges is the mean number of attempted exchanges per chord. Ours.
const exchanges = 10

// mix exchanges the peers of random pairs of chords, unless that would duplicate an edge. The ring
// stays, so that the mesh is connected.
func (m *mesher) mix(r *rand.Rand) {
	chords := m.edges[m.nodes:]
	if len(chords) < 2 {
		return
	}
	for range exchanges * len(chords) {
		a, b := &chords[r.IntN(len(chords))], &chords[r.IntN(len(chords))]
		x, y := Edge{a.Owner, b.Peer}, Edge{b.Owner, a.Peer}
		if x.Owner == x.Peer || y.Owner == y.Peer || m.has(x) || m.has(y) {
			continue
		}
		m.set(*a, false)
		m.set(*b, false)
		*a, *b = x, y
		m.set(x, true)
		m.set(y, true)
	}
}
