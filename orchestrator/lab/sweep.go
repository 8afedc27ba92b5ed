package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/params"
	"weft/transport"
)

// Bounds of the sweep section.
const (
	maxPoints = 1000
	maxWork   = 2_000_000 // points times values of the file: seconds, and hundreds of megabytes
)

// axis is one line of the sweep section: a path and its values, or several paths that change
// together.
type axis struct {
	key    key
	names  []string   // the paths as they are written
	paths  [][]string // the paths, split
	values [][]*node  // for each point of the axis, a value for each path
}

// blocked is a line of the sweep whose path leads through a single value. That is a problem, unless
// the single value is one itself, such as transport: pc4 in place of a section.
type blocked struct {
	by            place // of the single value
	at            origin
	path, message string // of the problem, if it is one
	axis          axis
}

// sweep removes the sweep section from root and returns its axes, without those that the command
// line sets.
func sweep(r *report, root *node, sets []override) (*node, []axis, []blocked) {
	if root.kind != mapping || root.get("sweep") == nil {
		return root, nil, nil
	}
	n := root.get("sweep")
	root = root.without("sweep")
	if n.kind != mapping {
		r.add(n.at, "sweep", "%s; expected paths and lists of values such as seed: [1, 2, 3]", n.what())
		return root, nil, nil
	}
	var axes []axis
	var all []blocked
	for i, k := range n.keys {
		a, by, ok := readAxis(r, root, k, n.items[i])
		switch {
		case by != nil:
			by.axis.pin(sets)
			all = append(all, *by)
		case ok:
			if a.pin(sets); len(a.values) > 0 {
				axes = append(axes, a)
			}
		}
	}
	points, values := 1, root.count()
	for _, a := range axes {
		if points *= len(a.values); points > maxPoints {
			r.add(n.at, "sweep", "the cross product has more than %d points; expected fewer values", maxPoints)
			return root, nil, all
		}
	}
	if points*values > maxWork {
		r.add(n.at, "sweep", "%d points of a lab with %d values; expected fewer of either", points, values)
		return root, nil, all
	}
	return root, axes, all
}

// setSweep applies the command line's lines of the sweep: each replaces the line of the same name
// or is added at the end. It returns the other overrides.
func setSweep(r *report, root *node, sets []override) (*node, []override) {
	var rest []override
	for _, s := range sets {
		if s.path[0] != "sweep" {
			rest = append(rest, s)
			continue
		}
		if old := root.get("sweep"); old != nil && old.kind == mapping {
			for _, k := range old.keys {
				shared := slices.ContainsFunc(pathsOf(k.name),
					func(name string) bool { return slices.Contains(pathsOf(s.path[1]), name) })
				if k.name != s.path[1] && shared {
					r.add(s.at, "sweep."+clip.Text(s.path[1]),
						"it is swept together with others; expected all of them, as in --set 'sweep.%s=...'",
						clip.Text(k.name))
				}
			}
		}
		root = s.apply(r, root)
	}
	return root, rest
}

// readAxis reads a line: "seed: [1, 2]", or "transport.kind, topology.mtu: [[roce, 4096], [hpcc,
// 1000]]".
func readAxis(r *report, root *node, k key, n *node) (axis, *blocked, bool) {
	where := "sweep." + clip.Text(k.name)
	a := axis{key: k, names: pathsOf(k.name)}
	for _, name := range a.names {
		path, err := splitPath(name)
		if err != nil {
			r.add(k.at, where, "%v", err)
			return axis{}, nil, false
		}
		a.paths = append(a.paths, path)
	}
	if n.kind != list || len(n.items) == 0 {
		r.add(n.at, where, "%s; expected a list of values such as [1, 2, 3]", emptyOr(n))
		return axis{}, nil, false
	}
	if !distinct(r, where, n) {
		return axis{}, nil, false
	}
	for i, v := range n.items {
		values := []*node{v}
		if len(a.paths) > 1 {
			values = slices.Clone(v.items)
		}
		for k := range min(len(values), len(a.names)) {
			e := &element{fmt.Sprintf("%s[%d]", where, i), a.names[k]}
			if len(a.paths) > 1 {
				e.path += fmt.Sprintf("[%d]", k)
			}
			values[k] = values[k].swept(e)
		}
		if len(values) != len(a.paths) {
			r.add(v.at, where, "%s; expected a list of %d values, one for each of the paths, or null where the "+
				"point leaves it as it is", v.what(), len(a.paths))
			return axis{}, nil, false
		}
		a.values = append(a.values, values)
	}
	for i, path := range a.paths {
		if _, err := root.with(path, a.values[0][i], k.at); err != nil {
			if by := root.inTheWay(path); by != nil {
				return axis{}, &blocked{by.at.place(), k.at, where, err.Error(), a}, false
			}
			r.add(k.at, where, "%v", err)
			return axis{}, nil, false
		}
	}
	return a, nil, true
}

