package topology

import (
	"fmt"
	"slices"

	"weft/units"
)

// Routes holds, for every switch and destination host, the links on which a packet may leave to
// reach the host in the fewest hops. Links that lead to the same destinations form a group, and a
// switch has each group once. The tables are computed once for each switch with hosts; its hosts
// share them.
type Routes struct {
	hosts    int
	switches int
	home     []int32  // per host: index in homes of the switch it is attached to
	uplink   []LinkID // per host: its link
	homes    []NodeID // switches that have hosts, by their lowest host

	groups    [][][]LinkID // per switch, from 0
	hostGroup []int32      // per host: its group at its home
	via       []int32      // [home][switch]: group towards the home; -1 at the home itself and without a path
	next      []LinkID     // [home][switch]: link of the path of smallest delay; -1 as in via
	asides    []int32      // [home][switch]: group of detours; -1: none; nil: the graph has none
}

// Routes returns every equal-cost shortest route of the graph, computed by Build.
func (g *Graph) Routes() *Routes { return g.routes }

// Groups returns the groups of switch sw: sets of links, each by LinkID. Do not modify them.
func (r *Routes) Groups(sw NodeID) [][]LinkID { return r.groups[int(sw)-r.hosts] }

// Group returns the index in Groups(sw) of the group towards host, or -1 if no path leads there.
func (r *Routes) Group(sw, host NodeID) int32 {
	home := r.home[host]
	if r.homes[home] == sw {
		return r.hostGroup[host]
	}
	return r.via[int(home)*r.switches+int(sw)-r.hosts]
}

// Row returns Group(sw, host) for every host.
func (r *Routes) Row(sw NodeID) []int32 {
	row := make([]int32, r.hosts)
	for h := range row {
		row[h] = r.Group(sw, NodeID(h))
	}
	return row
}

// ToSwitches returns for each switch a row like Row's, of the groups towards every switch; -1 for
// the switch itself and without a path. It adds groups, so read Groups after it.
func (g *Graph) ToSwitches() [][]int32 {
	r := g.routes
	n := r.switches
	own := &Routes{hosts: r.hosts, switches: n, groups: r.groups}
	s := newSearch(g)
	s.r = own
	rows := make([][]int32, n)
	for i := range rows {
		rows[i] = make([]int32, n)
		s.known[i] = make(map[uint64]int32)
	}
	via, next := make([]int32, n), make([]LinkID, n)
	for to := range n {
		s.from(to, via, next)
		for at := range n {
			rows[at][to] = via[at]
		}
	}
	return rows
}

// Asides is Row for the detours of a switch; nil if the graph has none. A detour leads to a switch
// that is as far from the host as this one. Only packets that arrived on a link that is no detour
// itself may take it.
func (r *Routes) Asides(sw NodeID) []int32 {
	if r.asides == nil {
		return nil
	}
	row := make([]int32, r.hosts)
	for h := range row {
		row[h] = r.asides[int(r.home[h])*r.switches+int(sw)-r.hosts]
	}
	return row
}

// aside reports whether detours use link l. A packet that arrives on it may take no other detour.
func (g *Graph) aside(l LinkID) bool { return g.Links[l].Tier == "global" }

// Aside reports whether a packet that arrives on a link may no longer take a detour.
func (g *Graph) Aside(l LinkID) bool { return g.routes.asides != nil && g.aside(l) }

// detour finds the detours of a dragonfly-plus through a third group: from a spine over a global
// link to one that is as far from the destination.
func (g *Graph) detour() {
	r := g.routes
	s := newSearch(g)
	for sw := range r.groups { // so that existing groups are found again
		for i, links := range r.groups[sw] {
			s.group = append(s.group[:0], links...)
			s.learn(int32(sw), int32(i))
		}
	}
	r.asides = make([]int32, len(r.via))
	for i, home := range r.homes {
		s.distances(int32(int(home) - g.Hosts))
		for sw := range r.switches {
			s.group = s.group[:0]
			for _, e := range s.edges[s.start[sw]:s.start[sw+1]] {
				if g.aside(e.link) && s.dist[e.to] == s.dist[sw] && s.dist[sw] > 0 {
					s.group = append(s.group, e.link)
				}
			}
			at := i*r.switches + sw
			if r.asides[at] = -1; len(s.group) > 0 {
				r.asides[at] = s.intern(int32(sw))
			}
		}
	}
}

// learn records that s.group is group i of switch n.
func (s *search) learn(n, i int32) {
	h := s.hash()
	for {
		if _, taken := s.known[n][h]; !taken {
			break
		}
		h++
	}
	s.known[n][h] = i
}

// maxTable bounds the entries of the route tables, maxWork the links examined to fill them. Ours: a
// fat-tree with k=64 needs 1e7 and 4e8.
const (
	maxTable = 1 << 25
	maxWork  = 1 << 29
)

