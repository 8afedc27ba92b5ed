package topology

import (
	"fmt"
	"strconv"

	"weft/internal/plural"
	"weft/params"
)

// Clos has the sizes of a clos.
type Clos struct {
	Racks          int // computing racks
	SwitchingRacks int
	Leaves, Spines int // switches of layers 1 and 2 per computing rack
	Cores          int // switches of layer 4 per switching rack
	RacksPerPod    int // computing racks that share their switches of layer 3
	HostsPerLeaf   int
}

// Keys implements Shape.
func (t *Clos) Keys() []params.Key {
	return []params.Key{
		params.New("racks", params.Integer(&t.Racks, 1, maxTierSwitches), "computing racks (hosts, layers 1 and 2)"),
		params.New("switching_racks", params.Integer(&t.SwitchingRacks, 1, maxTierSwitches),
			"switching racks (layers 3 and 4)"),
		params.New("leaves", params.Integer(&t.Leaves, 1, maxTierSwitches), "layer-1 switches per computing rack"),
		params.New("spines", params.Integer(&t.Spines, 1, maxTierSwitches), "layer-2 switches per computing rack"),
		params.New("cores", params.Integer(&t.Cores, 1, maxTierSwitches), "layer-4 switches per switching rack"),
		params.New("racks_per_pod", params.Integer(&t.RacksPerPod, 1, maxTierSwitches),
			"computing racks that share layer-3 switches").
			Default("1", "ours: so that paths between any two computing racks use layer 4 (CCM draft, Figure 1)"),
		params.New("hosts_per_leaf", params.Integer(&t.HostsPerLeaf, 1, MaxHosts), "hosts per leaf"),
	}
}

// Rules implements params.Ruled.
func (t *Clos) Rules(r params.Rules) {
	if t.RacksPerPod > 0 && t.Racks%t.RacksPerPod != 0 {
		r.Refuse("racks_per_pod", "%d computing racks cannot be divided into pods of %d; expected a divisor", t.Racks,
			t.RacksPerPod)
	}
}

// Hosts implements Shape.
func (t *Clos) Hosts() int { return t.Racks * t.Leaves * t.HostsPerLeaf }

// build makes the fat-tree of four layers in computing and switching racks of
// draft-lyu-rtgwg-coordinated-cm, Figure 1. In a computing rack all of layer 1, l1-rack-number, is
// joined to all of layer 2; in a switching rack all of layer 3 to all of layer 4. Switch j of layer
// 2 of every computing rack is joined to one switch of layer 3 in every switching rack. The draft
// does not say which. Here pods of racks_per_pod computing racks share their switches of layer 3:
// those of the first pod are l3-rack-j, and each further pod has the next ones. So the racks of a
// pod reach each other by layer 3, and other racks by layer 4.
func (t *Clos) build(b *builder) error {
	b.g.Title = fmt.Sprintf("clos, %d computing racks of %s, %d switching racks", t.Racks,
		plural.Count(t.Leaves*t.HostsPerLeaf, "host"), t.SwitchingRacks)
	third := t.Racks / t.RacksPerPod * t.Spines // switches of layer 3 per switching rack
	n := int64(t.Racks) * int64(t.Leaves) * int64(t.HostsPerLeaf)
	switches := int64(t.Racks)*int64(t.Leaves+t.Spines) + int64(t.SwitchingRacks)*int64(third+t.Cores)
	links := n + int64(t.Racks)*int64(t.Leaves)*int64(t.Spines) +
		int64(t.Racks)*int64(t.Spines)*int64(t.SwitchingRacks) +
		int64(t.SwitchingRacks)*int64(third)*int64(t.Cores)
	if err := checkSize(n, switches, links); err != nil {
		return err
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

// numbered adds racks times n switches named prefix-rack-number, both numbers from 1, rack by rack,
// and returns the first. group is the word before the number of a rack.
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

// bipartite joins, in each rack, all switches of one layer to all of the next.
func (b *builder) bipartite(low, high NodeID, racks, lows, highs int, tier string) {
	for r := range racks {
		for i := range lows {
			for j := range highs {
				b.link(low+NodeID(r*lows+i), high+NodeID(r*highs+j), tier, b.tier(tier))
			}
		}
	}
}
