package fabric

import (
	"fmt"
	"slices"

	"weft/units"
)

// The split of a network depends on the network alone and not on the machine, so that results do
// not either. The values are our own choice.
const (
	minHosts        = 128                 // minimum size of a network that is split: fewer hosts fit a cache
	partitionWeight = 600                 // maximum weight of a partition: about 64 hosts and their switches
	maxWeight       = 2 * partitionWeight // of a pod that is not split into racks
	hostWeight      = 4                   // weight of a host, where the arrival of a packet at a port weighs 1
	maxPartitions   = 512                 // each has a box for each other, 80 bytes
)

// minLookahead is the minimum lookahead that is worth the synchronization.
const minLookahead = 100 * units.Nanosecond

// Partition returns the partition of each node, counted from 0, and the number of partitions: 1 if
// the network is small or a link between partitions would be too short.
//
// If switches have tiers, those of the highest tier are taken away, and what then remains connected
// is kept together: the pods of a fat-tree, the racks of a leaf-spine network. If a pod is much
// larger than a partition should be, and no link in it is shorter than those to the highest tier,
// those of the second highest are taken away too: racks are kept together. Otherwise a switch
// and its hosts are kept together. These groups are put into partitions in order, and so are the
// switches of the highest tier.
func (c *Config) Partition() (part []int32, parts int) {
	nodes := c.Hosts + len(c.Switches)
	one := make([]int32, nodes)
	if c.Hosts < minHosts || len(c.Switches) < 2 || c.disorderly() {
		return one, 1
	}
	groups, weights := c.groups(1)
	if slices.Max(weights) > maxWeight {
		racks, light := c.groups(2)
		if c.between(racks) >= c.between(groups) {
			groups, weights = racks, light
		}
	}
	of, parts := pack(weights)
	part = make([]int32, nodes)
	for n, g := range groups {
		part[n] = of[g]
	}
	if c.between(part) < minLookahead {
		return one, 1
	}
	return part, parts
}

// between returns the minimum delay of a link between two groups or partitions of nodes.
func (c *Config) between(group []int32) units.Time {
	least := units.Never
	for i := range c.Ports {
		if p := &c.Ports[i]; group[p.From] != group[p.To] {
			least = min(least, p.Delay)
		}
	}
	return least
}

// Cut returns the part of each node of a network that is to be in the given number of parts, each
// in a process of its own (NewPart). The groups of Partition stay together and are dealt out in
// order, so that parts have about as many hosts; the switches of the highest tier are dealt out one
// by one. It returns an error if the network cannot be cut like this.
func (c *Config) Cut(parts int) ([]int32, error) {
	groups, weights := c.groups(1)
	count := len(weights)
	hosts := make([]int, count) // by group
	for _, g := range groups[:c.Hosts] {
		hosts[g]++
	}
	left := 0 // groups with hosts that are not dealt out
	for _, n := range hosts {
		left += min(n, 1)
	}
	if parts < 1 || left < parts {
		return nil, fmt.Errorf("the network has %d pods or racks, too few for %d parts", left,
			parts)
	}
	part := make([]int32, count)
	k, alone, before := 0, 0, 0
	for g, n := range hosts {
		if n == 0 {
			part[g] = int32(alone % parts)
			alone++
			continue
		}
		// the next part has the groups whose middle host is beyond the share of this one
		if before > 0 && k+1 < parts && (left < parts-k || (2*before+n)*parts > 2*(k+1)*c.Hosts) {
			k++
		}
		part[g] = int32(k)
		before += n
		left--
	}
	of := make([]int32, len(groups))
	for n, g := range groups {
		of[n] = part[g]
	}
	return of, c.checkSplit(of, parts)
}

// CutBy is Cut with a part for each switch. Hosts are with their switch; each part needs one.
func (c *Config) CutBy(switches []int32, parts int) ([]int32, error) {
	of := append(make([]int32, c.Hosts), switches...)
	hosts := make([]int, parts)
	for i := range c.Ports {
		if p := &c.Ports[i]; c.isHost(p.From) {
			of[p.From] = of[p.To]
		}
	}
	for _, k := range of[:c.Hosts] {
		hosts[k]++
	}
	for k, n := range hosts {
		if n == 0 {
			return nil, fmt.Errorf("part %d has no host; expected at least one in each part", k+1)
		}
	}
	return of, c.checkSplit(of, parts)
}

// Slack returns the shortest time from the moment at which a packet leaves for another part to its
// arrival there. part is the part of each node.
func (c *Config) Slack(part []int32) units.Time {
	const smallest = 64 // bytes
	least := units.Never
	for i := range c.Ports {
		if p := &c.Ports[i]; part[p.From] != part[p.To] {
			least = min(least, p.Delay+p.Rate.TransmitTime(smallest))
		}
	}
	return least
}

// Crossings returns a function that says how often a packet from one host to another leaves or
// enters each part of a network on average, if it takes each of equally short paths alike. part is
// the part of each node, below parts.
func (c *Config) Crossings(part []int32, parts int) func(src, dst HostID) []float64 {
	first := make([]NodeID, c.Hosts)
	for i := range c.Ports {
		if p := &c.Ports[i]; c.isHost(p.From) {
			first[p.From] = p.To
		}
	}
	type journey struct {
		at  NodeID
		dst HostID
	}
	known := map[journey][]float64{}
	var from func(j journey) []float64
	from = func(j journey) []float64 {
		if all, ok := known[j]; ok {
			return all
		}
		all := make([]float64, parts)
		known[j] = all
		if c.isHost(j.at) {
			return all
		}
		s := &c.Switches[int(j.at)-c.Hosts]
		if s.Route[j.dst] < 0 {
			return all
		}
		group := s.Groups[s.Route[j.dst]]
		share := 1 / float64(len(group))
		for _, port := range group {
			to := c.Ports[port].To
			for k, n := range from(journey{to, j.dst}) {
				all[k] += share * n
			}
			if a, b := part[j.at], part[to]; a != b {
				all[a] += share
				all[b] += share
			}
		}
		return all
	}
	return func(src, dst HostID) []float64 { return from(journey{first[src], dst}) }
}

// pack puts groups into partitions in order, each partition as full as partitionWeight allows, or
// fuller in a network that would have more than about maxPartitions.
func pack(weights []int) (part []int32, parts int) {
	part = make([]int32, len(weights))
	total := 0
	for _, w := range weights {
		total += w
	}
	most, sum := max(partitionWeight, total/maxPartitions), 0
	for g, w := range weights {
		if sum > 0 && sum+w > most {
			parts++
			sum = 0
		}
		sum += w
		part[g] = int32(parts)
	}
	return part, parts + 1
}

// groups returns the group of each node, the nodes that are kept together, and the weight of each
// group. Groups are numbered in the order of their first nodes; each switch of the highest tiers,
// as many as are said, is a group, after the others.
func (c *Config) groups(tiers int) (group []int32, weights []int) {
	levels, top := c.levels()
	tiers = min(tiers, top-1) // hosts stay with their switches
	cut := func(n NodeID) bool { return top > 1 && levels[n] > top-tiers }
	count := 0
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
	weights = make([]int, count)
	for _, g := range group[:c.Hosts] {
		weights[g] += hostWeight
	}
	for i := range c.Ports {
		weights[group[c.Ports[i].To]]++
	}
	return group, weights
}

// levels returns the number of links from each node to the nearest host, and the largest of these
// numbers. It is -1 for a switch that no host reaches.
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
