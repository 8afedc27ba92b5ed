package lab

import (
	"strconv"
	"strings"
)

// Bounds of the sweep section.
const (
	maxPoints = 1000
	maxWork   = 2_000_000 // points times values of the file: seconds, and hundreds of megabytes
)

// axis is one line of the sweep section: the values that a path takes in turn.
type axis struct {
	key    key
	path   []string
	values []*node
}

// sweep takes the sweep section out of root and returns its axes, less those that the command line sets.
func sweep(r *report, root *node, sets []override) (*node, []axis) {
	if root.kind != mapping || root.get("sweep") == nil {
		return root, nil
	}
	n := root.get("sweep")
	root = root.without("sweep")
	if n.kind != mapping {
		r.add(n.at, "sweep", "%s; expected paths and lists of values such as seed: [1, 2, 3]", n.what())
		return root, nil
	}
	var axes []axis
	for i, k := range n.keys {
		if a, ok := readAxis(r, root, k, n.items[i]); ok && !pinned(a, sets) {
			axes = append(axes, a)
		}
	}
	points, values := 1, root.count()
	for _, a := range axes {
		if points *= len(a.values); points > maxPoints {
			r.add(n.at, "sweep", "the cross product has more than %d points; expected fewer values", maxPoints)
			return root, nil
		}
	}
	if points*values > maxWork {
		r.add(n.at, "sweep", "%d points of a lab with %d values; expected fewer of either", points, values)
		return root, nil
	}
	return root, axes
}

func readAxis(r *report, root *node, k key, n *node) (axis, bool) {
	where := "sweep." + clip(k.name)
	path, err := splitPath(k.name)
	switch {
	case err != nil:
		r.add(k.at, where, "%v", err)
	case n.kind != list || len(n.items) == 0:
		r.add(n.at, where, "%s; expected a list of values such as [1, 2, 3]", emptyOr(n))
	case !distinct(r, where, n):
	default:
		if _, err := root.with(path, n.items[0], k.at); err != nil {
			r.add(k.at, where, "%v", err)
			return axis{}, false
		}
		a := axis{key: k, path: path}
		for _, v := range n.items {
			a.values = append(a.values, v.swept())
		}
		return a, true
	}
	return axis{}, false
}

func emptyOr(n *node) string {
	if n.kind == list {
		return "an empty list"
	}
	return n.what()
}

// distinct reports a value that is there twice: two runs of the same lab would tell nothing.
func distinct(r *report, where string, n *node) bool {
	seen := make(map[string]bool)
	for _, v := range n.items {
		text := v.String()
		if seen[text] {
			r.add(v.at, where, "%q is there twice", clip(text))
			return false
		}
		seen[text] = true
	}
	return true
}

// pinned says that the command line sets the path of a, or something that holds it.
func pinned(a axis, sets []override) bool {
	for _, s := range sets {
		if len(s.path) <= len(a.path) && strings.Join(a.path[:len(s.path)], ".") == strings.Join(s.path, ".") {
			return true
		}
	}
	return false
}

// swept returns n marked as a value of the sweep.
func (n *node) swept() *node {
	marked := *n
	marked.at.sweep = true
	marked.items = make([]*node, len(n.items))
	for i, item := range n.items {
		marked.items[i] = item.swept()
	}
	return &marked
}

// count is how many values n holds, itself included.
func (n *node) count() int {
	total := 1
	for _, item := range n.items {
		total += item.count()
	}
	return total
}

// point is one combination of the values of the axes: an index into each.
type point []int

// points lists every combination in the order of the file, the last axis moving fastest. Without axes it is
// the one empty point.
func points(axes []axis) []point {
	all := []point{{}}
	for _, a := range axes {
		var next []point
		for _, p := range all {
			for i := range a.values {
				next = append(next, append(p[:len(p):len(p)], i))
			}
		}
		all = next
	}
	return all
}

// apply returns root with the values of p, and those values by path.
func (p point) apply(r *report, root *node, axes []axis) (*node, map[string]any) {
	values := make(map[string]any, len(p))
	for i, a := range axes {
		v := a.values[p[i]]
		values[a.key.name] = v.value()
		edited, err := root.with(a.path, v, a.key.at)
		if err != nil { // an axis before this one changed what it goes through
			r.add(a.key.at, "sweep."+clip(a.key.name), "%v", err)
			continue
		}
		root = edited
	}
	return root, values
}

// value is n as a bool, int64, float64 or string.
func (n *node) value() any {
	if n.kind == scalar && n.plain {
		if n.text == "true" || n.text == "false" {
			return n.text == "true"
		}
		if v, err := strconv.ParseInt(n.text, 10, 64); err == nil {
			return v
		}
		if v, err := parseDecimal(n.text); err == nil {
			return v
		}
	}
	return n.String()
}
