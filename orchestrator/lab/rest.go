package lab

import (
	"slices"
	"strconv"
	"strings"

	"weft/params"
)

// Rest is the part of a file with problems that is still sound, so that later stages can report
// what else is wrong with it.
type Rest struct {
	Labs []*Lab // without all values that have a problem; nil if nothing is left to judge

	// Network reports whether the shape of the network is known. If not, only names in expectations
	// can be judged.
	Network bool

	gone []string // paths of the values that were removed
}

// RestOf removes the values that the problems found are about from a file, until Parse finds no
// more.
func RestOf(file string, text []byte, opts Options, found Problems) Rest {
	const rounds = 8 // removing a value may make what holds it a problem of the next round
	if len(found) > maxProblems {
		return Rest{}
	}
	r := newReport(file)
	sets := opts.overrides(r)
	root := load(r, text, func(line, column int) origin { return origin{line: line, column: column} })
	if root == nil || root.kind != mapping {
		return Rest{}
	}
	c := cutter{gone: map[string]bool{}}
	for range rounds {
		c.at = places(found)
		root = standIns(root, found)
		sets = slices.DeleteFunc(sets, func(s override) bool {
			if c.at[s.at.place()] {
				c.gone[strings.Join(s.path, ".")] = true
			}
			return c.at[s.at.place()]
		})
		root = c.inside(root, "")
		r = newReport(file)
		labs := decode(r, root, sets, opts, nil)
		rest := Rest{Labs: labs, Network: root.get("topology") != nil}
		for path := range c.gone {
			rest.gone = append(rest.gone, path)
			rest.Network = rest.Network && !shapes(path)
		}
		if !slices.ContainsFunc(r.found, func(p Problem) bool { return p.Path != "topology" || rest.Network }) {
			return rest
		}
		found = r.found
	}
	return Rest{}
}

// standIns adds the keys that a lab needs and that change nothing else: weft and name.
func standIns(root *node, found Problems) *node {
	for _, p := range found {
		if p.Path == "name" || p.Path == "weft" {
			value := map[string]string{"name": "lab", "weft": formatVersion}[p.Path]
			root, _ = root.with([]string{p.Path}, &node{text: value, plain: true}, origin{}) // a key of a mapping
		}
	}
	return root
}

// cutter removes what is at certain places from a tree.
type cutter struct {
	at   map[place]bool
	gone map[string]bool // paths of the removed nodes
}

// cut returns n, which is at path, without the nodes at the places; nil if n is at one.
func (c *cutter) cut(n *node, path string) *node {
	if c.at[n.at.place()] && n.at != (origin{}) {
		c.gone[path] = true
		return nil
	}
	return c.inside(n, path)
}

// inside returns n without the values that are at the places. Items of lists leave a hole, so that
// those after them keep their index.
func (c *cutter) inside(n *node, path string) *node {
	if len(n.items) == 0 {
		return n
	}
	edited := *n
	edited.keys, edited.items = nil, nil
	for i, item := range n.items {
		if n.kind == list {
			switch left := c.cut(item, join(path, strconv.Itoa(i))); {
			case left != nil:
				edited.items = append(edited.items, left)
			case !strings.HasPrefix(path, "sweep."):
				edited.items = append(edited.items, &node{kind: hole, at: item.at})
			}
			continue
		}
		k := n.keys[i]
		if c.at[k.at.place()] && k.at != (origin{}) {
			c.gone[join(path, k.name)] = true
		} else if left := c.cut(item, join(path, k.name)); left != nil {
			edited.keys, edited.items = append(edited.keys, k), append(edited.items, left)
		}
	}
	return &edited
}

// shapes reports whether the hosts and links of a network depend on the value at a path.
func shapes(path string) bool {
	section, rest, _ := strings.Cut(path, ".")
	key, _, _ := strings.Cut(rest, ".")
	others := []string{"link", "tiers", "mtu", "oversubscription", "routes", "detours"}
	return section == "topology" && !slices.Contains(others, key)
}

// follows lists, for each section, the other sections that a problem with its values may follow
// from.
var follows = map[string][]string{
	"queues":     {"topology", "transport"},
	"clocks":     {"topology", "faults"},
	"transport":  {"topology", "queues", "clocks", "workload", "faults"},
	"workload":   {"topology", "transport", "queues"},
	"faults":     {"topology", "clocks"},
	"measure":    {"topology"},
	"report":     {"measure"},
	"topology":   {"queues", "transport", "faults"},
	"background": {"topology"},
	"engine":     {"topology", "queues", "clocks", "background", "transport", "workload", "faults", "measure"},
}

// Sound reports whether a problem of a later stage is real, and does not just follow from what was
// removed.
func (r *Rest) Sound(p Problem) bool {
	section, rest, _ := strings.Cut(p.Path, ".")
	if p.Path == "" {
		section = "engine" // it may follow from anything
	}
	_, key := parentOf(p.Path)
	names := section == "faults" && slices.Contains([]string{"link", "host", "toward"}, key) || section == "measure"
	item, _, _ := strings.Cut(rest, ".")
	for _, gone := range r.gone {
		other, inner, _ := strings.Cut(gone, ".")
		number, _, _ := strings.Cut(inner, ".")
		switch {
		case other == "sweep" || other == section && params.Digits(item) && params.Digits(number) && item != number:
		case other == section || !names && slices.Contains(follows[section], other):
			return false
		}
	}
	return true
}

// Has reports whether the value at a path of the file is still there, with all that it holds.
func (r *Rest) Has(path string) bool {
	return !slices.ContainsFunc(r.gone, func(gone string) bool {
		return gone == path || strings.HasPrefix(path, gone+".") || strings.HasPrefix(gone, path+".")
	})
}
