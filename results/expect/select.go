package expect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/results/record"
)

// A selector is one condition of a selection as written: transport=pc4, or ranks=* for all.
type selector struct {
	key, value string
	at         int
}

// anyValue is the value of a selector for all points, and noValue that for points without the key,
// as lab files write it for keys that change together.
const (
	anyValue = "*"
	noValue  = "null"
)

// addSelection parses the selection behind a name: [transport=pc4, ranks=16, seed=*].
func (n *node) addSelection(t token) error {
	if n.op != "name" {
		return errorAt(t.at, "a selection must follow a name")
	}
	inner := t.text[1 : len(t.text)-1]
	at := t.at + 1
	for _, part := range splitSelection(inner) {
		key, val, ok := strings.Cut(part, "=")
		key, val = strings.TrimSpace(key), strings.TrimSpace(val)
		if !ok || key == "" || val == "" {
			return errorAt(at, "%q selects nothing; write a key of the sweep and its value such as transport=pc4, "+
				"or seed=*", strings.TrimSpace(part))
		}
		n.pick = append(n.pick, selector{key, val, at})
		at += len(part) + 1
	}
	return nil
}

// splitSelection splits a selection at its commas, except those within a value in braces:
// down={random: 64, among: 16 leaves}.
func splitSelection(inner string) (out []string) {
	depth, begin := 0, 0
	for i, c := range inner {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			out = append(out, inner[begin:i])
			begin = i + 1
		}
	}
	return append(out, inner[begin:])
}

// isList reports whether a name stands for several points.
func (n *node) isList() bool {
	return slices.ContainsFunc(n.pick, func(s selector) bool { return s.value == anyValue })
}

// Cross reports whether the expression compares points of a sweep, that is, has a selection.
func (e *Expr) Cross() bool { return len(e.selected()) > 0 }

// selected returns the names with selections.
func (e *Expr) selected() []*node {
	return slices.DeleteFunc(e.names(), func(n *node) bool { return len(n.pick) == 0 })
}

// names returns the names in the expression.
func (e *Expr) names() (all []*node) {
	var walk func(*node)
	walk = func(n *node) {
		if n.op == "name" {
			all = append(all, n)
		}
		for _, a := range n.args {
			walk(a)
		}
	}
	walk(e.root)
	return all
}

// Measured returns the names of the summary in the expression.
func (e *Expr) Measured() (all []string) {
	for _, n := range e.names() {
		if _, measured := findEntry(n.name); measured {
			all = append(all, n.name)
		}
	}
	return all
}

// Mentioned returns the names of the summary in a line, in its order, and in its condition. It is
// empty for a line that is no expectation.
func Mentioned(line string) (all []string) {
	tokens, err := lex(line)
	if err != nil {
		return nil
	}
	for _, t := range tokens {
		if _, measured := findEntry(t.text); t.kind == nameToken && measured {
			all = append(all, t.text)
		}
	}
	return all
}

// A Point is one run of a sweep.
type Point struct {
	// At are the values of the point by path, as `weft explain` prints them.
	At map[string]string
	// Fixed are values that the command line gave all points, by path. A selection may use them
	// too, so that seed=* is the one seed that --set left.
	Fixed   map[string]string
	Summary *record.Summary // nil if the run left none
	Scope   Scope           // of its lab
}

// value returns the value of a path for selections.
func (p *Point) value(path string) (string, bool) {
	if v, ok := p.At[path]; ok {
		return v, true
	}
	v, ok := p.Fixed[path]
	return v, ok
}

// measured returns an error unless the run of the point left a summary and is ok.
func (p *Point) measured() error {
	run := strings.TrimSuffix("the run of "+pointText(p.At, nil), " of ")
	switch {
	case p.Summary == nil:
		return fmt.Errorf("%s has no summary", run)
	case p.Summary.Status != record.OK:
		return fmt.Errorf("%s is %s", run, p.Summary.Status)
	}
	return nil
}

// CheckSweep returns an *Error for a selection that no point of the sweep meets, for a name whose
// point is ambiguous, and for one that lacks a point for a combination that its line leaves open.
// It uses only At and Fixed of the points.
func (e *Expr) CheckSweep(points []Point) error {
	x, err := e.bindPoints(points)
	if err != nil {
		return err
	}
	for _, n := range e.selected() {
		for _, g := range x.groups {
			if len(x.selected(n, g)) == 0 {
				return x.nothingAt(n, g)
			}
		}
	}
	return nil
}

