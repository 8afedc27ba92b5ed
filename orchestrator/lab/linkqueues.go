package lab

import (
	"fmt"
	"slices"

	"weft/fabric/queues"
)

// linkQueues reads what tiers, and links of a custom topology, override of l.Queues. network and
// lab are the sections of the topology and of the queues.
func (d *decoder) linkQueues(network, lab *section, l *Lab) {
	t := &l.Topology
	tiers := network.field("tiers")
	for _, name := range t.OwnTiers() {
		spec, tier := t.Tiers[name], tiers.open().section(name)
		tier.pattern = "topology.tiers.*"
		spec.Queues = d.override(tier.field("queues"), lab.n, l)
		t.Tiers[name] = spec
	}
	_, links := t.Drawn()
	if len(links) == 0 {
		return
	}
	for i, item := range network.field("links").items(len(links)) {
		links[i].Queues = d.override(item.open().field("queues"), lab.n, l)
	}
}

// override reads the queues of one link or tier. It returns nil if there are none. Keys that are
// left out are as in the lab's section, so it reads that section with the link's keys in place of
// its own.
func (d *decoder) override(f field, lab *node, l *Lab) *queues.Queues {
	if f.n == nil {
		return nil
	}
	d.report.mute = places(d.report.found)
	defer func() { d.report.mute = nil }()
	own := f.open()
	for _, k := range new(queues.OfLink).Keys() {
		if k.Refused != "" {
			own.refuse(k.Name, k.Refused)
		}
	}
	if own.n.at0("pfc").at0("xoff") != nil { // a fixed threshold, to which xon_offset does not apply
		lab = lab.except("pfc", "xon_offset")
	}
	q := l.Queues
	merged := &section{d: d, path: f.path, pattern: "queues", at: f.at, n: over(lab, f.n), broken: own.broken}
	read := func(key string) *keyReader { return merged.read(&q, key) }
	if b := own.field("buffer"); b.n != nil && q.Shared != nil {
		b.problem("the ports of a switch share its memory (queues.shared); leave it out, or queues.shared and " +
			"queues.pfc")
	} else if b.n != nil {
		alone := *merged
		alone.n = f.n.without("pfc").without("shared") // reported or read below
		alone.read(&q, "buffer").holds(q.Buffer, l.Topology.MTU)
	}
	if own.field("ecn").n != nil {
		q.ECN = nil
		if read("ecn"); q.ECN != nil {
			d.ecnOff = field{} // some switch ports mark
		}
	}
	if own.field("trim").n != nil {
		q.Trim = nil
		read("trim")
	}
	switch p := own.field("pfc"); {
	case p.n == nil:
	case q.PFC == nil:
		p.problem("PFC applies to the whole network, and queues.pfc is off; expected queues.pfc: " +
			"on, or no pfc here")
	case p.n.kind != mapping:
		p.problem("PFC applies to the whole network or not at all; expected thresholds of this link such as " +
			"{xoff: 200KB}")
	default:
		read("pfc")
	}
	own.close()
	return &q
}

// over returns mapping n with the keys of own in place of its own, section by section. If own turns
// a section on whose keys n has, those keys remain.
func over(n, own *node) *node {
	switch {
	case n == nil || n.kind != mapping:
		return own
	case own.kind == scalar && own.text == "on":
		return n
	case own.kind != mapping:
		return own
	}
	merged := *own
	merged.keys, merged.items = slices.Clone(own.keys), slices.Clone(own.items)
	for i, k := range n.keys {
		if j := slices.IndexFunc(own.keys, func(o key) bool { return o.name == k.name }); j >= 0 {
			merged.items[j] = over(n.items[i], own.items[j])
			continue
		}
		merged.keys, merged.items = append(merged.keys, k), append(merged.items, n.items[i])
	}
	return &merged
}

// except returns mapping n without one key of one of its sections.
func (n *node) except(name, key string) *node {
	inner := n.at0(name)
	if inner.at0(key) == nil {
		return n
	}
	edited := *n
	edited.items = slices.Clone(n.items)
	edited.items[slices.Index(n.items, inner)] = inner.without(key)
	return &edited
}

// QueuesOf returns the queues of the switch ports of a link, which the topology gives a tier and a
// number.
func (l *Lab) QueuesOf(tier string, link int) *queues.Queues {
	own := l.Topology.Tiers[tier].Queues
	if _, links := l.Topology.Drawn(); links != nil {
		own = links[link].Queues
	}
	if own == nil {
		return &l.Queues
	}
	return own
}

// QueuesPath returns the path of the value that a key of the section queues, such as "ecn.kmin",
// has for such a link: a path in the section of the link or tier if it is written there.
func (l *Lab) QueuesPath(tier string, link int, key string) string {
	own := fmt.Sprintf("topology.tiers.%s.queues.%s", tier, key)
	if _, links := l.Topology.Drawn(); links != nil {
		own = fmt.Sprintf("topology.links.%d.queues.%s", link, key)
	}
	if slices.ContainsFunc(l.Sources, func(s Source) bool { return s.Path == own }) {
		return own
	}
	return "queues." + key
}
