package lab

import (
	"fmt"

	"weft/internal/clip"
	"weft/orchestrator/topology"
	"weft/params"
)

// whichRanks describes the values of ranks.
const whichRanks = "all, a number of hosts, a list of hosts such as [h0, h3], {random: 8}, or {groups: 64, size: 32}"

// ranksKey declares ranks: all, a number (the first hosts), a list of names, or a section that
// draws them.
func (r *itemReader) ranksKey() params.Key {
	most := r.hosts.most()
	few := params.Custom(&r.few, func(text string) (fewRanks, error) {
		if !params.Digits(text) {
			return fewRanks{}, fmt.Errorf("%q is not understood; expected %s", clip.Text(text), whichRanks)
		}
		var n fewRanks
		_, err := params.Integer(&n.first, 1, most).Set(text, false)
		return n, err
	}, func(n fewRanks) string { return fmt.Sprint(n.first) }, whichRanks, params.Integer(nil, 1, most).Form).
		Bare(fmt.Sprintf("a whole number; expected a whole number from 1 to %d", most)).Or("all", fewRanks{all: true})
	names := params.ItemsOf(&r.names, topology.MaxHosts,
		func(name *string) params.Key { return params.One(r.hosts.name(name, r.d)) })
	names.Whole = true
	k := params.New("ranks", few, "all, the first N, a list in rank order, or drawn. incast, ps: the senders.").
		Default("all", "ours").
		Or(func() params.Section { r.drawn = drawnRanks{hosts: r.hosts}; return &r.drawn })
	k.Items = names
	return k
}

// ranks returns the ranks that were read. The key ranks is read before all keys that depend on it,
// so the result is worked out once.
func (r *itemReader) ranks() Ranks {
	if r.chosen != nil {
		return *r.chosen
	}
	all := Ranks{All: r.few.all, First: r.few.first, Random: r.drawn.Random, Groups: r.drawn.Groups}
	seen := map[string]bool{}
	for _, name := range r.names {
		if seen[name] {
			name = ""
		}
		seen[name] = name != ""
		all.Names = append(all.Names, name)
	}
	r.chosen = &all
	return all
}

// settleRanks rejects an empty list, a host that is listed twice, and ranks that leave no host for
// a root apart from them. A host that was reported is "" in the list, because nobody knows which
// one is meant.
func (r *itemReader) settleRanks(rules params.Rules) {
	if r.names != nil && len(r.names) == 0 {
		rules.Refuse("ranks", "an empty list; expected at least one host")
	}
	if r.Algorithm != "" && r.RootApart() && r.hosts.count > 0 && r.full() {
		rules.Refuse("ranks", "all %d hosts are senders and none is left as the root; expected fewer, or ranks: all",
			r.hosts.count)
	}
	for i, name := range r.Ranks.Names {
		if name == "" && r.names[i] != "" {
			rules.Refuse(fmt.Sprintf("ranks.%d", i), "%q is listed twice; expected each host once",
				clip.Text(r.names[i]))
		}
	}
}

// drawnRanks is a number of ranks drawn at random, or groups of them.
type drawnRanks struct {
	Random, Groups int // ranks, of each group if there are groups; the number of groups
	hosts          hosts

	random, groups, size bool // whether the key is written
}

// Prescan implements params.Prescanner.
func (d *drawnRanks) Prescan(written func(path string) (text string, ok bool)) {
	_, d.random = written("random")
	_, d.groups = written("groups")
	_, d.size = written("size")
}

// Keys implements params.Section.
func (d *drawnRanks) Keys() []params.Key {
	most := d.hosts.most()
	random := params.New("random", params.Integer(&d.Random, 1, most), "Hosts drawn with the seed.")
	size := params.New("size", params.Integer(&d.Random, 1, most), "Ranks per group.")
	random.Optional, size.Optional = d.size, d.random
	return []params.Key{
		random.Only(func() (bool, string) { return !d.groups, "given together with groups; expected one of them" }),
		params.New("groups", params.Integer(&d.Groups, 1, most), "Disjoint groups that each run the item.").OrNone(),
		size.Only(func() (bool, string) {
			return d.groups, "applies with groups; expected a selection such as {groups: 64, size: 32}, or " +
				"{random: 8}"
		}),
	}
}

