package report

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
)

// Difference is one line of a comparison.
type Difference struct {
	Point  string         `json:"point"` // of the sweep, without the seed
	Metric string         `json:"metric"`
	Unit   string         `json:"unit,omitempty"`
	A      stats.Interval `json:"a"`
	B      stats.Interval `json:"b"`
	// Change is B over A less 1; 0 where A is 0.
	Change float64 `json:"change"`
	Noise  string  `json:"noise"` // what it was compared with: seeds, flows, none where simulations are exact, unknown of one emulation
	// P is how often chance alone does this; Adjusted, for all differences of the comparison together (stats.BenjaminiHochberg), decides. 1 where that is neither.
	P        float64 `json:"p"`
	Adjusted float64 `json:"p_adjusted"`
	Beyond   bool    `json:"beyond"` // Adjusted is below 0.05, or the difference is exact
	// Verdict is how B comes out by Judge: worse, better, differs where neither more nor less is worse, same, or unknown.
	Verdict string `json:"verdict"`

	sign  float64 // of a change for the worse; 0: neither more nor less is
	exact bool    // simulations of the same seeds: anything that differs was changed by something
}

// What Judge says of a difference.
const (
	Worse   = "worse"
	Better  = "better"
	Differs = "differs"
	Same    = "same"
	Unknown = "unknown"
)

// Judge says of every difference how the second side comes out. What differs by no more than the tolerance, a share, is the same. Two
// simulations of one seed and one lab differ only by what was changed between them; with exact, any difference of theirs beyond the tolerance
// counts, and otherwise those alone that are beyond noise do.
func Judge(all []Difference, tolerance float64, exact bool) {
	for i := range all {
		d := &all[i]
		differs := d.Beyond || exact && d.exact && d.A.Mean != d.B.Mean
		by := math.Abs(d.Change)
		if d.A.Mean == 0 {
			by = math.Inf(1)
		}
		switch change := d.B.Mean - d.A.Mean; {
		case !differs && d.Noise == "unknown" && change != 0:
			d.Verdict = Unknown
		case !differs || change == 0 || by <= tolerance:
			d.Verdict = Same
		case d.sign == 0:
			d.Verdict = Differs
		case change*d.sign > 0:
			d.Verdict = Worse
		default:
			d.Verdict = Better
		}
	}
}

// ErrNothing is that there is nothing to compare.
var ErrNothing = errors.New("the two have no point in common that was measured")

// alpha is up to which share of the differences that count may be chance.
const alpha = 0.05

// Side is the runs of one side of a comparison.
type Side []*Run

// Summaries are those of the runs that have one.
func (s Side) Summaries() []*record.Summary {
	var all []*record.Summary
	for _, r := range s {
		if r.Summary != nil {
			all = append(all, r.Summary)
		}
	}
	return all
}

// Compare says what differs between two sets of runs: at each point that both have, over the seeds where both have several, and
// otherwise over the flows of one run. In the simulator a run is a function of lab and seed, so that with one seed a difference of
// a count is a fact, and of a percentile it is held against how far it would move with other flows.
func Compare(a, b Side) ([]Difference, error) {
	var out []Difference
	for _, p := range pairs(a, b) {
		if len(p.a) == 0 || len(p.b) == 0 {
			continue
		}
		rows, err := comparePoint(p.name, p.a, p.b)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	if len(out) == 0 {
		return nil, ErrNothing
	}
	var at []int
	var ps []float64
	for i, d := range out {
		if d.Noise == "seeds" || d.Noise == "flows" {
			at, ps = append(at, i), append(ps, d.P)
		}
	}
	for k, p := range stats.BenjaminiHochberg(ps) {
		d := &out[at[k]]
		d.Adjusted, d.Beyond = p, p < alpha
	}
	Judge(out, 0, false)
	return out, nil
}

// apart says what tells points apart beside the paths of a sweep.
type apart struct{ lab, engine bool }

// apartBy is whether the runs of either side are of more than one lab, or of more than one engine, as --engine both
// makes them. A simulation and an emulation can still be compared, as two sides.
func apartBy(sides ...Side) (by apart) {
	for _, s := range sides {
		for _, r := range s {
			if r.Manifest == nil || s[0].Manifest == nil {
				continue
			}
			by.lab = by.lab || r.Manifest.Lab != s[0].Manifest.Lab
			by.engine = by.engine || r.Manifest.Engine != s[0].Manifest.Engine
		}
	}
	return by
}

// point names the point of a run, without the seed.
func (r *Run) point(by apart) string {
	var parts []string
	if by.lab && r.Manifest != nil {
		parts = append(parts, r.Manifest.Lab)
	}
	if by.engine && r.Manifest != nil {
		parts = append(parts, "engine="+r.Manifest.Engine)
	}
	at := map[string]any{}
	switch {
	case r.Summary != nil:
		at = r.Summary.Point
	case r.Manifest != nil:
		at = r.Manifest.Point
	}
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if path != "seed" {
			parts = append(parts, fmt.Sprintf("%s=%v", path, at[path]))
		}
	}
	return strings.Join(parts, " ")
}

