package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/results/record"
	"weft/results/store"
)

// pair is a point of a comparison: its runs on both sides that ended well, in the order of their seeds.
type pair struct {
	name    string
	a, b    Side
	missing []string // runs of a whose seed did not end well in b, each with the reason
}

// pairs matches the points of two sides by what their sweeps set, or by nothing where each side has one point and somebody
// named both. Runs of a point are matched by seed: seeds that one side lacks would move its means alone, so both sides keep those
// that they share. Where they share none by intent, or one side ran a single seed, each is a sample and keeps all.
func pairs(a, b Side) []pair {
	by := apartBy(a, b)
	triedA, triedB := a.byPoint(by), b.byPoint(by)
	names := slices.DeleteFunc(slices.SortedFunc(maps.Keys(triedA), store.Natural), func(name string) bool { return len(triedA[name].done()) == 0 })
	var out []pair
	for _, name := range names {
		p := pair{name: name}
		ranA, ranB := triedA[name], triedB[name]
		if ranB == nil && len(names) == 1 && len(triedB) == 1 { // two points are compared when somebody names them
			for other, runs := range triedB {
				p.name, ranB = name+" : "+other, runs
			}
		}
		p.a, p.b = ranA.done(), ranB.done()
		if len(p.b) > 0 && len(ranA.sharing(ranB)) == 0 {
			out = append(out, p)
			continue
		}
		for _, r := range p.a {
			if len(Side{r}.sharing(p.b)) == 0 {
				p.missing = append(p.missing, r.missingFrom(ranB, p.name, len(p.a) > 1))
			}
		}
		if ranA.seedCount() > 1 && ranB.seedCount() > 1 {
			p.a, p.b = p.a.sharing(p.b), p.b.sharing(p.a)
		}
		out = append(out, p)
	}
	return out
}

// Missing lists the runs of a that have no counterpart in b that ended well, by point and seed, and why.
func Missing(a, b Side) []string {
	var out []string
	for _, p := range pairs(a, b) {
		out = append(out, p.missing...)
	}
	return out
}

// missingFrom says which run is missing from the other side's runs of its point, and what became of it there.
func (r *Run) missingFrom(others Side, point string, several bool) string {
	if _, swept := r.Summary.Point["seed"]; swept || several {
		point = strings.TrimSpace(fmt.Sprintf("%s seed=%d", point, r.seed()))
	}
	why := "not run"
	for _, o := range others.sharing(Side{r}) {
		why = o.status()
	}
	return fmt.Sprintf("%s: %s", cmp.Or(point, "the run"), why)
}

func (r *Run) seed() uint64 {
	if r.Summary != nil {
		return r.Summary.Seed
	}
	return r.Manifest.Seed
}

func (r *Run) status() string {
	if r.Summary != nil {
		return r.Summary.Status
	}
	return r.Manifest.Status
}

// sharing returns the runs whose seed is one of the others'.
func (s Side) sharing(others Side) Side {
	var out Side
	for _, r := range s {
		if slices.ContainsFunc(others, func(o *Run) bool { return o.seed() == r.seed() }) {
			out = append(out, r)
		}
	}
	return out
}

func (s Side) seedCount() int {
	seeds := map[uint64]bool{}
	for _, r := range s {
		seeds[r.seed()] = true
	}
	return len(seeds)
}

// done returns the runs that ended well, in the order of their seeds.
func (s Side) done() Side {
	var out Side
	for _, r := range s {
		if r.Summary != nil && r.Summary.Status == record.OK {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(x, y *Run) int { return cmp.Compare(x.seed(), y.seed()) })
	return out
}

// byPoint groups all runs, also those that failed, by their point.
func (s Side) byPoint(by apart) map[string]Side {
	out := map[string]Side{}
	for _, r := range s {
		if r.Summary == nil && r.Manifest == nil {
			continue
		}
		key := r.point(by)
		out[key] = append(out[key], r)
	}
	return out
}