// nothingAt returns the error of a name that selects none of a group.
func (x *sweepEval) nothingAt(n *node, group []int) error {
	mine := x.selected(n, x.all())
	if len(mine) == 0 {
		return errorAt(n.at, "%s: no point of the sweep is selected; expected values that one point has together",
			n.name)
	}
	at := x.points[group[0]].At
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if !x.bound[path] && !slices.ContainsFunc(mine, func(i int) bool { return x.points[i].At[path] == at[path] }) {
			return errorAt(n.at, "no point that %s selects has %s=%s, as others do; expected %[2]s=... in the "+
				"selection of those", n.name, path, at[path])
		}
	}
	return errorAt(n.at, "no point that %s selects has %s", n.name, x.name(group))
}

// A sweepEval evaluates an expression over the points of a sweep.
type sweepEval struct {
	points []Point
	pick   map[*node][]condition
	bound  map[string]bool // paths in selections, and those that they imply
	groups [][]int         // indices of points that agree in all other paths
}

// A condition is a selector whose key is resolved to a path of the sweep.
type condition struct{ path, value string }

// bindPoints resolves the selections of the expression and groups the points.
func (e *Expr) bindPoints(points []Point) (*sweepEval, error) {
	x := &sweepEval{points: points, pick: map[*node][]condition{}}
	bound := map[string]bool{}
	for _, n := range e.selected() {
		for _, s := range n.pick {
			path, err := x.resolve(s)
			if err != nil {
				return nil, err
			}
			bound[path] = true
			x.pick[n] = append(x.pick[n], condition{path, s.value})
		}
	}
	if err := x.checkNames(e.root, bound); err != nil {
		return nil, err
	}
	x.bound = x.impliedPaths(bound)
	x.groupPoints()
	return x, nil
}

// impliedPaths returns the bound paths and those whose values follow from them: queues, if it
// changes together with transport.kind.
func (x *sweepEval) impliedPaths(bound map[string]bool) map[string]bool {
	all := maps.Clone(bound)
	if len(x.points) == 0 || len(bound) == 0 {
		return all
	}
	for path := range x.points[0].At {
		values := map[string]string{}
		follows := true
		for _, p := range x.points {
			var key strings.Builder
			for _, b := range slices.Sorted(maps.Keys(bound)) {
				key.WriteString(p.At[b] + "\x00")
			}
			v, ok := values[key.String()]
			follows = follows && (!ok || v == p.At[path])
			values[key.String()] = p.At[path]
		}
		if follows {
			all[path] = true
		}
	}
	return all
}

// Implied returns the paths of from and those whose values follow from them: queues.pfc follows
// from transport.kind if they change together.
func Implied(points []Point, from ...string) map[string]bool {
	bound := map[string]bool{}
	for _, path := range from {
		bound[path] = true
	}
	return (&sweepEval{points: points}).impliedPaths(bound)
}

// resolve returns the path of the sweep for a selector: its key, the kind of that section, or the
// only path that begins or ends with the key.
func (x *sweepEval) resolve(s selector) (string, error) {
	paths := map[string]bool{}
	add := func(values map[string]string) {
		for path := range values {
			if path == s.key || strings.HasPrefix(path, s.key+".") || strings.HasSuffix(path, "."+s.key) {
				paths[path] = true
			}
		}
	}
	for _, p := range x.points {
		add(p.At)
	}
	if len(paths) == 0 {
		for _, p := range x.points {
			add(p.Fixed)
		}
	}
	for _, exact := range []string{s.key, s.key + ".kind"} {
		if paths[exact] {
			paths = map[string]bool{exact: true}
			break
		}
	}
	found := slices.Sorted(maps.Keys(paths))
	values := map[string]bool{}
	for _, p := range x.points {
		if v, ok := p.value(append(found, "")[0]); ok {
			values[v] = true
		} else {
			values[noValue] = true
		}
	}
	switch {
	case len(found) == 0:
		return "", errorAt(s.at, "the sweep does not vary %q", s.key)
	case len(found) > 1:
		return "", errorAt(s.at, "%q may be %s; write it in full", s.key, strings.Join(found, " or "))
	case s.value != anyValue && !values[s.value]:
		return "", errorAt(s.at, "no point has %s=%s; there are %s", found[0], s.value,
			strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	default:
		return found[0], nil
	}
}

// checkNames returns an error for a name without a selector that other names in the expression
// have, if its points differ in that.
func (x *sweepEval) checkNames(n *node, bound map[string]bool) error {
	if _, measured := findEntry(n.name); n.op == "name" && measured {
		have := map[string]bool{}
		for _, c := range x.pick[n] {
			have[c.path] = true
		}
		for _, path := range slices.Sorted(maps.Keys(bound)) {
			if !have[path] && x.differ(n, path) {
				return errorAt(n.at, "%s needs a %s, as other names in this line have: %s[%s=...]", n.name, path,
					n.name, path)
			}
		}
	}
	for _, a := range n.args {
		if err := x.checkNames(a, bound); err != nil {
			return err
		}
	}
	return nil
}

// differ reports whether the points that a name selects differ in a path.
func (x *sweepEval) differ(n *node, path string) bool {
	values := map[string]bool{}
	for _, i := range x.selected(n, x.all()) {
		v, _ := x.points[i].value(path)
		values[v] = true
	}
	return len(values) > 1
}

// all returns the indices of all points.
func (x *sweepEval) all() []int {
	all := make([]int, len(x.points))
	for i := range all {
		all[i] = i
	}
	return all
}

// groupPoints groups the points that agree in all paths that are not bound. A point without some of
// these paths, such as one of another transport than the parameter is of, is in each group that
// agrees in the others.
func (x *sweepEval) groupPoints() {
	index := map[string]int{}
	for i, p := range x.points {
		key := pointText(p.At, x.bound)
		g, ok := index[key]
		if !ok {
			g = len(x.groups)
			index[key] = g
			x.groups = append(x.groups, nil)
		}
		x.groups[g] = append(x.groups[g], i)
	}
	open := make([]map[string]string, len(x.groups))
	for g, members := range x.groups {
		open[g] = maps.Clone(x.points[members[0]].At)
		maps.DeleteFunc(open[g], func(path, _ string) bool { return x.bound[path] })
	}
	var groups [][]int
	for g, members := range x.groups {
		joined := false
		for k := range x.groups {
			if within(open[k], open[g]) {
				members = append(members, x.groups[k]...)
			}
			joined = joined || within(open[g], open[k])
		}
		if !joined {
			groups = append(groups, members)
		}
	}
	x.groups = groups
}

// within reports whether b has all of a and more.
func within(a, b map[string]string) bool {
	if len(a) >= len(b) {
		return false
	}
	for path, v := range a {
		if w, ok := b[path]; !ok || w != v {
			return false
		}
	}
	return true
}

// pointText returns the values of a point at the paths that are not bound: "seed=1 queues=lossy".
func pointText(at map[string]string, bound map[string]bool) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if !bound[path] {
			parts = append(parts, path+"="+at[path])
		}
	}
	return strings.Join(parts, " ")
}

