package expect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/results/record"
)

// selector is one condition of a selection: transport=pc4, or ranks=* for all.
type selector struct {
	key, value string
	at         int
}

// every is the value of a selector that means all points.
const every = "*"

// selects reads a selection behind a name: [transport=pc4, ranks=16, seed=*].
func (n *node) selects(t token) error {
	if n.op != "name" {
		return fail(t.at, "a selection stands behind a name")
	}
	inner := t.text[1 : len(t.text)-1]
	at := t.at + 1
	for _, part := range conditions(inner) {
		key, val, ok := strings.Cut(part, "=")
		key, val = strings.TrimSpace(key), strings.TrimSpace(val)
		if !ok || key == "" || val == "" {
			return fail(at, "%q selects nothing; write a key of the sweep and its value such as transport=pc4, or seed=*", strings.TrimSpace(part))
		}
		n.pick = append(n.pick, selector{key, val, at})
		at += len(part) + 1
	}
	return nil
}

// conditions cuts a selection at its commas, but for those within a value: down={random: 64, among: 16 leaves}.
func conditions(inner string) (out []string) {
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

// many says whether a name stands for several points.
func (n *node) many() bool {
	return slices.ContainsFunc(n.pick, func(s selector) bool { return s.value == every })
}

// Cross says whether the expression compares points of a sweep: whether any name has a selection.
func (e *Expr) Cross() bool { return len(e.selected()) > 0 }

// selected returns the names that have selections.
func (e *Expr) selected() []*node {
	var out []*node
	var walk func(*node)
	walk = func(n *node) {
		if len(n.pick) > 0 {
			out = append(out, n)
		}
		for _, a := range n.args {
			walk(a)
		}
	}
	walk(e.root)
	return out
}

// Point is one run of a sweep: the values that make it this point, by their path (as `weft explain` prints them), its
// summary, and the scope of its lab.
type Point struct {
	At map[string]string
	// Fixed are values that the command line gave all points, by their path. A selection may be about them as about At, so that
	// seed=* is the one seed that --set left.
	Fixed   map[string]string
	Summary *record.Summary
	Scope   Scope
}

// value returns the value of a path that selections may be about.
func (p *Point) value(path string) (string, bool) {
	if v, ok := p.At[path]; ok {
		return v, true
	}
	v, ok := p.Fixed[path]
	return v, ok
}

// CheckSweep reports, as *Error, selections that no point of the sweep meets, and names that do not say which point
// they are of. It needs At of the points only.
func (e *Expr) CheckSweep(points []Point) error {
	_, err := e.across(points)
	return err
}

// across is an expression on its way over the points of a sweep.
type across struct {
	points []Point
	pick   map[*node][]condition
	bound  map[string]bool // paths that selections are about, and those that follow from them
	groups [][]int         // points that agree in everything else
}

// condition is a selector whose key is a path of the sweep.
type condition struct{ path, value string }

func (e *Expr) across(points []Point) (*across, error) {
	x := &across{points: points, pick: map[*node][]condition{}}
	bound := map[string]bool{}
	for _, n := range e.selected() {
		for _, s := range n.pick {
			path, err := x.path(s)
			if err != nil {
				return nil, err
			}
			bound[path] = true
			x.pick[n] = append(x.pick[n], condition{path, s.value})
		}
	}
	if err := x.complete(e.root, bound); err != nil {
		return nil, err
	}
	x.bound = x.implied(bound)
	x.group(x.bound)
	return x, nil
}

// implied adds the paths whose value follows from those that are bound: queues, where transport.kind and queues move
// together.
func (x *across) implied(bound map[string]bool) map[string]bool {
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

// Implied returns the paths of a sweep whose values follow from those of others, and these: queues.pfc follows from transport.kind where
// they move together.
func Implied(points []Point, from ...string) map[string]bool {
	bound := map[string]bool{}
	for _, path := range from {
		bound[path] = true
	}
	return (&across{points: points}).implied(bound)
}

// path finds the path of the sweep that a selector is about: itself, its kind, or the only one that begins or ends with it.
func (x *across) path(s selector) (string, error) {
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
		}
	}
	switch {
	case len(found) == 0:
		return "", fail(s.at, "the sweep has no %q", s.key)
	case len(found) > 1:
		return "", fail(s.at, "%q may be %s; write it in full", s.key, strings.Join(found, " or "))
	case s.value != every && !values[s.value]:
		return "", fail(s.at, "no point has %s=%s; there are %s", found[0], s.value, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	default:
		return found[0], nil
	}
}

// complete refuses names that do not say which point they are of.
func (x *across) complete(n *node, bound map[string]bool) error {
	if _, measured := find(n.name); n.op == "name" && measured {
		have := map[string]bool{}
		for _, c := range x.pick[n] {
			have[c.path] = true
		}
		for _, path := range slices.Sorted(maps.Keys(bound)) {
			if !have[path] {
				return fail(n.at, "%s of which %s? Others in this line say it: %s[%s=...]", n.name, path, n.name, path)
			}
		}
	}
	for _, a := range n.args {
		if err := x.complete(a, bound); err != nil {
			return err
		}
	}
	return nil
}

// group collects the points that agree in everything that no selection is about.
func (x *across) group(bound map[string]bool) {
	index := map[string]int{}
	for i, p := range x.points {
		key := free(p.At, bound)
		g, ok := index[key]
		if !ok {
			g = len(x.groups)
			index[key] = g
			x.groups = append(x.groups, nil)
		}
		x.groups[g] = append(x.groups[g], i)
	}
}

// free writes what makes a point and is not bound.
func free(at map[string]string, bound map[string]bool) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if !bound[path] {
			parts = append(parts, path+"="+at[path])
		}
	}
	return strings.Join(parts, " ")
}

