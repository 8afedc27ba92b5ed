package topology

import (
	"fmt"

	"weft/params"
)

// FatTree has the size of a fat-tree: K is the number of ports of a switch, and of pods.
type FatTree struct{ K int }

// Keys implements Shape.
func (t *FatTree) Keys() []params.Key {
	return []params.Key{params.New("k", params.Integer(&t.K, 2, 64).Even(), "k pods, (k/2)² cores, k³/4 hosts")}
}

// Rules implements params.Ruled.
func (t *FatTree) Rules(r params.Rules) {
	if t.K%2 != 0 {
		r.Refuse("k", "%d is odd; expected an even number such as %d", t.K, t.K+1)
		t.K = 0
	}
}

// Hosts implements Shape.
func (t *FatTree) Hosts() int { return t.K * t.K * t.K / 4 }

// Fit sets the size to the smallest tree with at least the given number of hosts.
func (t *FatTree) Fit(hosts int) {
	for t.K = 2; t.Hosts() < hosts; {
		t.K += 2
	}
}

// build makes the k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008, section 3.1): k
// pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k/2 hosts per edge switch.
// Aggregation switch j of every pod is joined to the cores j*k/2 to (j+1)*k/2 - 1.
func (t *FatTree) build(b *builder) error {
	k := t.K
	b.g.Title = fmt.Sprintf("fat-tree, k=%d", k)
	half := k / 2
	n := k * half * half
	if err := checkSize(int64(n), int64(5*half*half), int64(3*n)); err != nil {
		return fmt.Errorf("k is %d: %w", k, err)
	}
	hosts := b.many(n, "h", Host, "host")
	edges := b.many(k*half, "edge", Switch, "edge")
	aggs := b.many(k*half, "agg", Switch, "agg")
	cores := b.many(half*half, "core", Switch, "core")

	host, edge, core := b.tier("host"), b.tier("edge"), b.tier("core")
	for h := range n {
		b.link(hosts+NodeID(h), edges+NodeID(h/half), "host", host)
	}
	for e := range k * half {
		for j := range half {
			b.link(edges+NodeID(e), aggs+NodeID(e/half*half+j), "edge", edge)
		}
	}
	for a := range k * half {
		for j := range half {
			b.link(aggs+NodeID(a), cores+NodeID(a%half*half+j), "core", core)
		}
	}
	return nil
}
