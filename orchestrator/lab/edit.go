package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/internal/clip"
)

// splitPath splits a path such as workload.0.ranks, or returns an error if it leads nowhere.
func splitPath(path string) ([]string, error) {
	parts := strings.Split(path, ".")
	if len(parts) > maxDepth {
		return nil, fmt.Errorf("the path %q is longer than %d names", clip.Text(path), maxDepth)
	}
	for _, p := range parts {
		if p == "" {
			return nil, fmt.Errorf("%q is not a path; expected names joined by dots, such as transport.kind",
				clip.Text(path))
		}
	}
	switch parts[0] {
	case "sweep":
		return nil, fmt.Errorf("a sweep is given one path at a time, with all its values: --set " +
			"'sweep.seed=[1, 2]', and another --set for another path; --set seed=1 takes a path out of the sweep")
	case "weft":
		return nil, fmt.Errorf("the version of the format cannot be set by a path; leave it out")
	}
	return parts, nil
}

// with returns n with the value at path replaced, or added if it is absent. It does not change n.
// Keys that it adds have the origin at.
func (n *node) with(path []string, value *node, at origin) (*node, error) {
	if len(path) == 0 {
		return value, nil
	}
	if n == nil || n.null() {
		n = &node{kind: mapping, at: at}
	}
	i := -1
	switch n.kind {
	case hole:
		return n, nil
	case scalar:
		return nil, fmt.Errorf("%q stands where %s would be", clip.Text(n.text), clip.Text(path[0]))
	case list:
		var err error
		if i, err = strconv.Atoi(path[0]); err != nil || i < 0 || i >= len(n.items) {
			return nil, fmt.Errorf("%q is not the number of an item, counted from 0; expected one below %d",
				clip.Text(path[0]), len(n.items))
		}
	case mapping:
		i = slices.IndexFunc(n.keys, func(k key) bool { return k.name == path[0] })
	}
	var old *node
	if i >= 0 {
		old = n.items[i]
	}
	item, err := old.with(path[1:], value, at)
	if err != nil {
		return nil, err
	}
	edited := *n
	edited.items, edited.keys = slices.Clone(n.items), slices.Clone(n.keys)
	if i >= 0 {
		edited.items[i] = item
	} else {
		edited.items = append(edited.items, item)
		edited.keys = append(edited.keys, key{path[0], at})
	}
	return &edited, nil
}

// follow returns the value at path, or nil.
func (n *node) follow(path []string) *node {
	for _, name := range path {
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return n
}

// inTheWay returns the single value that blocks path, because path leads through it, or nil.
func (n *node) inTheWay(path []string) *node {
	for _, name := range path {
		if n != nil && n.kind == scalar && !n.null() {
			return n
		}
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return nil
}

// child returns the value of a key, or the item of a list at an index, or nil.
func (n *node) child(name string) *node {
	switch {
	case n == nil:
	case n.kind == mapping:
		return n.get(name)
	case n.kind == list:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.items) {
			return n.items[i]
		}
	}
	return nil
}

// visit calls f for n and all nodes below it.
func (n *node) visit(f func(*node)) {
	f(n)
	for _, item := range n.items {
		item.visit(f)
	}
}

// without returns the mapping n without one key.
func (n *node) without(name string) *node {
	edited := *n
	edited.keys, edited.items = nil, nil
	for i, k := range n.keys {
		if k.name != name {
			edited.keys, edited.items = append(edited.keys, k), append(edited.items, n.items[i])
		}
	}
	return &edited
}