// in is the scope of a group: a name with a selection stands for the points of the group that it selects, and a
// setting for that of the group's first point.
func (x *across) in(group []int) Scope {
	s := x.points[group[0]].Scope
	base := s
	s.picked = func(n *node) (value, error) {
		if len(n.pick) == 0 {
			if _, measured := find(n.name); !measured {
				return base.setting(n.name)
			}
		}
		return x.pickFrom(group, n)
	}
	return s
}

// selects says whether a name with a selection is about a point.
func (x *across) selects(n *node, p Point) bool {
	return !slices.ContainsFunc(x.pick[n], func(c condition) bool {
		v, _ := p.value(c.path)
		return c.value != every && v != c.value
	})
}

// pickFrom evaluates a name at the points that it selects.
func (x *across) pickFrom(group []int, n *node) (value, error) {
	e, ok := find(n.name)
	if !ok {
		return value{}, fmt.Errorf("%s is a setting, and has no points", n.name)
	}
	out := value{typ: e.typ}
	out.typ.list = n.many()
	found := 0
	for _, i := range group {
		p := x.points[i]
		if !x.selects(n, p) {
			continue
		}
		if p.Summary == nil {
			return value{}, fmt.Errorf("%s: the run of %s left no summary", n.name, free(p.At, nil))
		}
		if p.Summary.Status != record.OK {
			return value{}, fmt.Errorf("%s: the run of %s is %s", n.name, free(p.At, nil), p.Summary.Status)
		}
		v, err := e.get(p.Summary)
		if err != nil {
			return value{}, fmt.Errorf("%s of %s: %w", n.name, free(p.At, nil), err)
		}
		out.num, out.word = v.num, v.word
		out.list = append(out.list, v.num)
		found++
	}
	switch {
	case found == 0:
		return value{}, fmt.Errorf("%s: no run of the sweep is selected", n.name)
	case found > 1 && !out.typ.list:
		return value{}, fmt.Errorf("%s: %d runs are selected, and one is meant", n.name, found)
	}
	return out, nil
}

// Sweep evaluates an expression that compares points: once for every combination of what its selections leave open, and
// it has to hold for each. Got is that of the combination with the least margin, which Note names together with how many
// combinations meet the line.
func (e *Expr) Sweep(points []Point) record.Expect {
	out := record.Expect{That: e.text}
	x, err := e.across(points)
	if err != nil {
		out.Note = err.Error()
		return out
	}
	if len(x.groups) == 0 {
		out.Note = "no point of the sweep was run"
		return out
	}
	met, least := 0, math.Inf(1)
	alike := true // all combinations have the same margin
	var doubt string
	for k, g := range x.groups {
		s := x.in(g)
		if err := e.Check(s); err != nil {
			return record.Expect{That: e.text, Note: err.Error()}
		}
		doubt = cmp.Or(doubt, x.doubt(g))
		one := record.Expect{That: e.text}
		margin := s.judge(e, nil, &one)
		if one.OK {
			met++
		}
		alike = alike && (k == 0 || margin == least)
		if k > 0 && margin >= least {
			continue
		}
		least = margin
		if name := x.name(g); len(x.groups) > 1 && !one.OK {
			one.Note = "worst at " + name + ": " + one.Note
		} else if one.OK {
			one.Note = "closest at " + name
		}
		out = one
	}
	switch of := fmt.Sprintf("%d of %d met", met, len(x.groups)); {
	case len(x.groups) == 1 && out.OK:
		out.Note = ""
	case len(x.groups) == 1:
	case out.OK && alike:
		out.Note = of
	default:
		out.Note = of + "; " + out.Note
	}
	out.Doubt = strings.Trim(x.invalid()+"; "+doubt, "; ")
	return out
}

// invalid says how many of the selected runs have an invalid fidelity, and which is the first; "" if none has.
func (x *across) invalid() string {
	selected, invalid, first := 0, 0, ""
	for _, p := range x.points {
		picked := false
		for n := range x.pick {
			picked = picked || x.selects(n, p)
		}
		if !picked {
			continue
		}
		selected++
		if s := p.Summary; s != nil && s.Fidelity.Invalid() {
			invalid++
			first = cmp.Or(first, free(p.At, nil))
		}
	}
	if invalid == 0 {
		return ""
	}
	return fmt.Sprintf("the fidelity of %d of its %d runs is invalid, so this shows nothing: %s", invalid, selected, first)
}

