package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/internal/clip"
	"weft/results/expect"
	"weft/results/names"
	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
	"weft/results/table"
	"weft/units"
)

// A Difference is one row of a comparison: one metric at one point.
type Difference struct {
	Point  string         `json:"point"` // of the sweep, without the seed; empty outside a sweep
	Metric string         `json:"metric"`
	Unit   string         `json:"unit,omitempty"`
	A      stats.Interval `json:"a"`
	B      stats.Interval `json:"b"`
	// LackA and LackB count the runs of a side that did not measure the number. A and B are of the
	// others.
	LackA int `json:"lack_a,omitempty"`
	LackB int `json:"lack_b,omitempty"`
	// Change is the difference from A to B as a share of A's size; 0 if A is 0.
	Change float64 `json:"change"`
	Noise  Noise   `json:"noise"`
	// P is the probability of such a difference by chance. Adjusted corrects it for the number of
	// differences in the comparison (stats.BenjaminiHochberg), and decides. Both are 1 without a
	// test.
	P        float64 `json:"p"`
	Adjusted float64 `json:"p_adjusted"`
	Beyond   bool    `json:"beyond"` // Adjusted is below alpha, or the difference is exact
	// Verdict is the result of B against A, set by Judge.
	Verdict Verdict `json:"verdict"`
	// Suspect is set if the verdict is unknown, and the number is worse by more than the tolerance.
	Suspect bool `json:"suspect,omitempty"`
	// Lost is set if the verdict is unknown because more runs of B than of A lack the number.
	Lost bool `json:"lost,omitempty"`

	of    metric
	words string // the point in words
	exact bool   // simulations of the same seeds, which differ only by what was changed
	// shared are the values of A and B at the only seed of one side, if the other has more seeds,
	// that one too, and all runs are simulations; else nil.
	shared *[2]float64
	same   bool // all seeds of a side gave the same result, and count as one
	// uneven is set if the runs that lack the number are not of the same seeds on both sides, and
	// more if B has more of them. partly is set if the verdict is unknown for that reason.
	uneven, more, partly bool
}

// A Verdict is what a difference means.
type Verdict string

// The verdicts of Judge.
const (
	Worse      Verdict = "worse"
	Better     Verdict = "better"
	Differs    Verdict = "differs" // neither direction is worse
	Same       Verdict = "same"
	Unknown    Verdict = "unknown"      // it cannot be judged
	Unmeasured Verdict = "not measured" // by one side, whose N is 0
)

// A Noise is the source of variation that a difference is tested against.
type Noise string

const (
	seedNoise    Noise = "seeds"
	flowNoise    Noise = "flows"   // of one run a side
	noNoise      Noise = "none"    // of exact simulations
	unknownNoise Noise = "unknown" // of one run a side, emulated or of another seed
	tooFew       Noise = "too few" // of a statistic of fewer than minFlows flows on a side
	noValue      Noise = "not measured"
)

// Judge sets the verdict of every difference. A change of at most tolerance, a share of A, is the
// same. By default only differences beyond noise count. With exact, any difference between
// simulations of the same seeds counts too: they are deterministic, so only the change under test
// can cause it. If a side has one seed, the runs of that seed are compared. A number that differs
// cannot be judged if nothing tells its noise: one emulation a side, few flows, or so few seeds
// that no difference would count, or if other runs lack it on either side (Difference.doubt). worse
// is the number of differences for the worse.
func Judge(all []Difference, tolerance float64, exact bool) (worse int) {
	_, few := fewSeeds(all, exact)
	for i := range all {
		d := &all[i]
		sign := float64(d.of.Worse)
		a, b, by := d.A.Mean, d.B.Mean, math.Abs(d.Change)
		if exact && d.shared != nil && !d.Beyond {
			a, b = d.shared[0], d.shared[1]
			by = math.Abs((b - a) / a)
		}
		differs := d.Beyond || exact && (d.exact || d.shared != nil) && a != b
		if a == 0 {
			by = math.Inf(1)
		}
		undecided := d.Noise == unknownNoise || d.Noise == tooFew || d.Noise == seedNoise && few[d.Point]
		differs = differs || undecided && d.of.Trouble && a == 0
		d.Suspect = false
		switch change := b - a; {
		case d.Noise == noValue:
			d.Verdict = Unmeasured
		case !differs && undecided && change != 0:
			d.Verdict = Unknown
			d.Suspect = change*sign > 0 && by > tolerance
		case !differs || change == 0 || by <= tolerance:
			d.Verdict = Same
		case sign == 0:
			d.Verdict = Differs
		case change*sign > 0:
			d.Verdict = Worse
			worse++
		default:
			d.Verdict = Better
		}
		d.doubt((b-a)*sign > 0 && by > tolerance)
	}
	return worse
}

