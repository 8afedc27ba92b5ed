package topology

import (
	"cmp"
	"slices"
)

// ranks returns the position of each switch in the order from the root. A link goes up to its end
// with the lower rank. The root is the switch whose farthest switch is nearest.
func (s *search) ranks() []int32 {
	n := len(s.dist)
	root, least := int32(0), int32(n)
	for i := range int32(n) {
		s.distances(i)
		if far := slices.Max(s.dist); far < least {
			root, least = i, far
		}
	}
	s.distances(root)
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.dist[a], s.dist[b]) })
	rank := make([]int32, n)
	for place, i := range order {
		rank[i] = int32(place)
	}
	return rank
}

// distances fills dist with hops from a switch, -1 for those that cannot be reached.
func (s *search) distances(from int32) {
	for i := range s.dist {
		s.dist[i] = -1
	}
	s.dist[from] = 0
	s.queue = append(s.queue[:0], from)
	for head := 0; head < len(s.queue); head++ {
		n := s.queue[head]
		for _, e := range s.edges[s.start[n]:s.start[n+1]] {
			if s.dist[e.to] < 0 {
				s.dist[e.to] = s.dist[n] + 1
				s.queue = append(s.queue, e.to)
			}
		}
	}
}

// upDown fills the tables towards home, a switch counted from 0, with paths that go up and then
// down a tree, and never up again (up*/down*: Schroeder et al., Autonet, 1991). So packets never
// wait for room in a cycle, whatever the network (Dally and Seitz, 1987). The end of a link that
// is nearer to the root is up; between equals, the one with the lower number.
//
// If a path exists that only goes down, packets take the shortest of those, and otherwise the
// shortest path to a switch that has one. A packet that has begun to go down can go on down to its
// host, so a switch need not know where a packet comes from.
func (s *search) upDown(home int, via []int32, next []LinkID) {
	const far = 1 << 30
	n := len(s.dist)
	down, dist := make([]int32, n), s.dist // hops on paths that only go down, and on all
	order := make([]int32, n)              // from the root
	for i, place := range s.rank {
		order[place] = int32(i)
		down[i], via[i], next[i] = far, -1, -1
	}
	down[home], s.best[home] = 0, 0
	for place := n - 1; place >= 0; place-- { // down is towards higher ranks
		i := order[place]
		for _, e := range s.edges[s.start[i]:s.start[i+1]] {
			if s.rank[e.to] > s.rank[i] {
				down[i] = min(down[i], down[e.to]+1)
			}
		}
	}
	take := func(i int32, by func(e edge) bool) {
		s.group = s.group[:0]
		for _, e := range s.edges[s.start[i]:s.start[i+1]] {
			if !by(e) {
				continue
			}
			if d := s.best[e.to] + e.cost; len(s.group) == 0 || d < s.best[i] {
				s.best[i], next[i] = d, e.link
			}
			s.group = append(s.group, e.link)
		}
		if len(s.group) > 0 {
			via[i] = s.intern(i)
		}
	}
	for place := n - 1; place >= 0; place-- {
		if i := order[place]; i != int32(home) && down[i] < far {
			take(i, func(e edge) bool { return s.rank[e.to] > s.rank[i] && down[e.to] == down[i]-1 })
		}
	}
	for place := range n { // up is towards lower ranks
		i := order[place]
		if dist[i] = down[i]; down[i] < far {
			continue
		}
		for _, e := range s.edges[s.start[i]:s.start[i+1]] {
			if s.rank[e.to] < s.rank[i] {
				dist[i] = min(dist[i], dist[e.to]+1)
			}
		}
		if dist[i] < far {
			take(i, func(e edge) bool { return s.rank[e.to] < s.rank[i] && dist[e.to] == dist[i]-1 })
		}
	}
}