// metric is a number of a summary that is compared. NaN: it was not measured.
type metric struct {
	name, unit string
	sign       float64 // of a change for the worse; 0: neither more nor less is
	get        func(*record.Summary) float64
}

func metrics(like *record.Summary) []metric {
	ended := func(v func(*record.Summary) float64) func(*record.Summary) float64 {
		return func(s *record.Summary) float64 {
			if s.Flows.Count <= s.Flows.Unfinished {
				return math.NaN()
			}
			return v(s)
		}
	}
	out := []metric{
		{"flow completion, mean", "us", 1, ended(func(s *record.Summary) float64 { return s.Flows.FCT.Mean })},
		{"flow completion, p99", "us", 1, ended(func(s *record.Summary) float64 { return s.Flows.FCT.P99 })},
		{"slowdown, p99", "", 1, ended(func(s *record.Summary) float64 { return s.Flows.Slowdown.P99 })},
		{"round trip, mean", "us", 1, func(s *record.Summary) float64 { return s.RTT.Mean }},
		{"queueing, p99", "us", 1, func(s *record.Summary) float64 { return s.Network.QueueDelay.P99 }},
		{"largest queue", "B", 1, func(s *record.Summary) float64 { return float64(s.Network.MaxQueue) }},
		{"CE marks", "", 0, func(s *record.Summary) float64 { return float64(s.Network.CEMarks) }},
		{"drops", "", 1, func(s *record.Summary) float64 { return float64(s.Network.Drops) }},
		{"retransmits", "", 1, func(s *record.Summary) float64 { return float64(s.Network.Retransmits) }},
		{"pauses", "", 1, func(s *record.Summary) float64 { return float64(s.Network.Pauses) }},
		{"lab time", "us", 1, func(s *record.Summary) float64 { return s.LabTimeUS }},
	}
	for i, c := range like.Collectives {
		out = append(out, metric{fmt.Sprintf("%s (%d), busbw", c.Name, i), "Gb/s", -1, func(s *record.Summary) float64 {
			if i >= len(s.Collectives) {
				return math.NaN()
			}
			return s.Collectives[i].BusBWGbps
		}})
	}
	return out
}

func comparePoint(point string, a, b Side) ([]Difference, error) {
	var out []Difference
	for _, m := range metrics(a[0].Summary) {
		va, vb := a.values(m), b.values(m)
		if len(va) == 0 || len(vb) == 0 || slices.Max(va) == 0 && slices.Max(vb) == 0 {
			continue
		}
		d := Difference{Point: point, Metric: m.name, Unit: m.unit, A: stats.MeanInterval(va), B: stats.MeanInterval(vb), Noise: "seeds", P: 1, Adjusted: 1, sign: m.sign}
		switch {
		case len(va) > 1 && len(vb) > 1:
			d.P = stats.MannWhitney(va, vb)
			d.exact = sameSimulations(a, b)
		case len(va) == 1 && len(vb) == 1:
			if err := d.overFlows(a[0], b[0]); err != nil {
				return nil, err
			}
			d.exact = sameSimulations(a, b)
		case len(va) == 1:
			d.P = stats.PredictionTest(va[0], vb)
		default:
			d.P = stats.PredictionTest(vb[0], va)
		}
		if d.A.Mean != 0 {
			d.Change = d.B.Mean/d.A.Mean - 1
		}
		out = append(out, d)
	}
	return out, nil
}

// sameSimulations reports whether both sides are simulations of the same seeds. Seed by seed they differ only by what was changed
// between them, and so do the means of their differences.
func sameSimulations(a, b Side) bool {
	x, y := a.seeds(), b.seeds()
	return x != nil && slices.Equal(x, y)
}

// seeds are those of a side in order, nil if any of its runs was emulated.
func (s Side) seeds() []uint64 {
	var out []uint64
	for _, r := range s {
		if r.Summary.Engine != "sim" {
			return nil
		}
		out = append(out, r.Summary.Seed)
	}
	slices.Sort(out)
	return out
}

