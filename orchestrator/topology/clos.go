package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// numbered adds racks times n switches named prefix-rack-number, both from 1, and returns the first: those of a rack follow
// each other. group is what a rack is called before its number.
func (b *builder) numbered(prefix, group string, racks, n int) NodeID {
	first := NodeID(len(b.g.Nodes))
	for r := range racks {
		for i := range n {
			id := b.node(prefix+"-"+strconv.Itoa(r+1)+"-"+strconv.Itoa(i+1), Switch, prefix)
			b.g.Nodes[id].Group = group + " " + strconv.Itoa(r+1)
		}
	}
	return first
}

// clos is the fat-tree of four layers in computing and switching racks of draft-lyu-rtgwg-coordinated-cm, Figure 1. In a computing
// rack all of layer 1, l1-rack-number, is joined to all of layer 2; in a switching rack all of layer 3 to all of layer 4.
// Switch j of layer 2 of every computing rack is joined to one of layer 3 in every switching rack. The draft does not say which:
// here it is l3-rack-j for the first racks_per_pod computing racks, and so many further for each pod that follows. So
// racks of a pod reach each other by layer 3, and others by layer 4.
func (b *builder) clos() error {
	t := &b.t
	if err := errors.Join(positive("racks", t.Racks), positive("switching racks", t.SwitchingRacks), positive("leaves", t.Leaves),
		positive("spines", t.Spines), positive("cores", t.Cores), positive("racks per pod", t.RacksPerPod),
		positive("hosts per leaf", t.HostsPerLeaf), b.checkTiers("host", "l1", "l2", "l3")); err != nil {
		return fmt.Errorf("clos: %w", err)
	}
	if t.Racks%t.RacksPerPod != 0 {
		return fmt.Errorf("clos: %d racks are no pods of %d", t.Racks, t.RacksPerPod)
	}
	b.g.Title = fmt.Sprintf("clos, %d computing racks of %d hosts, %d switching racks", t.Racks, t.Leaves*t.HostsPerLeaf, t.SwitchingRacks)
	third := t.Racks / t.RacksPerPod * t.Spines // of a switching rack
	n := int64(t.Racks) * int64(t.Leaves) * int64(t.HostsPerLeaf)
	switches := int64(t.Racks)*int64(t.Leaves+t.Spines) + int64(t.SwitchingRacks)*int64(third+t.Cores)
	links := n + int64(t.Racks)*int64(t.Leaves)*int64(t.Spines) + int64(t.Racks)*int64(t.Spines)*int64(t.SwitchingRacks) +
		int64(t.SwitchingRacks)*int64(third)*int64(t.Cores)
	if err := checkSize(n, switches, links); err != nil {
		return fmt.Errorf("clos: %w", err)
	}
	hosts := b.many(int(n), "h", Host, "host")
	l1 := b.numbered("l1", "computing rack", t.Racks, t.Leaves)
	l2 := b.numbered("l2", "computing rack", t.Racks, t.Spines)
	l3 := b.numbered("l3", "switching rack", t.SwitchingRacks, third)
	l4 := b.numbered("l4", "switching rack", t.SwitchingRacks, t.Cores)
	for h := range int(n) {
		b.link(hosts+NodeID(h), l1+NodeID(h/t.HostsPerLeaf), "host", b.tier("host"))
	}
	b.bipartite(l1, l2, t.Racks, t.Leaves, t.Spines, "l1")
	for r := range t.Racks {
		for j := range t.Spines {
			for s := range t.SwitchingRacks {
				b.link(l2+NodeID(r*t.Spines+j), l3+NodeID(s*third+r/t.RacksPerPod*t.Spines+j), "l2", b.tier("l2"))
			}
		}
	}
	b.bipartite(l3, l4, t.SwitchingRacks, third, t.Cores, "l3")
	return nil
}

// bipartite joins, in each of so many racks, all of one layer to all of the next.
func (b *builder) bipartite(low, high NodeID, racks, lows, highs int, tier string) {
	for r := range racks {
		for i := range lows {
			for j := range highs {
				b.link(low+NodeID(r*lows+i), high+NodeID(r*highs+j), tier, b.tier(tier))
			}
		}
	}
}

