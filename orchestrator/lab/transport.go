package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/params"
	"weft/transport"
)

// Transport is the transport section.
type Transport struct {
	Kind    string            // of transport.Kinds
	Section transport.Section // the parameters of that transport
}

// Keys implements params.Section.
func (t *Transport) Keys() []params.Key {
	keys := []params.Key{
		params.New("kind", params.Word(&t.Kind, transport.Kinds()...),
			"Parameters of a transport that no run uses are refused.").Default("pc4", "ours"),
	}
	for _, name := range transport.Kinds() {
		if own, path, about := transport.SectionOf(name); path == name {
			keys = append(keys, params.Sub(name, func() params.Section { return own }, about).OnceKnown())
		}
	}
	return keys
}

// transportSection returns the key of the section with the parameters of a transport.
func transportSection(kind string) string {
	_, path, _ := transport.SectionOf(kind)
	return path
}

// transport reads the section of the lab's transport. The sections of other transports are for
// other runs of the same file, which get another transport from a sweep or the command line. They
// are checked by the same rules but set nothing here. One that no run uses is a problem, as is a
// key of the command line for a transport that no run of the command uses.
func (d *decoder) transport(s *section) Transport {
	var t Transport
	s.read(&t)
	used, chosen := transportSections(d.kinds), transportSections(d.chosen)
	for _, kind := range transport.Kinds() {
		own, path, _ := transport.SectionOf(kind)
		if kind != path {
			continue
		}
		f := s.field(kind)
		if kind == transportSection(t.Kind) {
			t.Section, _, _ = transport.SectionOf(t.Kind)
			f.open().all(t.Section)
			continue
		}
		if !f.written() {
			continue
		}
		switch {
		case t.Kind == "" || f.empty():
		case !used[kind]:
			f.problem("no run of this lab uses the transport %s; leave it out, or select it with transport.kind or "+
				"a sweep of it%s", kind, within(kind, chosen))
		case !chosen[kind]:
			f.n.visit(func(n *node) {
				if n.at.flag != "" && n.kind != mapping && !n.null() {
					d.report.add(n.at, f.path, "no run of this command uses the transport %s; leave it out, or "+
						"select it with transport.kind%s", kind, within(kind, chosen))
				}
			})
		}
		d.aside++
		f.open().all(own)
		d.aside--
	}
	s.close()
	return t
}

// transportSections returns the sections of transports.
func transportSections(kinds map[string]bool) map[string]bool {
	sections := make(map[string]bool)
	for kind := range kinds {
		sections[transportSection(kind)] = true
	}
	return sections
}

// within says where a transport has its section inside those of others that were chosen, as CCM has
// one for its inner transport.
func within(kind string, chosen map[string]bool) string {
	for _, outer := range slices.Sorted(maps.Keys(chosen)) {
		own, path, _ := transport.SectionOf(outer)
		if own != nil && slices.ContainsFunc(own.Keys(), func(k params.Key) bool { return k.Name == kind }) {
			return fmt.Sprintf(". Inside %s it is transport.%s.%s", outer, path, kind)
		}
	}
	return ""
}

// transportKindsChosen returns the transports of the runs of a command: those that its sets and the
// remaining axes of the sweep leave.
func transportKindsChosen(root *node, axes []axis, sets []override) map[string]bool {
	axes = slices.DeleteFunc(slices.Clone(axes), func(a axis) bool {
		return !slices.Contains(a.names, "transport") && !slices.Contains(a.names, "transport.kind")
	})
	kinds, scratch := make(map[string]bool), newReport("")
	for _, p := range points(axes) {
		tree, _ := p.apply(scratch, root, axes)
		for _, s := range sets {
			tree = s.apply(scratch, tree)
		}
		kind := defaults["transport.kind"].text
		if n := tree.follow([]string{"transport", "kind"}); n != nil && n.kind == scalar {
			kind = n.text
		}
		kinds[kind] = true
	}
	return kinds
}

// transportKindsOf returns the transports that the runs of a lab file use: that of the file, those
// of its sweep, and those of the command line.
func transportKindsOf(root *node, sets []override) map[string]bool {
	kinds := make(map[string]bool)
	add := func(n *node) {
		if n != nil && n.kind == scalar {
			kinds[n.text] = true
		}
	}
	section := func(n *node) {
		if n == nil || n.kind != mapping || n.get("kind") == nil {
			kinds[defaults["transport.kind"].text] = true
			return
		}
		add(n.get("kind"))
	}
	section(root.at0("transport"))
	if s := root.at0("sweep"); s != nil {
		for i, k := range s.keys {
			names := pathsOf(k.name)
			for _, v := range s.items[i].items {
				values := []*node{v}
				if len(names) > 1 && len(v.items) == len(names) {
					values = v.items
				}
				for j := range values {
					switch names[j] {
					case "transport.kind":
						add(values[j])
					case "transport":
						section(values[j])
					}
				}
			}
		}
	}
	for _, set := range sets {
		switch strings.Join(set.path, ".") {
		case "transport.kind":
			add(set.value)
		case "transport":
			section(set.value)
		}
	}
	return kinds
}
