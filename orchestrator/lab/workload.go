package lab

import (
	"strings"

	"weft/collectives/schedule"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/units"
)

// Bounds of the workload section.
const (
	maxItems    = 1000
	maxRepeat   = 100_000
	maxFlows    = 10_000
	maxSize     = 1000 * units.GB
	maxStart    = 1000 * units.Second
	maxMessages = 1 << 26 // of one repetition of one collective, over all ranks: an all-to-all of 8192

)

func (d *decoder) workload(f field, hosts hosts) []Item {
	var items []Item
	rows := 0
	for _, item := range f.items(maxItems) {
		s := item.open()
		if s.n != nil && s.n.get("trace") != nil {
			lines := d.trace(s, item.index, hosts)
			for k := range lines {
				lines[k].Row += rows
			}
			items = append(items, lines...)
			rows = rowsOf(items)
			continue
		}
		s.field("trace")
		it, p := s.item(item.index, hosts)
		it.Row = rows
		rows++
		if p != nil {
			items = append(items, p.arrivals(it, d.seed)...)
			continue
		}
		for it.Ranks.Group = range max(1, it.Ranks.Groups) {
			items = append(items, it)
		}
	}
	return items
}

// rowsOf is how many rows the summary of a workload has.
func rowsOf(items []Item) int {
	rows := 0
	for i := range items {
		rows = max(rows, items[i].Row+1)
	}
	return rows
}

// item reads one collective, and when it arrives if it does so more than once.
func (s *section) item(index int, hosts hosts) (Item, *poisson) {
	defer s.close()
	it := Item{Index: index, Repeat: 1}
	collective := s.field("collective")
	var known bool
	it.Collective, known = collective.enum(collectives)
	var facts schedule.Facts
	it.Algorithm, facts = s.algorithm(it.Collective)
	ranks := s.field("ranks")
	it.Ranks = ranks.ranks(hosts)
	it.checkGroups(s)
	n := it.Ranks.count(hosts.count) // 0: unknown
	it.Root = s.root(&it, facts, hosts)
	if it.RootApart() && it.Ranks.All {
		n--
	}
	if n == 1 && known && !it.RootApart() {
		ranks.problem("%s of a single rank; expected at least 2", it.Collective)
	}
	s.elements(&it, facts)
	it.Size, _ = s.field("size").payloadSize(&it, facts, n)
	it.Flows = s.flows(it.Collective)
	it.Parallel = s.parallel(&it, facts)
	it.Group = s.group(&it, facts, n)
	it.FarFirst = s.farFirst(&it, facts)
	it.Shuffled = s.shuffled(&it, facts)
	it.Chunk = s.chunk(&it, facts)
	it.checkSchedule(s, facts, n)
	it.Repeat = s.field("repeat").integer(1, maxRepeat)
	it.Start, it.Previous = s.field("start").start(index)
	it.Compute, _ = quantity(s.field("compute"), units.ParseTime, 0, maxStart)
	it.Jitter, _ = quantity(s.field("jitter"), units.ParseTime, 0, maxStart)
	return it, s.poisson(&it)
}

// ranks reads which hosts take part: all, the first so many, a list of names, or so many at random.
func (f field) ranks(hosts hosts) Ranks {
	const expected = "all, a number of hosts, a list of hosts such as [h0, h3], {random: 8}, or {groups: 64, size: 32}"
	switch {
	case f.n == nil || f.n.null():
		f.problem("has no value; expected %s", expected)
	case f.n.kind == list:
		return Ranks{Names: f.names(hosts)}
	case f.n.kind == mapping:
		return f.open().drawn(hosts)
	case f.n.text == "all":
		f.record("all")
		return Ranks{All: true}
	case params.Digits(f.n.text):
		return Ranks{First: f.hostCount(hosts)}
	default:
		f.problem("%q is not understood; expected %s", params.Clip(f.n.text), expected)
	}
	return Ranks{}
}

// drawn reads ranks that are drawn: so many, or groups of a size.
func (s *section) drawn(hosts hosts) Ranks {
	defer s.close()
	random, groups, size := s.field("random"), s.field("groups"), s.field("size")
	if groups.n == nil {
		if size.n != nil {
			size.problem("the size of groups, but there are none; expected such as {groups: 64, size: 32}, or {random: 8}")
			if random.n == nil {
				return Ranks{}
			}
		}
		return Ranks{Random: random.hostCount(hosts)}
	}
	if random.n != nil {
		random.problem("given together with groups; expected one of them")
		if size.n == nil {
			groups.hostCount(hosts)
			return Ranks{}
		}
	}
	r := Ranks{Groups: groups.hostCount(hosts), Random: size.hostCount(hosts)}
	if n := hosts.count; n != 0 && r.Groups*r.Random > n {
		groups.problem("%d groups of %d are %d ranks; the lab has %d hosts", r.Groups, r.Random, r.Groups*r.Random, n)
		return Ranks{}
	}
	return r
}

// checkGroups refuses groups of what has a host of its own: it would be that of all of them.
func (it *Item) checkGroups(s *section) {
	if it.Ranks.Groups == 0 {
		return
	}
	if it.RootApart() {
		s.field("ranks").problem("groups of %s would share one receiver; expected an item of the workload for each of them", it.Collective)
	}
	if root := s.field("root"); root.written() {
		root.problem("one host cannot be in all groups; expected it to be left out: the first rank of each group")
	}
}

// hostCount reads a number of hosts. The topology limits it if it was understood.
func (f field) hostCount(hosts hosts) int {
	most := hosts.count
	if most == 0 {
		most = topology.MaxHosts
	}
	return f.integer(1, most)
}

// names reads a list of hosts. In the place of one that is reported it has "": which host is meant is not known.
func (f field) names(hosts hosts) []string {
	var names []string
	seen := make(map[string]bool)
	items := f.items(topology.MaxHosts)
	if len(items) == 0 {
		f.problem("an empty list; expected at least one host")
	}
	for _, item := range items {
		text, ok := item.text("the name of a host")
		switch {
		case !ok:
			text = ""
		case seen[text]:
			item.problem("%q is there twice; expected each host once", params.Clip(text))
			text = ""
		case hosts.count != 0 && !hosts.has(text):
			item.problem("no host is named %q%s", params.Clip(text), hosts.hint(f.d, text))
			text = ""
		}
		seen[text] = text != ""
		names = append(names, text)
	}
	f.record("[" + strings.Join(names, ", ") + "]")
	return names
}

// count is how many hosts r selects of n, 0 if that is not known.
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

// members returns the hosts that r certainly selects besides the root of an incast. It holds "" if not all of them are known.
func (r Ranks) members(hosts hosts) map[string]bool {
	members := make(map[string]bool)
	if r.count(1) == 0 {
		members[""] = true
	}
	for _, name := range r.Names {
		members[name] = true
	}
	for i := range r.First {
		members[hosts.name(i)] = true
	}
	return members
}

// start reads a time since the start of the run, or previous.
func (f field) start(index int) (units.Time, bool) {
	if f.n != nil && f.n.kind == scalar && f.n.text == "previous" {
		if index == 0 {
			f.problem("the first item of the workload has no previous one; expected a time such as 0s")
		}
		f.record("previous")
		return 0, true
	}
	at, _ := quantity(f, units.ParseTime, 0, maxStart)
	return at, false
}
