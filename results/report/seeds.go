package report

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"weft/results/expect"
	"weft/results/record"
)

// SameForAllSeeds reports whether a sweep goes through seeds, and simulations that differ in
// nothing else have the same result.
func SameForAllSeeds(points []expect.Point) bool {
	first := map[string]*record.Summary{} // by the rest of the point
	compared := false
	for _, p := range points {
		s, rest := p.Summary, maps.Clone(p.At)
		if _, swept := rest["seed"]; !swept || s == nil || s.Engine != "sim" || s.Status != record.OK {
			return false
		}
		delete(rest, "seed")
		key := fmt.Sprint(rest) // in the order of its keys
		other := first[key]
		if other == nil {
			first[key] = s
			continue
		}
		if !sameResult(other, s) {
			return false
		}
		compared = true
	}
	return compared
}

// sameResult reports whether two runs measured the same.
func sameResult(a, b *record.Summary) bool {
	return reflect.DeepEqual(a.Flows, b.Flows) && reflect.DeepEqual(a.Network, b.Network) &&
		reflect.DeepEqual(a.Collectives, b.Collectives)
}

// oneIfSame returns the first run of a side whose runs are simulations with several seeds and the
// same result; else the side itself.
func (s Side) oneIfSame() (_ Side, same bool) {
	seeds := slices.Compact(s.seeds())
	if len(seeds) < 2 || slices.ContainsFunc(s, func(r *Run) bool { return !sameResult(r.Summary, s[0].Summary) }) {
		return s, false
	}
	return s[:1], true
}

// Shared returns the number of runs that are on both sides, whatever path leads to them.
func Shared(a, b Side) (n int) {
	on := map[string]bool{}
	for _, r := range a {
		on[resolved(r.Dir)] = true
	}
	for _, r := range b {
		if on[resolved(r.Dir)] {
			n++
		}
	}
	return n
}

// resolved returns the path of a directory without symbolic links, or as it is if it has none.
func resolved(dir string) string {
	path, err := filepath.EvalSymlinks(dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return dir
	}
	return path
}
