package lab

import (
	"weft/collectives/schedule"
	"weft/params"
)

// root reads the host that a collective is about. Of an incast and a parameter server it is not among the ranks: unless it
// is written, it is the first host that is none. Of others it is, and the first of them.
func (s *section) root(it *Item, facts schedule.Facts, hosts hosts) string {
	f := s.field("root")
	switch {
	case it.Algorithm != "" && !facts.Rooted:
		if f.written() {
			f.problem("applies to collectives that have one, such as broadcast and incast, not to %s", it.Collective)
		}
		return ""
	case hosts.count == 0 || it.Algorithm == "" && !f.written():
		return ""
	case it.Algorithm == "": // whether it is among the ranks cannot be judged
		return s.rootNamed(f, hosts, "", func(string) bool { return true })
	case it.RootApart():
		return s.rootApart(f, it, hosts)
	}
	if !f.written() {
		if it.Ranks.Random > 0 {
			return "" // known once the ranks are drawn
		}
		first := hosts.name(0)
		if len(it.Ranks.Names) > 0 {
			first = it.Ranks.Names[0]
		}
		if first == "" {
			return "" // reported
		}
		f = f.or(first, "the first of the ranks")
	}
	members := it.Ranks.members(hosts)
	return s.rootNamed(f, hosts, "%q is none of the ranks; expected one of them", func(root string) bool {
		return it.Ranks.Random > 0 || it.Ranks.All || members[root] || members[""]
	})
}

// rootNamed reads the name of a host that fits, or says why it does not.
func (s *section) rootNamed(f field, hosts hosts, otherwise string, fits func(root string) bool) string {
	root, ok := f.text("the name of a host")
	switch {
	case !ok:
		return ""
	case !hosts.has(root):
		f.problem("no host is named %q%s", params.Clip(root), hosts.hint(s.d, root))
	case !fits(root):
		f.problem(otherwise, root)
	default:
		f.record(root)
	}
	return root
}

// rootApart reads the receiver of an incast, or a parameter server.
func (s *section) rootApart(f field, it *Item, hosts hosts) string {
	full := !it.Ranks.All && it.Ranks.count(hosts.count) == hosts.count
	if full {
		s.field("ranks").problem("all %d hosts are senders; expected one to be left as the root, or ranks: all", hosts.count)
	}
	taken := it.Ranks.members(hosts)
	if !f.written() {
		if full || it.Ranks.Random > 0 {
			return "" // known once the ranks are drawn
		}
		free := 0
		for taken[hosts.name(free)] {
			free++
		}
		source := "the first host that is not a rank"
		if it.Ranks.All {
			source = "the first host; all others are ranks"
		}
		f = f.or(hosts.name(free), source)
	}
	const otherwise = "%q is also one of the ranks, which are the senders; expected another host"
	return s.rootNamed(f, hosts, otherwise, func(root string) bool { return full || !taken[root] })
}
