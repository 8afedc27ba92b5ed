package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/results/record"
)

// By splits the runs of a sweep into two sides by a setting that it sweeps: transport.kind, transport for short, or
// transport.kind=roce,pc4 where it has more than two values or the other order is wanted.
func (s Side) By(what string) (a, b Side, err error) {
	path, wanted, chosen := strings.Cut(what, "=")
	if !s.sweeps(path) && s.sweeps(path+".kind") {
		path += ".kind"
	}
	sides, names := map[string]Side{}, []string{}
	for _, r := range s {
		v, ok := r.at()[path]
		if !ok {
			return nil, nil, fmt.Errorf("the sweep has no %q; it has %s", path, strings.Join(slices.Sorted(maps.Keys(r.at())), ", "))
		}
		name := fmt.Sprint(v)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		sides[name] = append(sides[name], r)
	}
	if chosen {
		all := names
		if names = strings.Split(wanted, ","); len(names) == 2 && (sides[names[0]] == nil || sides[names[1]] == nil) {
			return nil, nil, fmt.Errorf("%s has no %s; it has %s", path, wanted, strings.Join(all, ", "))
		}
	}
	if len(names) != 2 || names[0] == names[1] {
		return nil, nil, fmt.Errorf("%s has %s; two values are compared, such as --by %s=A,B", path, strings.Join(names, ", "), path)
	}
	a, b = sides[names[0]], sides[names[1]]
	bound := apartIn(a, b)
	return a.without(bound), b.without(bound), nil
}

func (s Side) sweeps(path string) bool {
	return slices.ContainsFunc(s, func(r *Run) bool { _, ok := r.at()[path]; return ok })
}

// at is the point of a run in its sweep.
func (r *Run) at() map[string]any {
	switch {
	case r.Summary != nil:
		return r.Summary.Point
	case r.Manifest != nil:
		return r.Manifest.Point
	}
	return nil
}

// apartIn lists the paths that have one value on each side, and not the same: what was asked for, and what moves with it.
func apartIn(a, b Side) (paths []string) {
	for path := range a[0].at() {
		x, y := a.valuesAt(path), b.valuesAt(path)
		if len(x) == 1 && len(y) == 1 && x[0] != y[0] {
			paths = append(paths, path)
		}
	}
	return paths
}

func (s Side) valuesAt(path string) (values []string) {
	for _, r := range s {
		if v := fmt.Sprint(r.at()[path]); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// without returns the runs with points that lack some paths.
func (s Side) without(paths []string) Side {
	lacking := func(at map[string]any) map[string]any {
		at = maps.Clone(at)
		maps.DeleteFunc(at, func(path string, _ any) bool { return slices.Contains(paths, path) })
		return at
	}
	var out Side
	for _, r := range s {
		one := *r
		if r.Summary != nil {
			one.Summary = new(record.Summary)
			*one.Summary = *r.Summary
			one.Summary.Point = lacking(r.Summary.Point)
		}
		if r.Manifest != nil {
			one.Manifest = new(record.Manifest)
			*one.Manifest = *r.Manifest
			one.Manifest.Point = lacking(r.Manifest.Point)
		}
		out = append(out, &one)
	}
	return out
}
