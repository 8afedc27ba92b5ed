package kernelpath

import "math/rand/v2"

// rounds is how often every way of a group has a share of the hash's range. Ours: with so many the shares of what another switch
// has already chosen by the same hash differ from each other by some percent.
const rounds = 16

// Shares returns the order in which equally good ways, each an index in Ports, share the range of the hash.
func (sw *Switch) Shares(ways []int) []int {
	order := spread(len(ways), sw.Seed)
	for i, w := range order {
		order[i] = ways[w]
	}
	return order
}

// spread returns the order in which equally good ways, numbered from 0, share the range of the hash: each has a share in every
// round, at a place that the switch's seed decides.
//
// The kernel gives the first part of the range to the first way, the second to the second, and before Linux 6.11 hashes alike in
// all switches (fib_multipath_hash_seed). What has come up the first of two ways then has hashes of the first half alone, and
// would find one of two ways above. With shares in an order of each switch's own, choices of switches are independent whatever
// the kernel.
func spread(ways int, seed uint64) []int {
	if ways < 2 {
		return make([]int, ways)
	}
	r := rand.New(rand.NewPCG(seed, uint64(ways)))
	all := make([]int, 0, rounds*ways)
	for range rounds {
		all = append(all, r.Perm(ways)...)
	}
	return all
}