// pathsOf returns the paths of a line of the sweep section.
func pathsOf(key string) []string {
	names := strings.Split(key, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// emptyOr describes a node that should be a list of values.
func emptyOr(n *node) string {
	if n.kind == list {
		return "an empty list"
	}
	return n.what()
}

// distinct reports a value that is listed twice, because two equal runs show nothing.
func distinct(r *report, where string, n *node) bool {
	seen := make(map[string]bool)
	for _, v := range n.items {
		text := v.String()
		if seen[text] {
			r.add(v.at, where, "%q is listed twice", clip.Text(text))
			return false
		}
		seen[text] = true
	}
	return true
}

// pin removes what the command line sets from a. If several paths change together, the points
// remain that have the set value; that may be none. A value that the command line changes inside
// is changed here too, so that the names of the points tell what runs; of equal points the first
// remains.
func (a *axis) pin(sets []override) {
	for i, path := range a.paths {
		for _, s := range sets {
			switch shared := min(len(s.path), len(path)); {
			case !slices.Equal(s.path[:shared], path[:shared]):
			case len(s.path) > len(path):
				a.edit(i, s)
			default:
				a.values = slices.DeleteFunc(a.values, func(values []*node) bool {
					return len(a.paths) == 1 || len(s.path) < len(path) || values[i].String() != s.value.String()
				})
			}
		}
	}
}

// edit changes what s sets inside the values of path i.
func (a *axis) edit(i int, s override) {
	seen := make(map[string]bool)
	a.values = slices.DeleteFunc(a.values, func(values []*node) bool {
		if v, err := values[i].with(s.path[len(a.paths[i]):], s.value, s.at); err == nil { // else apply reports it
			values[i] = v
		}
		point := (&node{kind: list, items: values}).String()
		defer func() { seen[point] = true }()
		return seen[point]
	})
}

// swept returns n marked as a value of the sweep.
func (n *node) swept(e *element) *node {
	marked := *n
	marked.at.sweep = e
	marked.items = make([]*node, len(n.items))
	for i, item := range n.items {
		marked.items[i] = item.swept(e)
	}
	return &marked
}

// count returns the number of values in n, itself included.
func (n *node) count() int {
	total := 1
	for _, item := range n.items {
		total += item.count()
	}
	return total
}

// point is one combination of the values of the axes: an index into each.
type point []int

// points lists all combinations in the order of the file, with the last axis changing fastest.
// Without axes there is one empty point.
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
		for k, v := range a.values[p[i]] {
			if len(a.paths) > 1 && v.null() {
				continue // this point leaves the path as it is
			}
			values[a.names[k]] = v.value()
			edited, err := root.with(a.paths[k], v, a.key.at)
			if err != nil { // an earlier axis replaced what the path leads through
				r.add(a.key.at, "sweep."+clip.Text(a.key.name), "%v", err)
				continue
			}
			root = edited
		}
	}
	return root, values
}

// aside reports whether the axis sets nothing in runs of a transport: it has only parameters of
// other transports.
func (a *axis) aside(kind string) bool {
	own := transportSection(kind)
	return !slices.ContainsFunc(a.paths, func(path []string) bool {
		if len(path) < 3 || path[0] != "transport" || path[1] == own {
			return true
		}
		return !slices.Contains(transport.Kinds(), path[1])
	})
}