// ErrNoCommonPoint is returned by Compare if the sides share no measured point.
var ErrNoCommonPoint = errors.New("the two sides have no measured point in common")

// minFlows is the number of flows below which a bootstrap knows nothing of how much they vary: it
// can only draw the few values again. Our own choice.
const minFlows = 10

// alpha is the accepted share of false positives among the differences that count.
const alpha = 0.05

// A Side is the runs on one side of a comparison.
type Side []*Run

// LoadSide reads the runs of a side. A point of its sweep without a run is a run without a summary
// and a directory.
func LoadSide(found store.Found) (Side, error) {
	var s Side
	for _, dir := range found.Runs {
		r, err := Load(dir)
		if err != nil {
			return nil, err
		}
		if point := found.Points[dir]; point != nil {
			r.Manifest.Point = point
			if r.Summary != nil {
				r.Summary.Point = point
			}
		}
		r.named, r.judged = found.Labs, found.Judged
		s = append(s, r)
	}
	for _, n := range found.Lacking {
		s = append(s, &Run{NoSummary: n.Error, named: found.Labs, judged: found.Judged, Manifest: &record.Manifest{
			Lab: n.Lab, Point: n.Point, Engine: n.Engine, Seed: n.Seed, Status: n.Status, Error: n.Error}})
	}
	return s, nil
}

// Summaries returns the summaries of the runs that have one.
func (s Side) Summaries() []*record.Summary {
	var all []*record.Summary
	for _, r := range s {
		if r.Summary != nil {
			all = append(all, r.Summary)
		}
	}
	return all
}

