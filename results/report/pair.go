package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/internal/natural"
	"weft/results/record"
)

// A pair is a point of a comparison: its ok runs on both sides, sorted by seed.
type pair struct {
	name    string
	words   string // name for people
	a, b    Side
	missing []Lack // runs of a without an ok run of the same seed in b
	single  bool   // b has one run, which did not fail
}

// pairs matches the points of two sides by name; if each side has a single point, these two match,
// unless the user named directories of labs.
// Runs of a point are matched by seed: a seed that one side lacks would move only the other's mean,
// so both keep the seeds that they share. If they share none, or one side ran a single seed, the
// sides are independent samples and keep all; missing lists runs without a counterpart.
func pairs(a, b Side) []pair {
	by := namePartsOf(a, b)
	triedA, triedB := a.byPoint(by), b.byPoint(by)
	names := slices.DeleteFunc(slices.SortedFunc(maps.Keys(triedA), natural.Compare),
		func(name string) bool { return len(triedA[name].done()) == 0 })
	var out []pair
	for _, name := range names {
		p := pair{name: name, words: triedA[name][0].pointWords(by)}
		ranA, ranB := triedA[name], triedB[name]
		// Two single points are compared even if their names differ: the user named both.
		if ranB == nil && len(triedA) == 1 && len(triedB) == 1 && !by.strictly {
			for other, runs := range triedB {
				p.name, ranB = name+" : "+other, runs
				p.words += " : " + runs[0].pointWords(by)
			}
		}
		p.a, p.b = ranA.done(), ranB.done()
		p.single = len(ranB) == 1 && len(p.b) == 1
		others := len(p.b) > 0 && len(ranA.sharing(ranB)) == 0
		for _, r := range p.a {
			if len(Side{r}.sharing(p.b)) == 0 {
				p.missing = append(p.missing, r.missingFrom(ranB, p.name, others || len(p.a) > 1))
			}
		}
		if !others && ranA.seedCount() > 1 && ranB.seedCount() > 1 {
			p.a, p.b = p.a.sharing(p.b), p.b.sharing(p.a)
		}
		out = append(out, p)
	}
	return out
}

// Compared returns the runs of two sides that are compared with each other.
func Compared(a, b Side) (inA, inB Side) {
	for _, p := range pairs(a, b) {
		if len(p.b) > 0 {
			inA, inB = append(inA, p.a...), append(inB, p.b...)
		}
	}
	return inA, inB
}

// missingFrom returns the Lack of a run: its point, and the status of its counterpart among others.
// several is set if the point has several seeds.
func (r *Run) missingFrom(others Side, point string, several bool) Lack {
	if _, swept := r.point()["seed"]; swept || several {
		point = strings.TrimSpace(fmt.Sprintf("%s seed=%d", point, r.seed()))
	}
	lack := Lack{Point: point, Status: "not run"}
	for _, o := range others.sharing(Side{r}) {
		if lack.Status, lack.Tried = o.status(), o.tried(); !lack.Tried {
			lack.Status = cmp.Or(o.NoSummary, lack.Status)
		}
	}
	return lack
}

// seed returns the seed of the run.
func (r *Run) seed() uint64 {
	if r.Summary != nil {
		return r.Summary.Seed
	}
	return r.Manifest.Seed
}

// Outcome returns how the run ended.
func (r *Run) Outcome() record.Outcome {
	if r.Summary != nil {
		return r.Summary.Outcome()
	}
	return r.Manifest.Outcome()
}

// status returns the status of the run.
func (r *Run) status() string { return r.Outcome().Status }

// sharing returns the runs whose seed is also a seed of others.
func (s Side) sharing(others Side) Side {
	var out Side
	for _, r := range s {
		if slices.ContainsFunc(others, func(o *Run) bool { return o.seed() == r.seed() }) {
			out = append(out, r)
		}
	}
	return out
}

// seedCount returns the number of different seeds.
func (s Side) seedCount() int {
	seeds := map[uint64]bool{}
	for _, r := range s {
		seeds[r.seed()] = true
	}
	return len(seeds)
}

// done returns the ok runs, sorted by seed.
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

// byPoint groups all runs, including failed ones, by the names of their points.
func (s Side) byPoint(by nameParts) map[string]Side {
	out := map[string]Side{}
	for _, r := range s {
		if r.Summary == nil && r.Manifest == nil {
			continue
		}
		key := r.pointName(by)
		out[key] = append(out[key], r)
	}
	return out
}
