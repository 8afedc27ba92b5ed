package report

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"weft/results/expect"
	"weft/results/record"
	"weft/results/stats"
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
		reflect.DeepEqual(a.Collectives, b.Collectives) && reflect.DeepEqual(a.Clocks, b.Clocks)
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

// FewSeedsWarning returns a warning if the sides have too few seeds to show any difference, or a
// difference at a single point among all that are compared; else "". Simulations of the same seeds
// need no test in a gate.
func FewSeedsWarning(all []Difference, gate bool) string {
	why, _ := fewSeeds(all, gate)
	return why
}

// fewSeeds returns FewSeedsWarning, and the points that have too few seeds.
func fewSeeds(all []Difference, gate bool) (why string, few map[string]bool) {
	few = map[string]bool{}
	type seedStats struct {
		a, b    int  // seeds of the sides, of the number with the fewest
		numbers int  // numbers that are tested over seeds
		apart   int  // of these, those whose sides do not overlap
		shows   bool // a number differs beyond noise
		hides   bool // a number differs, but not beyond noise
	}
	points := map[string]*seedStats{}
	tests := 0
	for _, d := range all {
		if d.tested() {
			tests++
		}
		if d.Noise != seedNoise || min(d.A.N, d.B.N) < 2 || gate && d.exact {
			continue
		}
		if stats.MinMannWhitney(d.A.N, d.B.N) >= alpha {
			why = fmt.Sprintf("%s cannot show a difference, however large; use at least %d", seedsOf(d.A.N, d.B.N),
				minSeeds)
			few[d.Point] = true
			continue
		}
		h := points[d.Point]
		if h == nil {
			h = &seedStats{a: d.A.N, b: d.B.N}
			points[d.Point] = h
		}
		if stats.MinMannWhitney(d.A.N, d.B.N) > stats.MinMannWhitney(h.a, h.b) {
			h.a, h.b = d.A.N, d.B.N
		}
		h.numbers++
		if d.P <= stats.MinMannWhitney(d.A.N, d.B.N) {
			h.apart++
		}
		h.shows = h.shows || d.Beyond
		h.hides = h.hides || !d.Beyond && d.A.Mean != d.B.Mean
	}
	for _, point := range slices.Sorted(maps.Keys(points)) {
		h := points[point]
		// Numbers whose sides do not overlap have the minimum p, and the first ranks. Without
		// any, all numbers of a point might have.
		first := h.numbers
		if h.apart > 0 {
			first = h.apart
		}
		attainable := func(a, b int) float64 { return stats.MinMannWhitney(a, b) * float64(tests) / float64(first) }
		if h.shows || !h.hides || attainable(h.a, h.b) < alpha {
			continue
		}
		enough := min(h.a, h.b)
		for attainable(enough, enough) >= alpha {
			enough++
		}
		few[point] = true
		switch {
		case why != "":
		case first < h.numbers:
			least := int(stats.MinMannWhitney(h.a, h.b)*float64(tests)/alpha) + 1
			why = fmt.Sprintf("%s cannot show a difference in fewer than %d of %d numbers, however large, and the "+
				"sides of only %d do not overlap (--all); use at least %d",
				seedsOf(h.a, h.b), least, tests, first, enough)
		default:
			why = fmt.Sprintf("%s cannot show a difference at one of %d points among %d numbers, however large; use "+
				"at least %d", seedsOf(h.a, h.b), len(points), tests, enough)
		}
	}
	return why, few
}

// seedsOf names the seeds of two sides.
func seedsOf(a, b int) string {
	if a == b {
		return fmt.Sprintf("%d seeds on each side", a)
	}
	return fmt.Sprintf("%d and %d seeds", a, b)
}