// Rules implements params.Ruled.
func (d *drawnRanks) Rules(r params.Rules) {
	if n := d.hosts.count; n != 0 && d.Groups*d.Random > n {
		r.Refuse("groups", "%d groups of %d are %d ranks; the lab has %d hosts", d.Groups, d.Random,
			d.Groups*d.Random, n)
		d.Groups, d.Random = 0, 0
	}
}

// checkGroups rejects groups of a collective with a host of its own, since all groups would share
// that host.
func (r *itemReader) checkGroups(rules params.Rules) {
	if r.Ranks.Groups == 0 {
		return
	}
	if r.RootApart() {
		rules.Refuse("ranks", "all groups of %s would share one receiver; expected a workload item for each "+
			"group", r.Collective)
	}
	if r.rooted {
		rules.Refuse("root", "one host cannot be in all groups; leave it out to take the first rank of each "+
			"group")
	}
}

// count returns the number of hosts that r selects out of n, or 0 if it is not known.
func (r Ranks) count(n int) int {
	switch {
	case r.All:
		return n
	case len(r.Names) > 0:
		return len(r.Names)
	case r.Random > 0:
		return r.Random
	}
	return r.First
}

// members returns the hosts that r is known to select, besides the root of an incast. It contains
// "" if some are not known.
func (r Ranks) members(hosts hosts) map[string]bool {
	members := make(map[string]bool)
	if r.count(1) == 0 {
		members[""] = true
	}
	for _, name := range r.Names {
		members[name] = true
	}
	for i := range r.First {
		members[hosts.at(i)] = true
	}
	return members
}

// rootKey declares root. The root of an incast or a parameter server is not among the ranks, and
// defaults to the first host that is none. That of others is one of the ranks, and defaults to the
// first.
func (r *itemReader) rootKey() params.Key {
	fits := func(root string) error {
		ranks := r.ranks()
		switch members := ranks.members(r.hosts); {
		case r.Algorithm == "": // unknown whether the root is one of the ranks
		case r.RootApart() && members[root] && !r.full():
			return fmt.Errorf("%q is also one of the ranks, which are the senders; expected another host", root)
		case !r.RootApart() && ranks.Random == 0 && !ranks.All && !members[root] && !members[""]:
			return fmt.Errorf("%q is not among the ranks; expected one of them", root)
		}
		return nil
	}
	return params.New("root", r.hosts.name(&r.Root, r.d, fits),
		"Default: the first rank. incast, ps: the receiver, default the first non-rank.").OrNone().
		Following(r.defaultRoot).
		Only(func() (bool, string) {
			if r.Algorithm != "" && !r.facts.Rooted {
				return false, "applies to collectives that have one, such as broadcast and incast, not to " +
					r.Collective
			}
			return r.d == nil || r.hosts.count > 0, ""
		})
}

// full reports whether all hosts are ranks, so that none is left for a root apart from them.
func (r *itemReader) full() bool {
	ranks := r.ranks()
	return !ranks.All && ranks.count(r.hosts.count) == r.hosts.count
}

// defaultRoot returns the default root, or "" if it is only known once the ranks are drawn.
func (r *itemReader) defaultRoot() (root, source string) {
	ranks := r.ranks()
	switch {
	case r.Algorithm == "" || ranks.Random > 0 || r.RootApart() && r.full():
		return "", ""
	case r.RootApart():
		taken, free := ranks.members(r.hosts), 0
		for taken[r.hosts.at(free)] {
			free++
		}
		if ranks.All {
			return r.hosts.at(free), "the first host; all others are ranks"
		}
		return r.hosts.at(free), "the first host that is not a rank"
	case len(ranks.Names) > 0:
		return ranks.Names[0], "the first of the ranks"
	}
	return r.hosts.at(0), "the first of the ranks"
}