func (s Side) values(m metric) []float64 {
	var out []float64
	for _, r := range s {
		if v := m.get(r.Summary); !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// overFlows holds a difference between two runs against the spread of their flows, for what is a statistic of flows. Anything
// else of an emulation has no noise to be held against; of two simulations it is exact.
func (d *Difference) overFlows(a, b *Run) error {
	column, statistic := "fct_ps", func(s []float64) float64 { return stats.Quantile(s, 0.99) / 1e6 }
	switch d.Metric {
	case "flow completion, p99":
	case "flow completion, mean":
		statistic = func(s []float64) float64 { return stats.Mean(s) / 1e6 }
	case "slowdown, p99":
		column, statistic = "slowdown", func(s []float64) float64 { return stats.Quantile(s, 0.99) }
	default:
		d.Noise = "unknown"
		if a.Summary.Engine == "sim" && b.Summary.Engine == "sim" {
			d.Noise, d.Beyond = "none", d.A.Mean != d.B.Mean
		}
		return nil
	}
	va, err := store.Numbers(a.Dir, store.FlowsFile, column)
	if err != nil {
		return err
	}
	vb, err := store.Numbers(b.Dir, store.FlowsFile, column)
	if err != nil {
		return err
	}
	d.Noise, d.A, d.B = "flows", stats.Bootstrap(va, statistic), stats.Bootstrap(vb, statistic)
	d.P = stats.ZTest(d.A, d.B)
	return nil
}

// SingleSeeds is what is to be said of a comparison in which a side has one run of a point; "" where both always have several.
func SingleSeeds(all []Difference) string {
	for _, d := range all {
		if d.Noise != "seeds" {
			return "one run on each side: differences over flows are of this seed, and another may differ by more; compare sweeps over seeds, four at least on each side"
		}
	}
	return ""
}

// leastSeeds is how many seeds each side needs for the Mann-Whitney U test to see anything at alpha.
const leastSeeds = 4

// FewSeeds says of a comparison that its sides have too few seeds to show any difference, or one at a single point among all
// that is compared; "" where all have enough, or where, in a gate, simulations of the same seeds are compared as they are.
func FewSeeds(all []Difference, gate bool) string {
	type held struct {
		n       int // seeds of the side that has fewer
		numbers int // that are held against chance over seeds
		shows   bool
		hides   bool // a number differs and is not beyond noise
	}
	points := map[string]*held{}
	tests := 0
	for _, d := range all {
		if d.Noise == "seeds" || d.Noise == "flows" {
			tests++
		}
		n := min(d.A.N, d.B.N)
		if d.Noise != "seeds" || n < 2 || gate && d.exact {
			continue
		}
		if n < leastSeeds {
			return fmt.Sprintf("%d seeds a side show no difference, however large: take %d at least", n, leastSeeds)
		}
		h := points[d.Point]
		if h == nil {
			h = &held{n: n}
			points[d.Point] = h
		}
		h.n = min(h.n, n)
		h.numbers++
		h.shows = h.shows || d.Beyond
		h.hides = h.hides || !d.Beyond && d.A.Mean != d.B.Mean
	}
	for _, point := range slices.Sorted(maps.Keys(points)) {
		h := points[point]
		// Where all numbers of a point are as far apart as they can be, each has the least p, and their ranks are the first ones.
		attainable := func(n int) float64 { return stats.MinMannWhitney(n, n) * float64(tests) / float64(h.numbers) }
		if h.shows || !h.hides || attainable(h.n) < alpha {
			continue
		}
		enough := h.n
		for attainable(enough) >= alpha {
			enough++
		}
		return fmt.Sprintf("%d seeds a side cannot show a difference at one point of %d among %d numbers, however large: take %d at least",
			h.n, len(points), tests, enough)
	}
	return ""
}

// Comparison is the table of what differs.
func Comparison(all []Difference) Table {
	t := Table{Head: []string{"point", "metric", "unit", "A", "B", "change", "p adjusted", "noise", ""}, Numbers: 3, Words: 7}
	for _, d := range all {
		change, word := "~", ""
		switch {
		case d.Verdict == Unknown:
			change = "?"
		case d.Verdict != Same:
			change, word = d.By(), d.Verdict
		}
		p := ""
		switch {
		case word != "" && !d.Beyond:
			p = "exact" // what a gate judged as it is
		case d.Noise != "seeds" && d.Noise != "flows":
		case d.Adjusted < 0.001:
			p = "<0.001"
		default:
			p = fmt.Sprintf("%.3f", d.Adjusted)
		}
		t.Rows = append(t.Rows, []string{d.Point, d.Metric, d.Unit, interval(d.A), interval(d.B), change, p, d.Noise, word})
	}
	return t
}

// By writes by how much the second side differs from the first.
func (d *Difference) By() string {
	if d.A.Mean == 0 {
		return "from 0"
	}
	return fmt.Sprintf("%+.1f %%", 100*d.Change)
}

// interval writes a mean and half the width of its interval, unless that is no more than what rounding leaves.
func interval(i stats.Interval) string {
	if i.High-i.Low <= 1e-12*math.Abs(i.Mean) {
		return number(i.Mean)
	}
	return fmt.Sprintf("%s ±%s", number(i.Mean), number((i.High-i.Low)/2))
}