// decidable says whether retransmission timeouts can decide a name: it is about how long messages or collectives take.
func decidable(name string) bool {
	if strings.HasPrefix(name, "collective.") {
		return strings.HasSuffix(name, ".time") || strings.HasSuffix(name, "bw")
	}
	return strings.HasPrefix(name, "fct") || name == "lab_time"
}

// doubt says which least timeouts the selected runs of a group have, where those are not the same and decide the slowest messages of
// any. It is empty for names that they do not decide, and where the sweep is over them.
func (x *across) doubt(group []int) string {
	least := map[float64][]string{} // transports, by their least timeout
	decided := false
	for n := range x.pick {
		if !decidable(n.name) {
			continue
		}
		for _, i := range group {
			p := x.points[i]
			if p.Summary == nil || !x.selects(n, p) {
				continue
			}
			s := p.Summary
			if _, swept := p.At[s.RTOMinKey]; swept {
				return ""
			}
			decided = decided || s.Tail != nil
			if !slices.Contains(least[s.RTOMinUS], s.Transport) {
				least[s.RTOMinUS] = append(least[s.RTOMinUS], s.Transport)
			}
		}
	}
	if !decided || len(least) < 2 {
		return ""
	}
	var parts []string
	for _, us := range slices.Sorted(maps.Keys(least)) {
		slices.Sort(least[us])
		parts = append(parts, fmt.Sprintf("%v (%s)", value{typ: span, num: us}, strings.Join(least[us], ", ")))
	}
	return "timeouts decide it, and the least is not the same for all: " + strings.Join(parts, ", ")
}

// name writes what the points of a group have in common.
func (x *across) name(group []int) string {
	return free(x.points[group[0]].At, x.bound)
}

// Sweep evaluates those of the lines that compare points of a sweep. One that is about points which values of the command line
// took away is skipped.
func Sweep(lines []string, points []Point) []record.Expect {
	var out []record.Expect
	for _, line := range lines {
		if e, err := Parse(line); err == nil && e.Cross() {
			if err := e.CheckSweep(points); err != nil && slices.ContainsFunc(points, func(p Point) bool { return len(p.Fixed) > 0 }) {
				out = append(out, record.Expect{That: line, Skipped: true, Note: "--set leaves no points to compare: " + err.Error()})
				continue
			}
			out = append(out, e.Sweep(points))
		}
	}
	return out
}

// Quantity is a value with its unit: microseconds, bytes, Gb/s, or none.
type Quantity struct {
	Value float64
	Unit  string // us, B, Gb/s or ""
	Text  string // with four digits in the unit that suits it
}

// errTruth is that a comparison stands where a value is wanted.
var errTruth = errors.New("this is true or false; expected a value")

func quantityOf(v value) (Quantity, error) {
	if v.typ.shape != number || v.typ.list {
		return Quantity{}, errTruth
	}
	return Quantity{Value: v.natural(), Unit: unitOf(v.typ), Text: v.String()}, nil
}

// ParseValue reads an expression that is a value instead of a comparison, such as mean(rtt.mean[transport=pc4, seed=*]).
func ParseValue(text string) (*Expr, error) {
	e, err := parse(text)
	if err != nil {
		return nil, err
	}
	t, err := Scope{}.typeOf(e.root)
	if err == nil && (t.list || t.shape != number && t.shape != unknown) {
		err = fail(e.root.at, "this is %v; expected one value", t)
	}
	return e, err
}

// Value evaluates a value over the points of a sweep, or over one run where nothing is selected. What its selections leave
// open has to be the same in all points.
func (e *Expr) Value(points []Point) (Quantity, error) {
	if !e.Cross() && len(points) == 1 {
		v, err := points[0].Scope.eval(e.root, points[0].Summary)
		if err != nil {
			return Quantity{}, err
		}
		return quantityOf(v)
	}
	x, err := e.across(points)
	if err != nil {
		return Quantity{}, err
	}
	if len(x.groups) != 1 {
		return Quantity{}, fmt.Errorf("%d points of the sweep are meant; select one, or take min, max, mean or median over [%s=*]", len(x.groups), x.open(e))
	}
	v, err := x.in(x.groups[0]).eval(e.root, nil)
	if err != nil {
		return Quantity{}, err
	}
	return quantityOf(v)
}

// open names a key that distinguishes points and that no selection is about.
func (x *across) open(e *Expr) string {
	first := x.points[x.groups[0][0]].At
	second := x.points[x.groups[min(1, len(x.groups)-1)][0]].At
	for _, path := range slices.Sorted(maps.Keys(first)) {
		if first[path] != second[path] {
			return path
		}
	}
	return "seed"
}

// ParseQuantity reads a number with its unit: 23.5ms, 25%.
func ParseQuantity(text string) (Quantity, error) {
	v, err := quantity(strings.TrimSpace(text))
	if err != nil {
		return Quantity{}, err
	}
	return quantityOf(v)
}

// At writes the values of a sweep's point as selections name them.
func At(point map[string]any) map[string]string {
	out := make(map[string]string, len(point))
	for path, v := range point {
		out[path] = fmt.Sprint(v)
	}
	return out
}
