package topology

import (
	"cmp"
	"slices"
)

// ranks is the place of each switch in the order from the root: a link goes up to the lower one.
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

// distances fills dist with hops from a switch. What cannot be reached is at -1.
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

// upDown fills the tables towards home, a switch counted from 0, with ways that go up and then down a tree, never up again (up*/down*:
// Schroeder et al., Autonet, 1991): so waiting for room never goes in a circle, whatever the network (Dally and Seitz, 1987). An end of a
// link is up if it is nearer to the root, the switch from which the farthest is nearest, or as near and has the lower number. Where a
// way down to the host exists packets take the shortest of those, and otherwise the shortest way to such a switch: what has
// begun to go down has a way down from there on, so a switch need not know where a packet comes from.
func (s *search) upDown(home int, via []int32, next []LinkID) {
	const far = 1 << 30
	n := len(s.dist)
	down, dist := make([]int32, n), s.dist // hops by ways that only go down, and in all
	order := make([]int32, n)              // from the root
	for i, place := range s.rank {
		order[place] = int32(i)
		down[i], via[i], next[i] = far, -1, -1
	}
	down[home], s.best[home] = 0, 0
	for place := n - 1; place >= 0; place-- { // a way down goes to higher ranks
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
	for place := range n { // a way up goes to lower ranks
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
