package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Split splits the runs of a sweep into two sides by a setting that the sweep varies:
// transport.kind, or transport for short. A setting with more than two values needs the two to
// compare, such as transport.kind=roce,pc4, which also sets their order. The points of both sides
// lose that setting and those that change with it, so that Compare matches them.
func (s Side) Split(what string) (a, b Side, err error) {
	path, wanted, chosen := strings.Cut(what, "=")
	if !s.hasPath(path) && s.hasPath(path+".kind") {
		path += ".kind"
	}
	sides, names := map[string]Side{}, []string{}
	for _, r := range s {
		v, ok := r.point()[path]
		if !ok {
			return nil, nil, fmt.Errorf("the sweep does not vary %q; it varies %s", path,
				strings.Join(slices.Sorted(maps.Keys(r.point())), ", "))
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
				return nil, nil, fmt.Errorf("%s has no value %q; it has %s", path, name, strings.Join(all, ", "))
			}
		}
	}
	if len(names) != 2 || names[0] == names[1] {
		return nil, nil, fmt.Errorf("two values of %s can be compared, not %s; choose two, such as --by %s=A,B",
			path, strings.Join(names, ", "), path)
	}
	a, b = sides[names[0]], sides[names[1]]
	paths := differingPaths(a, b)
	return a.withoutPaths(paths), b.withoutPaths(paths), nil
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
	without := func(at map[string]any) map[string]any {
		at = maps.Clone(at)
		maps.DeleteFunc(at, func(path string, _ any) bool { return slices.Contains(paths, path) })
		return at
	}
	var out Side
	for _, r := range s {
		r = new(*r)
		if r.Summary != nil {
			r.Summary = new(*r.Summary)
			r.Summary.Point = without(r.Summary.Point)
		}
		if r.Manifest != nil {
			r.Manifest = new(*r.Manifest)
			r.Manifest.Point = without(r.Manifest.Point)
		}
		out = append(out, r)
	}
	return out
}
