package report

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"weft/internal/plural"
)

// Split splits the runs of a sweep into two sides by a setting that the sweep varies:
// transport.kind, or transport for short. A setting with more than two values needs the two to
// compare, such as transport.kind=roce,pc4, which also sets their order. The points of both sides
// lose that setting and those that change with it, so that Compare matches them. Runs of one side
// that do not have a setting which the other side varies, as those of another transport, match
// every value of it. left says which runs are on neither side.
func (s Side) Split(what string) (a, b Side, left []string, err error) {
	path, wanted, chosen := strings.Cut(what, "=")
	if !s.hasPath(path) && s.hasPath(path+".kind") {
		path += ".kind"
	}
	if !s.hasPath(path) {
		varied := map[string]bool{}
		for _, r := range s {
			for path := range r.point() {
				varied[path] = true
			}
		}
		return nil, nil, nil, fmt.Errorf("the sweep does not vary %q; it varies %s", path,
			strings.Join(slices.Sorted(maps.Keys(varied)), ", "))
	}
	sides, names, without := map[string]Side{}, []string{}, 0
	for _, r := range s {
		v, ok := r.point()[path]
		if !ok {
			without++
			continue
		}
		name := fmt.Sprint(v)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		sides[name] = append(sides[name], r)
	}
	if chosen {
		all := names
		names = strings.Split(wanted, ",")
		for _, name := range names {
			if sides[name] == nil {
				return nil, nil, nil, fmt.Errorf("%s has no value %q; it has %s", path, name, strings.Join(all, ", "))
			}
		}
	}
	if len(names) != 2 || names[0] == names[1] {
		return nil, nil, nil, fmt.Errorf("two values of %s can be compared, not %s; choose two, such as --by %s=A,B",
			path, strings.Join(names, ", "), path)
	}
	a, b = sides[names[0]], sides[names[1]]
	for _, name := range slices.Sorted(maps.Keys(sides)) {
		if !slices.Contains(names, name) {
			left = append(left, fmt.Sprintf("%s of %s=%s, which was not chosen", plural.Count(len(sides[name]), "run"),
				path, name))
		}
	}
	if without > 0 {
		left = append(left, fmt.Sprintf("%s without %s", plural.Count(without, "run"), path))
	}
	paths := differingPaths(a, b)
	a, b = a.withoutPaths(paths), b.withoutPaths(paths)
	return a.completed(b), b.completed(a), left, nil
}

// completed returns the runs of the side, each once for every combination of values that the other
// side has of settings that no run of this side has.
func (s Side) completed(other Side) Side {
	var combinations []map[string]any
	for _, r := range other {
		values := map[string]any{}
		for path, v := range r.point() {
			if !s.hasPath(path) {
				values[path] = v
			}
		}
		if !slices.ContainsFunc(combinations, func(m map[string]any) bool { return reflect.DeepEqual(m, values) }) {
			combinations = append(combinations, values)
		}
	}
	var out Side
	for _, values := range combinations {
		out = append(out, s.withPoints(func(at map[string]any) { maps.Copy(at, values) })...)
	}
	return out
}

// Unmatched lists the runs of both sides of a split that take no part in their comparison, by
// side, point and seed, with the reason. names are those of the sides.
func Unmatched(a, b Side, names [2]string) []string {
	var out []string
	by := namePartsOf(a, b)
	for i, sides := range [2][2]Side{{a, b}, {b, a}} {
		for _, p := range pairs(sides[0], sides[1]) {
			for _, l := range p.missing {
				out = append(out, fmt.Sprintf("%s, %s: %s", names[1-i], cmp.Or(l.Point, "the run"), l.Status))
			}
		}
		others := sides[1].byPoint(by)
		for _, r := range sides[0] {
			if (r.Summary != nil || r.Manifest != nil) && len(Side{r}.done()) == 0 &&
				len(others[r.pointName(by)].sharing(Side{r}).done()) == 0 {
				l := r.missingFrom(Side{r}, r.pointName(by), true)
				out = append(out, fmt.Sprintf("%s, %s: %s", names[i], l.Point, l.Status))
			}
		}
	}
	return out
}

// hasPath reports whether a run of the side has a value at path.
func (s Side) hasPath(path string) bool {
	return slices.ContainsFunc(s, func(r *Run) bool { _, ok := r.point()[path]; return ok })
}

// point returns the point of a run in its sweep: values by path. It is nil for a run outside a
// sweep.
func (r *Run) point() map[string]any {
	switch {
	case r.Summary != nil:
		return r.Summary.Point
	case r.Manifest != nil:
		return r.Manifest.Point
	}
	return nil
}

// differingPaths returns the paths that have one value on each side, and another on the other: the
// setting of the split, and those that change with it.
func differingPaths(a, b Side) (paths []string) {
	for path := range a[0].point() {
		x, y := a.valuesAt(path), b.valuesAt(path)
		if len(x) == 1 && len(y) == 1 && x[0] != y[0] {
			paths = append(paths, path)
		}
	}
	return paths
}

// valuesAt returns the distinct values at path, in the order of the runs.
func (s Side) valuesAt(path string) (values []string) {
	for _, r := range s {
		if v := fmt.Sprint(r.point()[path]); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// withoutPaths returns the runs with some paths removed from their points.
func (s Side) withoutPaths(paths []string) Side {
	return s.withPoints(func(at map[string]any) {
		maps.DeleteFunc(at, func(path string, _ any) bool { return slices.Contains(paths, path) })
	})
}

// withPoints returns copies of the runs with points that edit has changed.
func (s Side) withPoints(edit func(at map[string]any)) Side {
	edited := func(at map[string]any) map[string]any {
		if at = maps.Clone(at); at == nil {
			at = map[string]any{}
		}
		edit(at)
		return at
	}
	var out Side
	for _, r := range s {
		r = new(*r)
		if r.Summary != nil {
			r.Summary = new(*r.Summary)
			r.Summary.Point = edited(r.Summary.Point)
		}
		if r.Manifest != nil {
			r.Manifest = new(*r.Manifest)
			r.Manifest.Point = edited(r.Manifest.Point)
		}
		out = append(out, r)
	}
	return out
}