// dragonflyPlus is Dragonfly+ (Shpiner et al., HiPINEB 2017): groups of leaves and spines, all joined within a group, and spine j of
// each group to spine j of every other.
func (b *builder) dragonflyPlus() error {
	t := &b.t
	if err := errors.Join(positive("groups", t.Groups), positive("leaves", t.Leaves), positive("spines", t.Spines),
		positive("hosts per leaf", t.HostsPerLeaf), b.checkTiers("host", "leaf", "global")); err != nil {
		return fmt.Errorf("dragonfly-plus: %w", err)
	}
	b.g.Title = fmt.Sprintf("dragonfly-plus, %d groups of %d leaves of %d hosts, %d spines", t.Groups, t.Leaves, t.HostsPerLeaf, t.Spines)
	n := int64(t.Groups) * int64(t.Leaves) * int64(t.HostsPerLeaf)
	links := n + int64(t.Groups)*int64(t.Leaves)*int64(t.Spines) + int64(t.Spines)*int64(t.Groups)*int64(t.Groups-1)/2
	if err := checkSize(n, int64(t.Groups)*int64(t.Leaves+t.Spines), links); err != nil {
		return fmt.Errorf("dragonfly-plus: %w", err)
	}
	hosts := b.many(int(n), "h", Host, "host")
	leaves := b.numbered("leaf", "group", t.Groups, t.Leaves)
	spines := b.numbered("spine", "group", t.Groups, t.Spines)
	for h := range int(n) {
		b.link(hosts+NodeID(h), leaves+NodeID(h/t.HostsPerLeaf), "host", b.tier("host"))
	}
	b.bipartite(leaves, spines, t.Groups, t.Leaves, t.Spines, "leaf")
	for from := range t.Groups {
		for to := from + 1; to < t.Groups; to++ {
			for j := range t.Spines {
				b.link(spines+NodeID(from*t.Spines+j), spines+NodeID(to*t.Spines+j), "global", b.tier("global"))
			}
		}
	}
	return nil
}

// torus has its switches at the points of a grid whose rows are rings: t0-0 or t0-0-0 and on. A ring of two is one link.
func (b *builder) torus() error {
	t := &b.t
	if len(t.Dimensions) != 2 && len(t.Dimensions) != 3 {
		return fmt.Errorf("torus: %d dimensions: want 2 or 3", len(t.Dimensions))
	}
	switches, text := 1, ""
	for _, d := range t.Dimensions {
		if d < 2 || d > 64 {
			return fmt.Errorf("torus: %d switches along a dimension: want 2 to 64", d)
		}
		switches *= d
		text += "x" + strconv.Itoa(d)
	}
	if err := errors.Join(positive("hosts per switch", t.HostsPerSwitch), b.checkTiers("host", "switch")); err != nil {
		return fmt.Errorf("torus: %w", err)
	}
	each := "1 host"
	if t.HostsPerSwitch > 1 {
		each = strconv.Itoa(t.HostsPerSwitch) + " hosts"
	}
	b.g.Title = fmt.Sprintf("torus, %s, %s at each switch", text[1:], each)
	n := int64(switches) * int64(t.HostsPerSwitch)
	if err := checkSize(n, int64(switches), n+int64(switches*len(t.Dimensions))); err != nil {
		return fmt.Errorf("torus: %w", err)
	}
	b.g.Grid = slices.Clone(t.Dimensions)
	hosts := b.many(int(n), "h", Host, "host")
	first := NodeID(len(b.g.Nodes))
	for s := range switches {
		name := ""
		for _, x := range point(s, t.Dimensions) {
			name += "-" + strconv.Itoa(x)
		}
		b.node("t"+name[1:], Switch, "switch")
	}
	for h := range int(n) {
		b.link(hosts+NodeID(h), first+NodeID(h/t.HostsPerSwitch), "host", b.tier("host"))
	}
	for s := range switches {
		at := point(s, t.Dimensions)
		for d, size := range t.Dimensions {
			if size == 2 && at[d] == 1 {
				continue
			}
			x := at[d]
			at[d] = (x + 1) % size
			b.link(first+NodeID(s), first+NodeID(index(at, t.Dimensions)), "switch", b.tier("switch"))
			at[d] = x
		}
	}
	return nil
}

// point is the place of switch s in a grid; the last dimension moves fastest. index is the switch at a place.
func point(s int, dimensions []int) []int {
	at := make([]int, len(dimensions))
	for d := len(dimensions) - 1; d >= 0; d-- {
		at[d] = s % dimensions[d]
		s /= dimensions[d]
	}
	return at
}

func index(at, dimensions []int) (s int) {
	for d, x := range at {
		s = s*dimensions[d] + x
	}
	return s
}
