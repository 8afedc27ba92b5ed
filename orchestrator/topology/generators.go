package topology

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"weft/orchestrator/lab"
	"weft/units"
)

// many adds n nodes named prefix0, prefix1, ... and returns the first.
func (b *builder) many(n int, prefix string, kind Kind, tier string) NodeID {
	first := NodeID(len(b.g.Nodes))
	for i := range n {
		b.node(prefix+strconv.Itoa(i), kind, tier)
	}
	return first
}

// fatTree is the k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008, section 3.1): k pods of k/2
// edge and k/2 aggregation switches, (k/2)^2 core switches, k/2 hosts per edge switch. Aggregation switch j of
// every pod is joined to the cores j*k/2 to (j+1)*k/2 - 1.
func (b *builder) fatTree() error {
	k := b.t.K
	if k < 2 || k%2 != 0 || k > 1<<10 {
		return fmt.Errorf("fat-tree: k is %d: want an even number, at least 2", k)
	}
	b.g.Title = fmt.Sprintf("fat-tree, k=%d", k)
	if err := b.checkTiers("host", "edge", "core"); err != nil {
		return err
	}
	half := k / 2
	n := k * half * half
	if err := checkSize(int64(n), int64(5*half*half), int64(3*n)); err != nil {
		return fmt.Errorf("fat-tree: k is %d: %w", k, err)
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

// leafSpine joins every leaf to every spine. Unless the tier "leaf" gives a rate, an uplink has
//
//	hosts per leaf * host rate / (spines * oversubscription)
//
// so that the hosts of a leaf can offer oversubscription times what its uplinks carry. An oversubscription of
// 0 means 1.
func (b *builder) leafSpine() error {
	t := &b.t
	if err := errors.Join(positive("leaves", t.Leaves), positive("spines", t.Spines),
		positive("hosts per leaf", t.HostsPerLeaf), b.checkTiers("host", "leaf")); err != nil {
		return fmt.Errorf("leaf-spine: %w", err)
	}
	b.g.Title = fmt.Sprintf("leaf-spine, %d leaves of %d hosts, %d spines", t.Leaves, t.HostsPerLeaf, t.Spines)
	n := int64(t.Leaves) * int64(t.HostsPerLeaf)
	if err := checkSize(n, int64(t.Leaves+t.Spines), n+int64(t.Leaves)*int64(t.Spines)); err != nil {
		return fmt.Errorf("leaf-spine: %w", err)
	}
	host := b.tier("host")
	leaf, err := b.uplink(host.Rate)
	if err != nil {
		return fmt.Errorf("leaf-spine: %w", err)
	}
	hosts := b.many(int(n), "h", Host, "host")
	leaves := b.many(t.Leaves, "leaf", Switch, "leaf")
	spines := b.many(t.Spines, "spine", Switch, "spine")
	for h := range int(n) {
		b.link(hosts+NodeID(h), leaves+NodeID(h/t.HostsPerLeaf), "host", host)
	}
	for l := range t.Leaves {
		for s := range t.Spines {
			b.link(leaves+NodeID(l), spines+NodeID(s), "leaf", leaf)
		}
	}
	return nil
}

// uplink returns the settings of a leaf's uplinks, whose hosts have the given rate.
func (b *builder) uplink(host units.Bandwidth) (lab.LinkSpec, error) {
	s, ok := b.t.Tiers["leaf"]
	if !ok {
		s = b.t.Link
		s.Rate = 0
	}
	if s.Rate != 0 {
		return s, nil
	}
	if host <= 0 {
		return s, fmt.Errorf("the rate of host links is %v: want more than 0", host)
	}
	over := b.t.Oversubscription
	if over == 0 {
		over = 1
	}
	if !(over > 0) || math.IsInf(over, 0) {
		return s, fmt.Errorf("oversubscription is %v: want more than 0", over)
	}
	s.Rate = rateOver(b.t.HostsPerLeaf, host, b.t.Spines, over)
	if s.Rate < 1 || float64(s.Rate) > float64(units.Tbps)*1e5 {
		return s, fmt.Errorf("oversubscription is %v: the uplinks would have %v", over, s.Rate)
	}
	return s, nil
}

// dumbbell has two switches with the same number of hosts each, joined by one link of tier core: h0 and on at
// switch0, the rest at switch1.
func (b *builder) dumbbell() error {
	n := b.t.Hosts
	if err := errors.Join(positive("hosts on each side", n), b.checkTiers("host", "core")); err != nil {
		return fmt.Errorf("dumbbell: %w", err)
	}
	b.g.Title = fmt.Sprintf("dumbbell, %d hosts on each side", n)
	if err := checkSize(2*int64(n), 2, 2*int64(n)+1); err != nil {
		return fmt.Errorf("dumbbell: %w", err)
	}
	hosts := b.many(2*n, "h", Host, "host")
	left := b.many(2, "switch", Switch, "switch")
	for h := range 2 * n {
		b.link(hosts+NodeID(h), left+NodeID(h/n), "host", b.tier("host"))
	}
	b.link(left, left+1, "core", b.tier("core"))
	return nil
}

// star has one switch.
func (b *builder) star() error {
	n := b.t.Hosts
	if err := errors.Join(positive("hosts", n), b.checkTiers("host")); err != nil {
		return fmt.Errorf("star: %w", err)
	}
	b.g.Title = fmt.Sprintf("star, %d hosts", n)
	if err := checkSize(int64(n), 1, int64(n)); err != nil {
		return fmt.Errorf("star: %w", err)
	}
	hosts := b.many(n, "h", Host, "host")
	sw := b.node("switch0", Switch, "switch")
	for h := range n {
		b.link(hosts+NodeID(h), sw, "host", b.tier("host"))
	}
	return nil
}

// custom takes nodes and links as the lab lists them: hosts in their order, then switches in theirs. A link
// runs from its host to its switch, and between switches as it is written.
func (b *builder) custom() error {
	hosts := 0
	for _, n := range b.t.Nodes {
		if !n.Switch {
			hosts++
		}
	}
	b.g.Title = fmt.Sprintf("custom, %d hosts, %d switches", hosts, len(b.t.Nodes)-hosts)
	if err := checkSize(int64(hosts), int64(len(b.t.Nodes)-hosts), int64(len(b.t.Links))); err != nil {
		return fmt.Errorf("custom: %w", err)
	}
	for _, kind := range []Kind{Host, Switch} {
		for _, n := range b.t.Nodes {
			if n.Name == "" {
				return errors.New("custom: a node has no name")
			}
			if n.Switch == (kind == Switch) {
				b.node(n.Name, kind, kind.String())
			}
		}
	}
	for _, l := range b.t.Links {
		b.customLink(l)
	}
	if len(b.errs) > 0 {
		return fmt.Errorf("custom: %w", errors.Join(b.errs...))
	}
	return nil
}

func (b *builder) customLink(l lab.CustomLink) {
	from, okA := b.g.nodes[l.A]
	to, okB := b.g.nodes[l.B]
	switch {
	case !okA:
		b.fail("link %s-%s: no node is named %q", l.A, l.B, l.A)
		return
	case !okB:
		b.fail("link %s-%s: no node is named %q", l.A, l.B, l.B)
		return
	case from == to:
		b.fail("link %s-%s joins a node to itself", l.A, l.B)
		return
	}
	if _, ok := b.g.links[l.B+"-"+l.A]; ok {
		from, to = to, from // parallel to one that is there: run the same way
	}
	a, z := b.g.Nodes[from].Kind, b.g.Nodes[to].Kind
	if a == Switch && z == Host {
		from, to = to, from
	}
	tier := "switch"
	if a == Host || z == Host {
		tier = "host"
	}
	if l.Rate == 0 {
		l.Rate = b.t.Link.Rate
	}
	b.link(from, to, tier, l.LinkSpec)
}
