package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/params"
)

func (s *section) nodes() []CustomNode {
	var nodes []CustomNode
	f := s.field("nodes")
	if f.n == nil {
		f.problem("missing; expected a list of nodes such as {name: h0} and {name: s0, switch: true}")
	}
	first := make(map[string]int)
	for i, item := range f.items(maxHosts + maxSwitches) {
		n := item.open()
		name := n.field("name")
		node := CustomNode{Name: name.name(), Switch: n.field("switch").flag()}
		if at, twice := first[node.Name]; twice && node.Name != "" {
			name.problem("%q is also the name of node %d; expected a name of its own", node.Name, at)
		} else {
			first[node.Name] = i
		}
		node.Image, node.Run = n.field("image").image(), n.field("run").arguments()
		if node.Switch && (node.Image != "" || node.Run != nil) {
			item.problem("a switch is modelled and runs no program; expected one on a host")
		}
		n.close()
		nodes = append(nodes, node)
	}
	return nodes
}

// imageText is the form of an image's name: registry, path, tag and digest, of which all but the path may be missing.
var imageText = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:-]*(/[a-zA-Z0-9][a-zA-Z0-9._-]*)*(:[a-zA-Z0-9._-]+)?(@sha256:[0-9a-f]{64})?$`)

// image reads the name of a container image; empty if there is none.
func (f field) image() string {
	if f.n == nil {
		return ""
	}
	name, _ := read(f, "an image such as alpine:3", func(text string) (string, error) {
		if len(text) > 255 || strings.Contains(text, "..") || !imageText.MatchString(text) {
			return "", fmt.Errorf("%q is not the name of an image; expected one such as alpine:3", params.Clip(text))
		}
		return text, nil
	}, func(v string) string { return v })
	return name
}

// Bounds of a program's arguments. Ours; the kernel's are larger.
const (
	maxArguments = 100
	maxArgument  = 4096 // bytes
)

// arguments reads a program and its arguments; nil if there is none.
func (f field) arguments() (args []string) {
	for _, item := range f.items(maxArguments) {
		arg, _ := read(item, "an argument", func(text string) (string, error) {
			if len(text) > maxArgument || strings.ContainsRune(text, 0) {
				return "", fmt.Errorf("%q is no argument; expected at most %d bytes without a zero", params.Clip(text), maxArgument)
			}
			return text, nil
		}, func(v string) string { return v })
		args = append(args, arg)
	}
	if f.n != nil && f.n.kind == list && (len(args) == 0 || args[0] == "") {
		f.problem("names no program; expected a list such as [iperf3, -s]")
	}
	return args
}

func (s *section) links(link LinkSpec) []CustomLink {
	var links []CustomLink
	f := s.field("links")
	if f.n == nil {
		f.problem("missing; expected a list of links such as {between: [h0, s0]}")
	}
	for _, item := range f.items(maxLinks) {
		l := item.open()
		var c CustomLink
		between := l.field("between")
		ends := between.items(2)
		if len(ends) == 2 {
			c.A, c.B = ends[0].name(), ends[1].name()
		} else {
			between.problem("expected the names of two nodes such as [h0, s0]")
		}
		c.LinkSpec = l.inherit(link, true)
		l.field("queues") // read by linkQueues, once the queues of the lab are known
		l.close()
		links = append(links, c)
	}
	return links
}

// checkCustom checks what the parts of a custom topology say of each other.
func (d *decoder) checkCustom(s *section, t *Topology) {
	nodes := make(map[string]CustomNode, len(t.Nodes))
	names := make([]string, len(t.Nodes))
	for i, n := range t.Nodes {
		nodes[n.Name], names[i] = n, n.Name
	}
	known := make(map[string]int) // link by its name, either end first
	items := s.field("links").items(maxLinks)
	for i, l := range t.Links {
		if l.A == "" || l.B == "" {
			continue // reported
		}
		a, okA := nodes[l.A]
		b, okB := nodes[l.B]
		between := items[i].open().field("between")
		ends := between.items(2)
		switch {
		case !okA:
			ends[0].problem("no node is named %q%s", l.A, d.nearest(l.A, names))
		case !okB:
			ends[1].problem("no node is named %q%s", l.B, d.nearest(l.B, names))
		case l.A == l.B:
			between.problem("joins %s to itself", l.A)
		case !a.Switch && !b.Switch:
			between.problem("joins two hosts; expected a switch at one end")
		}
		number := "" // package topology numbers parallel links from the second on
		for n := 2; hasKey(known, l.A+"-"+l.B+number); n++ {
			number = "#" + strconv.Itoa(n)
		}
		known[l.A+"-"+l.B+number], known[l.B+"-"+l.A+number] = i, i
	}
	d.checkUp(s, t, known)
}

// checkUp checks the names of links that are down, and that every host has one link left.
func (d *decoder) checkUp(s *section, t *Topology, known map[string]int) {
	isDown := make(map[int]bool)
	for _, f := range s.field("down").items(maxValues) {
		link, ok := known[f.n.text]
		if !ok && linkText.MatchString(f.n.text) {
			f.problem("no link is named %q; a link is named after its ends, such as h0-s0", params.Clip(f.n.text))
		}
		isDown[link] = isDown[link] || ok
	}
	up := make(map[string]int)
	for i, l := range t.Links {
		if !isDown[i] {
			up[l.A]++
			up[l.B]++
		}
	}
	for i, f := range s.field("nodes").items(maxHosts + maxSwitches) {
		if n := t.Nodes[i]; !n.Switch && n.Name != "" && up[n.Name] != 1 {
			f.problem("host %s has %d links that are not down; expected exactly one", n.Name, up[n.Name])
		}
	}
}

func hasKey[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}
