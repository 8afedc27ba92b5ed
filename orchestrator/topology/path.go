package topology

import (
	"math"
	"slices"

	"weft/units"
)

// Path returns the links from host a to host b of one shortest path, always the same one: among the
// paths with the fewest hops, the one with the smallest delay for a packet of the lab's MTU, and
// among those the one with the lowest LinkIDs, seen from the end whose switch has the lowest host.
// The path from b to a is its reverse. Where tiers are uniform, all shortest paths have equal
// delays and rates. If a equals b, there is no path.
func (g *Graph) Path(a, b NodeID) []LinkID {
	if a == b {
		return nil
	}
	r := g.routes
	hops := make([]LinkID, 1, 8)
	hops[0] = r.uplink[a]
	hops = g.between(hops, int(r.home[a]), int(r.home[b]))
	return append(hops, r.uplink[b])
}

// between appends the links from one home to another.
func (g *Graph) between(hops []LinkID, from, to int) []LinkID {
	r := g.routes
	backward := from > to
	if backward {
		from, to = to, from
	}
	start := len(hops)
	next := r.next[to*r.switches : (to+1)*r.switches]
	for n := r.homes[from]; n != r.homes[to]; {
		l := next[int(n)-g.Hosts]
		hops = append(hops, l)
		n = g.Links[l].Other(n)
	}
	if backward {
		slices.Reverse(hops[start:])
	}
	return hops
}

// Propagation returns the sum of the delays of the links of a path.
func (g *Graph) Propagation(hops []LinkID) units.Time {
	var t units.Time
	for _, l := range hops {
		t += g.Links[l].Delay
	}
	return t
}

// Rates returns the rates of the links of a path.
func (g *Graph) Rates(hops []LinkID) []units.Bandwidth {
	rates := make([]units.Bandwidth, len(hops))
	for i, l := range hops {
		rates[i] = g.Links[l].Rate
	}
	return rates
}

// Delay returns the time that a packet of size bytes on the wire takes over an idle path: every
// link's delay, and the time the packet occupies each link, because switches store and forward.
func (g *Graph) Delay(hops []LinkID, size units.Bytes) units.Time {
	var t units.Time
	for _, l := range hops {
		t += g.Links[l].Delay + g.Links[l].Rate.TransmitTime(size)
	}
	return t
}

// BaseRTT returns the base RTT of the network: the longest idle round trip between two hosts, with
// a data packet there and an acknowledgement back along Path. Sizes are bytes on the wire.
func (g *Graph) BaseRTT(data, ack units.Bytes) units.Time {
	r := g.routes
	cost := make([]units.Time, len(g.Links)) // there and back
	for i := range g.Links {
		l := &g.Links[i]
		cost[i] = 2*l.Delay + l.Rate.TransmitTime(data) + l.Rate.TransmitTime(ack)
	}
	// The most distant pair behind two switches is the most distant host of each.
	first := make([]units.Time, len(r.homes))
	second := make([]units.Time, len(r.homes)) // -1: the home has one host
	for i := range first {
		first[i], second[i] = -1, -1
	}
	for h, home := range r.home {
		switch c := cost[r.uplink[h]]; {
		case c > first[home]:
			first[home], second[home] = c, first[home]
		case c > second[home]:
			second[home] = c
		}
	}
	var longest units.Time
	hops := make([]LinkID, 0, 16)
	for a := range r.homes {
		if second[a] >= 0 {
			longest = max(longest, first[a]+second[a])
		}
		for b := a + 1; b < len(r.homes); b++ {
			t := first[a] + first[b]
			hops = g.between(hops[:0], a, b)
			for _, l := range hops {
				t += cost[l]
			}
			longest = max(longest, t)
		}
	}
	return longest
}

// Paths returns the number of equal-cost shortest paths from host a to host b, at most math.MaxInt.
func (g *Graph) Paths(a, b NodeID) int {
	if a == b {
		return 0
	}
	return g.countTo(int(g.routes.home[b]), make([]int, g.Switches()), g.Home(a))
}

// countTo counts the paths from switch n to a home. known holds the counts found so far, by switch;
// 0: none.
func (g *Graph) countTo(home int, known []int, n NodeID) int {
	r := g.routes
	if n == r.homes[home] {
		return 1
	}
	i := int(n) - g.Hosts
	if known[i] == 0 {
		for _, l := range r.groups[i][r.via[home*r.switches+i]] {
			c := g.countTo(home, known, g.Links[l].Other(n))
			if known[i] > math.MaxInt-c {
				known[i] = math.MaxInt
				break
			}
			known[i] += c
		}
	}
	return known[i]
}

// Extent describes how far hosts are from each other.
type Extent struct {
	Hops        int        // links of the longest of the shortest paths
	Paths       int        // the maximum number of equal-cost paths between two hosts
	Propagation units.Time // the maximum sum of link delays along a Path
}

// Extent compares all pairs of switches that have hosts.
func (g *Graph) Extent() Extent {
	x := Extent{Propagation: g.BaseRTT(0, 0) / 2}
	r := g.routes
	if len(r.homes) < g.Hosts { // some switch has two hosts
		x.Hops, x.Paths = 2, 1
	}
	known := make([]int, g.Switches())
	hops := make([]LinkID, 0, 16)
	for b := range r.homes {
		clear(known)
		for a := range b {
			hops = g.between(hops[:0], a, b)
			x.Hops = max(x.Hops, 2+len(hops))
			x.Paths = max(x.Paths, g.countTo(b, known, r.homes[a]))
		}
	}
	return x
}
