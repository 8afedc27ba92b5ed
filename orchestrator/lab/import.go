package lab

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"weft/inputs"
	"weft/inputs/source"
	"weft/inputs/topologies"
	"weft/internal/clip"
	"weft/orchestrator/topology"
	"weft/params"
)

// imported returns the tree of a lab with topology.import replaced by what the file has: a custom
// topology whose nodes and links have the position of the import.
func (d *decoder) imported(tree *node) *node {
	section := tree.get("topology")
	if section == nil || section.kind != mapping {
		return tree
	}
	file := section.get("import")
	if file == nil {
		return tree
	}
	net := d.network(section, file)
	if net == nil {
		net = &topologies.Network{}
	}
	word := func(text string) *node { return &node{kind: scalar, at: file.at, text: text, plain: true} }
	nodes, links := &node{kind: list, at: file.at}, &node{kind: list, at: file.at}
	for _, n := range net.Nodes {
		x := mappingAt(file.at)
		x.add("name", &node{kind: scalar, at: file.at, text: n.Name})
		if n.Switch {
			x.add("switch", word("true"))
		}
		nodes.items = append(nodes.items, x)
	}
	for _, l := range net.Links {
		x, ends := mappingAt(file.at), &node{kind: list, at: file.at}
		for _, end := range []string{l.A, l.B} {
			ends.items = append(ends.items, &node{kind: scalar, at: file.at, text: end})
		}
		x.add("between", ends)
		if l.Rate > 0 {
			x.add("rate", word(l.Rate.String()))
		}
		if l.Delayed {
			x.add("delay", word(l.Delay.String()))
		}
		if l.Loss > 0 {
			x.add("loss", word(strconv.FormatFloat(l.Loss, 'f', -1, 64)))
		}
		links.items = append(links.items, x)
	}
	whole := mappingAt(section.at)
	whole.add("kind", word(topology.ListKind()))
	for i, k := range section.keys {
		if k.name != "import" && k.name != "kind" {
			whole.keys, whole.items = append(whole.keys, k), append(whole.items, section.items[i])
		}
	}
	whole.add("nodes", nodes)
	whole.add("links", links)
	root, _ := tree.with([]string{"topology"}, whole, section.at) // a key of a mapping
	return root
}

// network reads the file of an import. It returns nil if it reported a problem.
func (d *decoder) network(section, file *node) *topologies.Network {
	f := field{d: d, path: "topology.import", pattern: "topology.import", n: file, at: file.at}
	for _, name := range []string{"nodes", "links"} {
		if section.get(name) != nil {
			f.problem("given together with topology.%s; expected one of them", name)
			return nil
		}
	}
	if kind := section.get("kind"); kind != nil && kind.text != topology.ListKind() {
		f.problem("given together with kind: %s; leave kind out: what is imported is custom", clip.Text(kind.text))
		return nil
	}
	name := strings.TrimPrefix(file.text, "./")
	if file.kind != scalar || !params.LocalName(name) {
		f.problem("%q; expected a file below the lab file's folder, such as fabric.dot%s", clip.Text(name),
			params.Outside(name))
		return nil
	}
	if d.files == nil {
		f.problem("%q cannot be read here: no file goes with this lab", clip.Text(file.text))
		return nil
	}
	r, err := source.Open(d.files, name, name)
	if err == nil {
		var net *topologies.Network
		net, err = topologies.Parse(name, r)
		if err = errors.Join(err, r.Close()); err == nil {
			d.note(f.path, &net.Notes)
			return net
		}
	}
	var path *fs.PathError
	job := ""
	if errors.Is(err, topologies.ErrFormat) {
		job, _ = inputs.Detect(d.files, name) // otherwise the error above says more
	}
	switch {
	case errors.As(err, &path):
		f.problem("%s: %v", name, path.Err)
	case job != "":
		f.problem("%s is a job in the format %s; workload.trace runs it", clip.Text(name), job)
	default:
		f.problem("%v", err)
	}
	return nil
}

func mappingAt(at origin) *node { return &node{kind: mapping, at: at} }

// add adds a key to a mapping that is being built.
func (n *node) add(name string, value *node) {
	n.keys = append(n.keys, key{name, value.at})
	n.items = append(n.items, value)
}