// Compare returns the differences between two sets of runs at the points that both have. With
// several seeds on both sides it tests over the seeds, by the Mann-Whitney U test; with several on
// one side only, by Student's prediction interval. A simulation is a function of lab and seed, so
// between one on each side of the same seed a difference of a counter is exact, and a difference of
// a percentile is tested against how far it would move with other flows, by bootstrap. One run on
// each side otherwise, emulations or other seeds, does not tell how much runs vary, however many
// flows it has: flows of one run are not independent of each other. Simulations of a side to which
// the seed makes no difference are one run.
func Compare(a, b Side) ([]Difference, error) {
	var out []Difference
	for _, p := range pairs(a, b) {
		if len(p.a) == 0 || len(p.b) == 0 {
			continue
		}
		if err := cmp.Or(p.a.mixed(), p.b.mixed()); err != nil {
			return nil, err
		}
		rows, err := comparePoint(p.name, p.a, p.b)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i].words = p.words
		}
		out = append(out, rows...)
	}
	if len(out) == 0 {
		return nil, ErrNoCommonPoint
	}
	var at []int
	var ps []float64
	for i, d := range out {
		if d.tested() {
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

// mixed returns an error if runs of one point and seed have other settings: they are no repetitions
// of each other, and a mean over them is one of nothing.
func (s Side) mixed() error {
	first := map[uint64]*Run{}
	for _, r := range s {
		one := first[r.seed()]
		if one == nil || one.Manifest == nil || r.Manifest == nil {
			first[r.seed()] = r
			continue
		}
		all := Side{one, r}.settings()
		for _, path := range slices.Sorted(maps.Keys(all)) {
			if v := all[path]; len(v.values) > 1 && path != "about" {
				return fmt.Errorf("%s and %s are runs of one point of %s, and differ in %s (%s, %s): they repeat no "+
					"run; expected a name of its own for each lab, or single runs of weft bench", one.Dir, r.Dir,
					clip.Text(r.Manifest.Lab), path, clip.Text(v.values[0]), clip.Text(v.values[1]))
			}
		}
	}
	return nil
}

// nameParts selects what a point's name has besides the paths of the sweep.
type nameParts struct {
	lab, engine bool
	strictly    bool // sides are directories of labs: two single points are not compared if their names differ
}

// namePartsOf selects the lab if the runs of any side are of several labs, a side has none, or all
// sides are directories of labs and not all of one; and the engine if they are of several engines,
// as with --engine both. A simulation and an emulation can still be compared, as two sides.
func namePartsOf(sides ...Side) (by nameParts) {
	by.strictly = len(sides) > 1
	labs := map[string]bool{}
	for _, s := range sides {
		by.lab = by.lab || len(s) == 0
		by.strictly = by.strictly && len(s) > 0 && s[0].named
		for _, r := range s {
			if r.Manifest == nil || s[0].Manifest == nil {
				continue
			}
			labs[r.Manifest.Lab] = true
			by.lab = by.lab || r.Manifest.Lab != s[0].Manifest.Lab
			by.engine = by.engine || r.Manifest.Engine != s[0].Manifest.Engine
		}
	}
	by.strictly = by.strictly && len(labs) > 1
	by.lab = by.lab || by.strictly
	return by
}

// pointName returns the name of a run's point, without the seed.
func (r *Run) pointName(by nameParts) string {
	var parts []string
	if by.lab && r.Manifest != nil {
		parts = append(parts, r.Manifest.Lab)
	}
	if by.engine && r.Manifest != nil {
		parts = append(parts, "engine="+r.Manifest.Engine)
	}
	at := r.point()
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if path != "seed" {
			parts = append(parts, fmt.Sprintf("%s=%v", path, at[path]))
		}
	}
	return strings.Join(parts, " ")
}

// pointWords returns pointName for people.
func (r *Run) pointWords(by nameParts) string {
	var parts []string
	if by.lab && r.Manifest != nil {
		parts = append(parts, r.Manifest.Lab)
	}
	if by.engine && r.Manifest != nil {
		parts = append(parts, EngineWords(r.Manifest))
	}
	at := expect.At(r.point())
	delete(at, "seed")
	if words := names.Label(at, slices.Sorted(maps.Keys(at))); words != "" {
		parts = append(parts, words)
	}
	return strings.Join(parts, ", ")
}

// comparePoint returns the differences at one point, without numbers that are 0 in all runs of both
// sides.
func comparePoint(point string, a, b Side) ([]Difference, error) {
	var out []Difference
	sharedA, sharedB := a.sharing(b), b.sharing(a)
	shared := !sameSimulations(a, b) && sameSimulations(sharedA, sharedB)
	oneA, sameA := a.oneIfSame()
	oneB, sameB := b.oneIfSame()
	for _, m := range metricsOf(oneA, oneB) {
		inA, inB := oneA.with(m), oneB.with(m)
		va, vb := inA.values(m), inB.values(m)
		d := Difference{Point: point, Metric: m.Label, Unit: string(m.Unit), A: stats.MeanInterval(va),
			B: stats.MeanInterval(vb), Noise: seedNoise, P: 1, Adjusted: 1, of: m, same: sameA || sameB}
		d.lacks(m, oneA, oneB)
		if len(va)+len(vb) == 0 || len(va) > 0 && len(vb) > 0 && !d.uneven && m.quiet(va, vb) {
			continue
		}
		if len(va) == 0 || len(vb) == 0 {
			d.Noise = noValue
			out = append(out, d)
			continue
		}
		exact := sameSimulations(a.with(m), b.with(m))
		switch {
		case len(va) > 1 && len(vb) > 1:
			d.P = stats.MannWhitney(va, vb)
			d.exact = exact
		case len(va) == 1 && len(vb) == 1:
			d.exact, d.Noise = exact, unknownNoise
			if exact {
				if err := d.testFlows(inA[0], inB[0]); err != nil {
					return nil, err
				}
			}
		case len(va) == 1:
			d.P = stats.PredictionTest(va[0], vb)
		default:
			d.P = stats.PredictionTest(vb[0], va)
		}
		if x, y := sharedA.values(m), sharedB.values(m); shared && len(x) > 0 && len(y) > 0 {
			d.shared = &[2]float64{stats.Mean(x), stats.Mean(y)}
		}
		if d.A.Mean != 0 {
			d.Change = (d.B.Mean - d.A.Mean) / math.Abs(d.A.Mean)
		}
		out = append(out, d)
	}
	return out, nil
}

// sameSimulations reports whether both sides are simulations of the same seeds. Then each pair of
// runs, and so the means, differ only by what was changed between the sides.
func sameSimulations(a, b Side) bool {
	x, y := a.seeds(), b.seeds()
	return x != nil && slices.Equal(x, y)
}

// seeds returns the seeds of a side in order, nil if any of its runs was emulated.
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

// testFlows tests a difference between two simulations of one seed against the spread of their
// flows, if the metric is a statistic of flows. Other metrics are exact between them.
func (d *Difference) testFlows(a, b *Run) error {
	of, statistic := flowCompletion, func(s []float64) float64 { return stats.Quantile(s, 0.99) }
	switch d.of.Name {
	case "fct.p99":
	case "fct.mean":
		statistic = stats.Mean
	case "fct_slowdown.p99":
		of = flowSlowdown
	default:
		d.Noise, d.Beyond = noNoise, d.A.Mean != d.B.Mean
		return nil
	}
	va, err := flowValues(a.Dir, of)
	if err != nil {
		return err
	}
	vb, err := flowValues(b.Dir, of)
	if err != nil {
		return err
	}
	if min(len(va), len(vb)) < minFlows {
		d.Noise = tooFew
		return nil
	}
	d.Noise, d.A, d.B = flowNoise, stats.Bootstrap(va, statistic), stats.Bootstrap(vb, statistic)
	d.P = stats.ZTest(d.A, d.B)
	return nil
}

// SingleSeedWarning returns a warning if a side has one run of a point, or several that are the
// same, else "". Simulations of the same seeds need none where their differences are exact.
func SingleSeedWarning(all []Difference, exact bool) string {
	for _, d := range all {
		if exact && d.exact {
			continue
		}
		if d.same {
			return "the seeds of a side gave the same result, and count as one run: nothing in the lab is drawn from " +
				"the seed; with workload.N.jitter, for one, start times are"
		}
		if d.Noise != seedNoise && d.Noise != noValue {
			return fmt.Sprintf("one run on a side: differences over flows hold for this seed, and another seed may "+
				"differ by more; compare sweeps with at least %d seeds on each side", minSeeds)
		}
	}
	return ""
}

// minSeeds is the number of seeds that each side needs for the Mann-Whitney U test to reach alpha.
const minSeeds = 4

// NoneDiffers says that no number differs beyond noise, and first, if that is so, that there are
// too few seeds to tell. Numbers that cannot be judged are counted apart. tolerance is that of a
// gate, as the user wrote it; empty: there is none.
func NoneDiffers(all []Difference, tolerance string) string {
	beyond := "noise"
	if tolerance != "" {
		beyond += " and " + tolerance
	}
	text := fmt.Sprintf("none of %d numbers differs beyond %s", len(all), beyond)
	switch unjudged := Count(all).Unjudged; {
	case unjudged == len(all) && unjudged > 0:
		text = fmt.Sprintf("none of %d numbers can be judged", len(all))
	case unjudged > 0:
		text = fmt.Sprintf("none of the %d numbers that can be judged differs beyond %s; %d of %d cannot be judged",
			len(all)-unjudged, beyond, unjudged, len(all))
	}
	if FewSeedsWarning(all, tolerance != "") != "" {
		return "too few seeds to tell: " + text
	}
	return text
}

// ComparisonTable lists differences: ~ is no difference beyond noise, ? cannot be judged.
func ComparisonTable(all []Difference) table.Table {
	t := table.Table{Head: []string{"point", "metric", "A", "B", "change", "p adjusted", "noise", ""}}
	for _, d := range all {
		change, word := "~", ""
		switch {
		case d.Verdict == Unknown:
			change = "?"
			if d.Suspect {
				change += " " + d.changeText()
			}
		case d.Verdict == Unmeasured:
			change, word = "", string(Unmeasured)
		case d.Verdict != Same:
			change, word = d.changeText(), string(d.Verdict)
		}
		p := ""
		switch {
		case d.Verdict == Unmeasured:
		case d.A.Mean == 0 && word != "" && !d.Beyond && !d.exact && d.shared == nil:
			p = "from 0" // needs no test
		case word != "" && !d.Beyond:
			p = "exact" // judged by a gate without a test
		case d.Noise == tooFew:
			p = fmt.Sprintf("fewer than %d flows", minFlows)
		case !d.tested():
		case d.Adjusted < 0.001:
			p = "<0.001"
		default:
			p = fmt.Sprintf("%.3f", d.Adjusted)
		}
		if lack := d.lackText(); lack != "" && d.Verdict != Unmeasured {
			word = strings.TrimPrefix(word+", "+lack, ", ")
		}
		a, b := interval(d.A, d.Unit), interval(d.B, d.Unit)
		switch {
		case d.Noise == noValue && d.A.N == 0:
			a = "–"
		case d.Noise == noValue:
			b = "–"
		}
		result := table.Left(word)
		switch d.Verdict {
		case Better:
			result.Mark = table.MarkGood
		case Worse:
			result.Mark = table.MarkBad
		}
		t.Add(table.Left(d.Point), table.Left(d.Metric), table.Right(a), table.Right(b), table.Right(change),
			table.Right(p),
			table.Left(string(d.Noise)), result)
	}
	return t
}

// tested reports whether the difference was tested against noise.
func (d *Difference) tested() bool { return d.Noise == seedNoise || d.Noise == flowNoise }

// changeText returns the change from A to B in percent.
func (d *Difference) changeText() string {
	if d.A.Mean == 0 {
		return "from 0"
	}
	return units.FormatChange(d.Change)
}

// interval formats a mean of a unit and half the width of its interval, unless the width is a
// rounding error.
func interval(i stats.Interval, unit string) string {
	in := units.ScaleOf(unit, i.Mean)
	text := units.Number(i.Mean / in.Of)
	if i.High-i.Low > 1e-12*math.Abs(i.Mean) {
		text += " ±" + units.Number((i.High-i.Low)/2/in.Of)
	}
	return strings.TrimSpace(text + " " + in.Unit)
}
