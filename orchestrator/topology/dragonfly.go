package topology

import (
	"fmt"

	"weft/internal/plural"
	"weft/params"
)

// DragonflyPlus has the sizes of a dragonfly-plus.
type DragonflyPlus struct {
	Groups         int
	Leaves, Spines int // per group
	HostsPerLeaf   int
	Detours        bool // switches that choose per packet may detour through a third group
}

// Keys implements Shape.
func (t *DragonflyPlus) Keys() []params.Key {
	return []params.Key{
		params.New("groups", params.Integer(&t.Groups, 2, maxTierSwitches), "groups"),
		params.New("leaves", params.Integer(&t.Leaves, 1, maxTierSwitches), "leaves per group"),
		params.New("spines", params.Integer(&t.Spines, 1, maxTierSwitches), "spines per group"),
		params.New("hosts_per_leaf", params.Integer(&t.HostsPerLeaf, 1, MaxHosts), "hosts per leaf"),
		params.New("detours", params.Flag(&t.Detours),
			"per-packet routing may detour through a third group when no shortest path is light").
			Default("false", "ours"),
	}
}

func (t *DragonflyPlus) detours() bool { return t.Detours }

// Hosts implements Shape.
func (t *DragonflyPlus) Hosts() int { return t.Groups * t.Leaves * t.HostsPerLeaf }

// build makes Dragonfly+ (Shpiner et al., HiPINEB 2017): groups of leaves and spines. Within a
// group each leaf is joined to each spine; between groups, spine j of each to spine j of every
// other.
func (t *DragonflyPlus) build(b *builder) error {
	b.g.Title = fmt.Sprintf("dragonfly-plus, %d groups of %d leaves of %s, %s", t.Groups, t.Leaves,
		plural.Count(t.HostsPerLeaf, "host"), plural.Count(t.Spines, "spine"))
	n := int64(t.Groups) * int64(t.Leaves) * int64(t.HostsPerLeaf)
	links := n + int64(t.Groups)*int64(t.Leaves)*int64(t.Spines) + int64(t.Spines)*int64(t.Groups)*int64(t.Groups-1)/2
	if err := checkSize(n, int64(t.Groups)*int64(t.Leaves+t.Spines), links); err != nil {
		return err
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