// route fills the tables of g.routes, which knows where the hosts are, with shortest paths or with
// up-down paths.
func (g *Graph) route(upDown bool) error {
	r := g.routes
	r.switches = g.Switches()
	if n := len(r.homes) * r.switches; n > maxTable || len(r.homes)*len(g.Links) > maxWork {
		return fmt.Errorf("%d switches with hosts, %d switches and %d links in all: too many for route tables",
			len(r.homes), r.switches, len(g.Links))
	}
	g.ownRoutes()
	s := newSearch(g)
	towards := s.from
	if upDown {
		s.rank = s.ranks()
		towards = s.upDown
	}
	for i, home := range r.homes {
		row := i * r.switches
		towards(int(home)-g.Hosts, r.via[row:row+r.switches], r.next[row:row+r.switches])
	}
	return nil
}

// ownRoutes makes empty tables, with the routes from each switch to its own hosts.
func (g *Graph) ownRoutes() {
	r := g.routes
	r.groups = make([][][]LinkID, r.switches)
	r.hostGroup = make([]int32, g.Hosts)
	for h := range g.Hosts {
		own := &r.groups[int(g.Home(NodeID(h)))-g.Hosts]
		r.hostGroup[h] = int32(len(*own))
		*own = append(*own, r.uplink[h:h+1:h+1])
	}
	r.via = make([]int32, len(r.homes)*r.switches)
	r.next = make([]LinkID, len(r.homes)*r.switches)
}

// search walks the switches of a graph outwards from one of them, breadth first. It reuses its
// storage.
type search struct {
	r     *Routes
	start []int32 // edges of switch s are [start[s], start[s+1])
	edges []edge
	dist  []int32      // hops to the home; -1: not seen yet
	best  []units.Time // smallest delay among the shortest paths to the home
	queue []int32
	group []LinkID           // of the current switch
	known []map[uint64]int32 // per switch: groups by their hash
	rank  []int32            // position of each switch from the root, for up-down routes
	last  []int32            // per switch: the group found last, since the next home's is often the same
}

// edge is a link from one switch to another.
type edge struct {
	to   int32
	link LinkID
	cost units.Time // delay and transmission of a reference packet
}

func newSearch(g *Graph) *search {
	n := g.Switches()
	s := &search{
		r: g.routes, start: make([]int32, n+1), dist: make([]int32, n), best: make([]units.Time, n),
		known: make([]map[uint64]int32, n), last: make([]int32, n),
	}
	cost := make([]units.Time, len(g.Links))
	for i := range g.Links {
		cost[i] = g.Links[i].Delay + g.Links[i].Rate.TransmitTime(g.reference)
	}
	for i := range n {
		s.known[i] = make(map[uint64]int32)
		s.last[i] = -1
		id := NodeID(g.Hosts + i)
		for _, l := range g.Adjacent[id] {
			if to := int(g.Links[l].Other(id)) - g.Hosts; to >= 0 {
				s.edges = append(s.edges, edge{to: int32(to), link: l, cost: cost[l]})
			}
		}
		s.start[i+1] = int32(len(s.edges))
	}
	return s
}

// from fills the tables towards home, a switch counted from 0.
func (s *search) from(home int, via []int32, next []LinkID) {
	for i := range s.dist {
		s.dist[i], via[i], next[i] = -1, -1, -1
	}
	s.dist[home], s.best[home] = 0, 0
	s.queue = append(s.queue[:0], int32(home))
	for head := 0; head < len(s.queue); head++ {
		n := s.queue[head]
		s.group = s.group[:0]
		nearer := s.dist[n] - 1
		for _, e := range s.edges[s.start[n]:s.start[n+1]] {
			switch s.dist[e.to] {
			case -1:
				s.dist[e.to] = nearer + 2
				s.queue = append(s.queue, e.to)
			case nearer:
				if d := s.best[e.to] + e.cost; len(s.group) == 0 || d < s.best[n] {
					s.best[n], next[n] = d, e.link
				}
				s.group = append(s.group, e.link)
			}
		}
		if n != int32(home) {
			via[n] = s.intern(n)
		}
	}
}

// hash returns a hash of s.group.
func (s *search) hash() uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, l := range s.group {
		h = (h ^ uint64(l)) * 1099511628211
	}
	return h
}

// intern returns the number of s.group among the groups of switch n, adding it if it is new.
func (s *search) intern(n int32) int32 {
	groups := s.r.groups[n]
	if i := s.last[n]; i >= 0 && slices.Equal(groups[i], s.group) {
		return i
	}
	h := s.hash()
	for { // a different group with the same hash takes the next number
		i, ok := s.known[n][h]
		if !ok {
			break
		}
		if slices.Equal(groups[i], s.group) {
			s.last[n] = i
			return i
		}
		h++
	}
	i := int32(len(groups))
	s.r.groups[n] = append(groups, slices.Clone(s.group))
	s.known[n][h], s.last[n] = i, i
	return i
}
