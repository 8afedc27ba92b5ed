package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// splitPath reads a path such as workload.0.ranks.
func splitPath(path string) ([]string, error) {
	parts := strings.Split(path, ".")
	if len(parts) > maxDepth {
		return nil, fmt.Errorf("the path %q is longer than %d names", clip(path), maxDepth)
	}
	for _, p := range parts {
		if p == "" {
			return nil, fmt.Errorf("%q is not a path; expected names joined by points, such as transport.kind", clip(path))
		}
	}
	if parts[0] == "sweep" || parts[0] == "weft" {
		return nil, fmt.Errorf("%s cannot be set by a path", parts[0])
	}
	return parts, nil
}

// with returns n with the value at path replaced, or added where it is absent; n itself is not changed. The keys
// that it adds come from at.
func (n *node) with(path []string, value *node, at origin) (*node, error) {
	if len(path) == 0 {
		return value, nil
	}
	if n == nil || n.null() {
		n = &node{kind: mapping, at: at}
	}
	i := -1
	switch n.kind {
	case scalar:
		return nil, fmt.Errorf("%q stands where %s would be", clip(n.text), clip(path[0]))
	case list:
		var err error
		if i, err = strconv.Atoi(path[0]); err != nil || i < 0 || i >= len(n.items) {
			return nil, fmt.Errorf("%q is no item of a list of %d (the first is 0)", clip(path[0]), len(n.items))
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

// without returns the mapping n less one key.
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