// scopeOf returns the scope of a group: a name with a selection stands for the selected points of
// the group, and a setting for that of the group's first point.
func (x *sweepEval) scopeOf(group []int) Scope {
	s := x.points[group[0]].Scope
	base := s
	s.picked = func(s Scope, n *node) (value, error) {
		if len(n.pick) == 0 {
			if _, measured := findEntry(n.name); !measured {
				return base.setting(n.name)
			}
		}
		return x.valueAt(s, group, n)
	}
	return s
}

// meets reports whether a point has the values that a name selects. lacks reports that it does so
// because it has none at one of the paths.
func (x *sweepEval) meets(n *node, p Point) (ok, lacks bool) {
	for _, c := range x.pick[n] {
		v, has := p.value(c.path)
		switch {
		case c.value == anyValue, has && v == c.value, !has && c.value == noValue:
		case has:
			return false, false
		default:
			lacks = true
		}
	}
	return true, lacks
}

// selected returns the points of a group that a name selects: those with its values, or if there
// are none, those that have no value at one of its paths. So transport=swift, gain=0.5 is the run
// of swift, which has no gain.
func (x *sweepEval) selected(n *node, group []int) []int {
	var exact, lacking []int
	for _, i := range group {
		switch ok, lacks := x.meets(n, x.points[i]); {
		case ok && lacks:
			lacking = append(lacking, i)
		case ok:
			exact = append(exact, i)
		}
	}
	if len(exact) == 0 {
		return lacking
	}
	return exact
}

// valueAt returns the value of a name at the points of a group that it selects.
func (x *sweepEval) valueAt(s Scope, group []int, n *node) (value, error) {
	e, ok := findEntry(n.name)
	if !ok {
		return value{}, fmt.Errorf("%s is a setting; selections are for results", n.name)
	}
	out := value{typ: e.typ}
	out.typ.list = n.isList()
	found := x.selected(n, group)
	for _, i := range found {
		p := x.points[i]
		if err := p.measured(); err != nil {
			return value{}, fmt.Errorf("%s: %w", n.name, err)
		}
		v, err := s.valueOf(e, p.Summary)
		if err != nil {
			return value{}, fmt.Errorf("%s of %s: %w", n.name, pointText(p.At, nil), err)
		}
		out.num, out.word = v.num, v.word
		out.list = append(out.list, v.num)
	}
	switch {
	case len(found) == 0:
		return value{}, fmt.Errorf("%s: no run of the sweep is selected", n.name)
	case len(found) > 1 && !out.typ.list:
		return value{}, fmt.Errorf("%s: %d runs are selected; expected one", n.name, len(found))
	}
	return out, nil
}
