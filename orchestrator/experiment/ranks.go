package experiment

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"weft/collectives/schedule"
	"weft/internal/splitmix"
	"weft/orchestrator/lab"
	"weft/transport"
)

// ranksOf resolves the hosts of an item. root is the rank of its root, or -1.
func (x *compiler) ranksOf(it *lab.Item) ([]transport.HostID, int, error) {
	if it.Line != nil {
		return x.lineRanks(it)
	}
	root := transport.HostID(-1)
	if it.Root != "" {
		named, err := x.named([]string{it.Root})
		if err != nil {
			return nil, 0, fmt.Errorf("root: %w", err)
		}
		root = named[0]
	}
	ranks, root, err := x.chosen(it, root, it.RootApart())
	if err != nil {
		return nil, 0, err
	}
	switch facts, err := schedule.About(it.Collective, it.Algorithm); {
	case err != nil:
		return nil, 0, err
	case it.RootApart():
		return withRoot(ranks, root, x.Graph.Hosts)
	case !facts.Rooted:
		return ranks, -1, nil
	case root < 0:
		return ranks, 0, nil
	}
	if r := slices.Index(ranks, root); r >= 0 {
		return ranks, r, nil
	}
	return nil, 0, fmt.Errorf("root: %s is none of the ranks that were drawn", it.Root)
}

// withRoot appends the receiver of an incast, or a parameter server, to its senders, as the last
// rank.
func withRoot(senders []transport.HostID, root transport.HostID, hosts int) ([]transport.HostID, int, error) {
	used := make(map[transport.HostID]bool, len(senders))
	for _, h := range senders {
		used[h] = true
	}
	for h := transport.HostID(0); root < 0 && int(h) < hosts; h++ {
		if !used[h] {
			root = h
		}
	}
	if root < 0 || used[root] {
		return nil, 0, fmt.Errorf("%d senders need one more host as their receiver; the lab has %d hosts",
			len(senders), hosts)
	}
	return append(senders, root), len(senders), nil
}

// chosen returns the hosts that an item's Ranks select, and the root, which may follow from them.
// apart: the root is no rank.
func (x *compiler) chosen(
	it *lab.Item, root transport.HostID, apart bool,
) ([]transport.HostID, transport.HostID, error) {
	var ranks []transport.HostID
	switch {
	case len(it.Ranks.Names) > 0:
		var err error
		if ranks, err = x.named(it.Ranks.Names); err != nil {
			return nil, 0, fmt.Errorf("ranks: %w", err)
		}
	case it.Ranks.Random > 0:
		r := rand.New(rand.NewPCG(x.Lab.Seed, itemSeed(x.Lab.Seed, it.Index)+uint64(it.Arrival)*splitmix.Gamma))
		for _, h := range r.Perm(x.Graph.Hosts)[it.Ranks.Group*it.Ranks.Random:] {
			if len(ranks) < it.Ranks.Random && (transport.HostID(h) != root || !apart) {
				ranks = append(ranks, transport.HostID(h))
			}
		}
	default:
		if apart && it.Ranks.All && root < 0 {
			root = 0
		}
		for h := range transport.HostID(x.Graph.Hosts) {
			if (h != root || !apart) && (it.Ranks.All || len(ranks) < it.Ranks.First) {
				ranks = append(ranks, h)
			}
		}
	}
	return ranks, root, nil
}

// lineRanks resolves the hosts of a collective of a trace: a group of the trace's ranks.
func (x *compiler) lineRanks(it *lab.Item) ([]transport.HostID, int, error) {
	all, _, err := x.chosen(it, -1, false) // the ranks of a trace include every root
	if err != nil {
		return nil, 0, err
	}
	ranks := make([]transport.HostID, len(it.Line.Members))
	for r, m := range it.Line.Members {
		ranks[r] = all[m]
	}
	facts, err := schedule.About(it.Collective, it.Algorithm)
	if !facts.Rooted {
		return ranks, -1, err
	}
	return ranks, it.Line.Root, err
}

// itemName returns the name of an item in messages.
func itemName(it *lab.Item) string {
	name := fmt.Sprintf("item %d", it.Index)
	if it.Ranks.Groups > 0 {
		name += fmt.Sprintf(", group %d", it.Ranks.Group)
	}
	if it.Arrivals > 0 {
		name += fmt.Sprintf(", arrival %d", it.Arrival)
	}
	if l := it.Line; l != nil {
		name += fmt.Sprintf(", step %d, collective %d", l.Step, l.Number)
		if l.Name != "" {
			name += fmt.Sprintf(" (%s)", l.Name)
		}
		if l.Groups > 1 {
			name += fmt.Sprintf(", its group %d", l.Group)
		}
	}
	return name
}
