package huygens

import (
	"math/rand/v2"

	"weft/clocksync"
)

// Edge is an edge of the mesh: both ends probe, and Owner computes.
type Edge struct {
	Owner, Peer clocksync.Node
}

// Mesh returns the edges of a connected mesh of nodes, in which each node has degree neighbours, at least two: all others
// when there are no more. Where both numbers are odd one node has one less, since every edge has two ends. It is a function of its
// arguments, so that every node knows the same mesh: a ring through all nodes in random order, chords of that ring, and then the ends of
// random pairs of chords exchanged, which leaves every degree as it is. Each node owns half of its edges, or one more or less.
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
	order []int // of the ring
	taken []bool
	edges []Edge
}

// chord adds the edge from place i of the ring to the one span further.
func (m *mesher) chord(i, span int) {
	e := Edge{clocksync.Node(m.order[i]), clocksync.Node(m.order[(i+span)%m.nodes])}
	m.take(e, true)
	m.edges = append(m.edges, e)
}

func (m *mesher) take(e Edge, taken bool) {
	m.taken[int(e.Owner)*m.nodes+int(e.Peer)], m.taken[int(e.Peer)*m.nodes+int(e.Owner)] = taken, taken
}

func (m *mesher) has(e Edge) bool { return m.taken[int(e.Owner)*m.nodes+int(e.Peer)] }

// exchanges is how often each chord is tried to be exchanged for another, on average.
const exchanges = 10

// mix exchanges the peers of random pairs of chords, unless that would repeat an edge. The ring stays.
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
		m.take(*a, false)
		m.take(*b, false)
		*a, *b = x, y
		m.take(x, true)
		m.take(y, true)
	}
}
