package kernelpath

import "math/rand/v2"

// rounds is the number of shares of the hash's range that each path of a group gets. Our own value:
// packets that another switch already selected by the same hash then differ by a few percent
// between paths.
const rounds = 16

// Shares returns the order in which equal paths, given as indices in Ports, share the range of the
// hash. If BPF programs choose instead (chosen), the hash is for what starts at the switch, and
// each path has one share.
func (sw *Switch) Shares(paths []int, chosen bool) []int {
	if chosen {
		return paths
	}
	order := spread(len(paths), sw.Seed)
	for i, w := range order {
		order[i] = paths[w]
	}
	return order
}

// spread returns the order in which equal paths, numbered from 0, share the range of the hash.
// Every path has one share in each round, at a position that depends on the switch's seed.
//
// The kernel assigns the first part of the hash's range to the first path, the second part to the
// second path. Before Linux 6.11 all switches compute the same hash (fib_multipath_hash_seed), so
// packets on the first of two paths all have hashes in the lower half and would use only one of two
// paths at the next switch. With a different order of shares per switch, the choices of switches
// are independent on every kernel.
func spread(paths int, seed uint64) []int {
	if paths < 2 {
		return make([]int, paths)
	}
	r := rand.New(rand.NewPCG(seed, uint64(paths)))
	all := make([]int, 0, rounds*paths)
	for range rounds {
		all = append(all, r.Perm(paths)...)
	}
	return all
}
