package fabric

import "weft/units"

// How a network is split is a function of the network alone, and not of the machine: so are the results.
const (
	leastHosts = 128 // of a network that is worth splitting: what fewer do fits a cache
	partWeight = 600 // of a part: about 64 hosts and their switches
	hostWeight = 4   // of a host, where the arrival of a packet at a port is 1
)

// leastDelay is the least lookahead that is worth the meetings.
const leastDelay = 100 * units.Nanosecond

// Partition returns a part for each node, from 0, and how many there are: 1 when the network is small, or has no lines
// that are long enough to cut.
//
// Where switches have tiers, those of the highest are taken away, and what hangs together of the rest is kept together:
// the pods of a fat-tree, the racks of a leaf-spine network. Where they have none, a switch and its hosts are. What is
// kept together is put into parts in order, and so is the highest tier.
func (c *Config) Partition() (part []int32, parts int) {
	nodes := c.Hosts + len(c.Switches)
	one := make([]int32, nodes)
	if c.Hosts < leastHosts || len(c.Switches) < 2 || c.disorderly() {
		return one, 1
	}
	groups, count := c.groups()
	weights := make([]int, count)
	for n, g := range groups {
		if n < c.Hosts {
			weights[g] += hostWeight
		}
	}
	for i := range c.Ports {
		weights[groups[c.Ports[i].To]]++
	}
	of, parts := pack(weights)
	part = make([]int32, nodes)
	for n, g := range groups {
		part[n] = of[g]
	}
	for i := range c.Ports {
		if p := &c.Ports[i]; part[p.From] != part[p.To] && p.Delay < leastDelay {
			return one, 1
		}
	}
	return part, parts
}

// pack puts groups into parts in order, each part as full as partWeight allows.
func pack(weights []int) (part []int32, parts int) {
	part = make([]int32, len(weights))
	sum := 0
	for g, w := range weights {
		if sum > 0 && sum+w > partWeight {
			parts++
			sum = 0
		}
		sum += w
		part[g] = int32(parts)
	}
	return part, parts + 1
}

// groups returns for each node which of those that are kept together it belongs to, numbered in order of their first
// nodes; each switch of the highest tier is a group, after the others.
func (c *Config) groups() (group []int32, count int) {
	levels, top := c.levels()
	cut := func(n NodeID) bool { return top > 1 && levels[n] == top }
	near := make([][]NodeID, len(levels))
	for i := range c.Ports {
		p := &c.Ports[i]
		if near[p.From] == nil {
			near[p.From] = make([]NodeID, 0, 4)
		}
		near[p.From] = append(near[p.From], p.To)
	}
	group = make([]int32, len(levels))
	for n := range group {
		group[n] = -1
	}
	var stack []NodeID
	join := func(n NodeID) {
		if group[n] < 0 && !cut(n) {
			group[n] = int32(count)
			stack = append(stack, n)
		}
	}
	for n := range group {
		if join(NodeID(n)); len(stack) == 0 {
			continue
		}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, to := range near[at] {
				if top > 1 || c.isHost(at) || c.isHost(to) {
					join(to)
				}
			}
		}
		count++
	}
	for n := range group {
		if group[n] < 0 {
			group[n] = int32(count)
			count++
		}
	}
	return group, count
}

// levels returns how many links each node is from the nearest host, and the most of these.
func (c *Config) levels() (levels []int, top int) {
	levels = make([]int, c.Hosts+len(c.Switches))
	for n := range levels {
		if n >= c.Hosts {
			levels[n] = -1
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range c.Ports {
			p := &c.Ports[i]
			if from := levels[p.From]; from == top && levels[p.To] < 0 {
				levels[p.To] = top + 1
				changed = true
			}
		}
		if changed {
			top++
		}
	}
	return levels, top
}