// repeating reports whether points of runs with these transports may repeat others, which only
// reading them shows.
func repeating(axes []axis, kinds map[string]bool) bool {
	for kind := range kinds {
		if slices.ContainsFunc(axes, func(a axis) bool { return a.aside(kind) }) {
			return true
		}
	}
	return false
}

// without returns values without those of axes that set nothing in runs of a transport. repeats
// reports that another point is the same run: the one with the first values of these axes.
func (p point) without(values map[string]any, axes []axis, kind string) (repeats bool) {
	for i, a := range axes {
		if !a.aside(kind) {
			continue
		}
		for _, name := range a.names {
			delete(values, name)
		}
		repeats = repeats || p[i] > 0
	}
	return repeats
}

// replaced reports what is wrong with a value of the file that every point of a sweep replaces. A
// problem that depends on another value does not count: it must occur both with all values of the
// file, and with the first point's values in place of the others.
func replaced(r *report, root *node, axes []axis, read func(*report, *node)) {
	if len(axes) == 0 {
		return
	}
	problems := func(tree *node) *report {
		scratch := newReport(r.file)
		read(scratch, tree)
		return scratch
	}
	first, _ := make(point, len(axes)).apply(newReport(r.file), root, axes)
	var own *report // of the file without its sweep
	for _, a := range axes {
		for _, path := range a.paths {
			old := root.follow(path)
			if old == nil {
				continue
			}
			tree, err := first.with(path, old, a.key.at)
			if err != nil { // another axis replaced what holds it
				continue
			}
			if own == nil {
				own = problems(root)
			}
			at := make(map[place]bool)
			old.visit(func(n *node) { at[n.at.place()] = true })
			r.copy(slices.DeleteFunc(problems(tree).found, func(p Problem) bool { return !own.seen[p] }), at)
		}
	}
}

// check reports what is wrong with the values of a blocked line. It reads them in a lab that has a
// section in place of the single value. Problems elsewhere in that lab are dropped: they may follow
// from there being no such section.
func (b *blocked) check(r *report, root *node, read func(*report, *node)) {
	tree := root
	for _, path := range b.axis.paths {
		if tree = tree.opened(path); tree == nil {
			return
		}
	}
	if n := len(b.axis.values); n > maxPoints || n*tree.count() > maxWork {
		return
	}
	for i, values := range b.axis.values {
		edited, _ := point{i}.apply(newReport(r.file), tree, []axis{b.axis})
		at := make(map[place]bool)
		for _, v := range values {
			v.visit(func(n *node) { at[n.at.place()] = true })
		}
		scratch := newReport(r.file)
		read(scratch, edited)
		r.copy(scratch.found, at)
	}
}

// opened returns n with a section in place of a single value that path leads through: transport:
// {kind: pc4} for transport: pc4. It returns nil if the value cannot mean a section.
func (n *node) opened(path []string) *node {
	pattern := ""
	for i, name := range path[:len(path)-1] {
		if pattern = join(pattern, name); params.Digits(name) {
			pattern = join(pattern[:max(0, len(pattern)-len(name)-1)], "*")
		}
		v := n.follow(path[:i+1])
		if v == nil || v.kind != scalar || v.null() {
			continue
		}
		key, ok := shorthands[pattern]
		if !ok {
			return nil
		}
		word, whole := v.text, i+2 == len(path) && path[i+1] == key // the sweep replaces the value itself
		if words := Values(join(pattern, key)); len(words) > 0 && !whole {
			if word, ok = meantValue(word, words); !ok {
				return nil
			}
		}
		section, _ := (*node)(nil).with([]string{key}, &node{text: word, plain: true, at: v.at}, v.at)
		n, _ = n.with(path[:i+1], section, v.at) // it is there
		return n
	}
	return n
}

// value returns n as a bool, int64, float64 or string.
func (n *node) value() any {
	if n.kind == scalar && n.plain {
		if n.text == "true" || n.text == "false" {
			return n.text == "true"
		}
		if v, err := strconv.ParseInt(n.text, 10, 64); err == nil {
			return v
		}
		if v, err := params.ParseDecimal(n.text); err == nil {
			return v
		}
	}
	return n.String()
}
