package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/internal/natural"
	"weft/internal/plural"
	"weft/results/record"
)

// Counts are the numbers of a comparison, counted by their verdicts.
type Counts struct {
	Numbers    int `json:"numbers"`
	Worse      int `json:"worse"`
	Better     int `json:"better"`
	Differs    int `json:"differs"`
	Same       int `json:"same"`
	Unjudged   int `json:"unjudged"`     // they differ, and nothing tells by how much they vary
	Suspect    int `json:"suspect"`      // of these, those that are worse by more than the tolerance
	Lost       int `json:"lost"`         // of the unjudged, those that more runs of NEW than of BASE lack
	Unmeasured int `json:"not_measured"` // by one of the sides
}

// Count counts differences by their verdicts.
func Count(all []Difference) Counts {
	t := Counts{Numbers: len(all)}
	for i := range all {
		switch all[i].Verdict {
		case Worse:
			t.Worse++
		case Better:
			t.Better++
		case Differs:
			t.Differs++
		case Same:
			t.Same++
		case Unknown:
			t.Unjudged++
		case Unmeasured:
			t.Unmeasured++
		}
		if all[i].Suspect {
			t.Suspect++
		}
		if all[i].Lost {
			t.Lost++
		}
	}
	return t
}

// UnjudgedNote says how many numbers cannot be judged for want of runs, and what would let them be;
// "" if there are none.
func UnjudgedNote(all []Difference) string {
	noises := map[Noise]bool{}
	fewest, unjudged := math.MaxInt, 0 // seeds of a side
	for i := range all {
		if d := &all[i]; d.Verdict == Unknown && !d.partly { // else see LackNote
			noises[d.Noise], fewest = true, min(fewest, d.A.N, d.B.N)
			unjudged++
		}
	}
	var why []string
	for _, one := range []struct {
		noise Noise
		text  string
	}{
		{unknownNoise, "one run on a side, emulated or of another seed, does not tell how much they vary"},
		{tooFew, fmt.Sprintf("a side has fewer than %d flows", minFlows)},
		{seedNoise, "there are too few seeds"},
	} {
		if noises[one.noise] {
			why = append(why, one.text)
		}
	}
	if why == nil {
		return ""
	}
	seeds := fmt.Sprintf("at least %d seeds, and more where many numbers are compared", minSeeds)
	if fewest >= minSeeds {
		seeds = fmt.Sprintf("more than %d seeds, since many numbers are compared", fewest)
	}
	return fmt.Sprintf("cannot be judged: %d of %s, since %s; give each side %s", unjudged,
		plural.Count(len(all), "number"), strings.Join(why, ", and "), seeds)
}

// The sides of a comparison, as messages and JSON name them.
const (
	Base    = "BASE"
	Changed = "NEW"
)

// A Lack is a run of one side without an ok run of the same point and seed on the other.
type Lack struct {
	Side   string `json:"side"`   // which lacks it: BASE or NEW
	Point  string `json:"point"`  // with its seed; empty outside a sweep
	Status string `json:"status"` // of the counterpart, such as failed, or why there is none
	Tried  bool   `json:"tried"`  // there is a counterpart, which is not ok
}

func (l Lack) String() string {
	return fmt.Sprintf("%s lacks %s: %s", l.Side, cmp.Or(l.Point, "the run"), l.Status)
}

// Lacking lists the runs of each side without an ok counterpart on the other. One run is compared
// with several seeds as it is, so a BASE of one seed lacks none.
func Lacking(a, b Side) (all []Lack) {
	for _, p := range pairs(a, b) {
		all = append(all, p.lacks(Changed)...)
	}
	for _, p := range pairs(b, a) {
		if !p.single {
			all = append(all, p.lacks(Base)...)
		}
	}
	return append(all, dropped(a, b)...)
}

// dropped lists the runs of BASE that are not ok there, and that NEW did not try: a change does not
// mend a failure by leaving it out.
func dropped(base, changed Side) (all []Lack) {
	by := namePartsOf(base, changed)
	before, after := base.byPoint(by), changed.byPoint(by)
	oneEach := len(before) == 1 && len(after) == 1 && !by.strictly // compared under whatever names
	for _, name := range slices.SortedFunc(maps.Keys(before), natural.Compare) {
		runs, now := before[name], after[name]
		if now == nil && oneEach || now != nil && len(runs.sharing(now)) == 0 { // of other seeds
			continue
		}
		for _, r := range runs {
			if r.tried() && !slices.Contains(runs.done(), r) && len(Side{r}.sharing(now)) == 0 {
				lack := r.missingFrom(nil, name, len(runs) > 1)
				lack.Side, lack.Status = Changed, lack.Status+", and "+r.status()+" in "+Base
				all = append(all, lack)
			}
		}
	}
	return all
}

// tried reports whether the run was begun.
func (r *Run) tried() bool { return r.Dir != "" || r.Summary != nil }

// lacks returns the missing runs of a pair as those that a side lacks.
func (p *pair) lacks(side string) []Lack {
	out := slices.Clone(p.missing)
	for i := range out {
		out[i].Side = side
	}
	return out
}

// A Trouble is a run of a side whose numbers a gate does not take for a success, or a sweep whose
// expectations across points are missed, or not judged yet.
type Trouble struct {
	Side    string `json:"side"`
	Run     string `json:"run"`             // empty for a sweep
	Point   string `json:"point"`           // of a sweep: its lab
	Sweep   bool   `json:"sweep,omitempty"` // the trouble is across points
	Outcome string `json:"outcome"`         // see record.Outcome
	kinds   []string
}

func (t Trouble) String() string {
	who := strings.TrimSpace(t.Point + " " + t.Run)
	return fmt.Sprintf("%s is not ok: %s: %s", t.Side, cmp.Or(who, "the run"), t.Outcome)
}

// OfFidelity reports whether only the fidelity of the run is not ok, which table.Doubts tells.
func (t Trouble) OfFidelity() bool {
	return !slices.ContainsFunc(t.kinds, func(kind string) bool {
		return kind != record.Degraded && kind != record.Invalid && kind != record.Unjudged
	})
}

// missedKind is the kind of trouble of a run that missed expectations. The others are statuses of
// runs and verdicts of fidelities.
const missedKind = "missed"

// UnjudgedKind is what Gate.Accept has for numbers, and fidelities, that cannot be judged.
const UnjudgedKind = record.Unjudged

// Kinds are what a gate can be told to accept in NEW.
var Kinds = []string{missedKind, record.Degraded, record.Invalid, record.Unverified, record.Unfinished, record.Failed,
	UnjudgedKind}

// troubles lists the runs of a side that are not ok, or missed expectations, or whose fidelity is
// not ok, and its sweeps that missed expectations across points. Of BASE, whose expectations are
// not under test, those with an invalid fidelity alone.
func troubles(s Side, side string, by nameParts) (all []Trouble) {
	add := func(t Trouble, o record.Outcome) {
		t.Side, t.Outcome = side, o.String()
		switch {
		case o.Status != record.OK:
			t.kinds = []string{o.Status}
		case o.Doubtful():
			t.kinds = []string{o.Fidelity}
		}
		if o.Status == record.OK && o.Missed > 0 {
			t.kinds = append(t.kinds, missedKind)
		}
		if side == Base {
			t.kinds = slices.DeleteFunc(t.kinds, func(kind string) bool { return kind != record.Invalid })
		}
		if len(t.kinds) > 0 {
			all = append(all, t)
		}
	}
	for _, r := range s {
		if r.tried() { // else see Lacking
			add(Trouble{Run: r.Dir, Point: r.pointName(by)}, r.Outcome())
		}
	}
	for _, judged := range s.across() {
		add(Trouble{Point: judged.Lab, Sweep: true}, judged.Outcome())
	}
	return all
}

// across returns the expectations across points of the sweeps of a side, each sweep once.
func (s Side) across() (all []*record.Summary) {
	for _, r := range s {
		for _, judged := range r.judged {
			if !slices.Contains(all, judged) {
				all = append(all, judged)
			}
		}
	}
	return all
}

// A Gate decides whether a comparison lets a change pass.
type Gate struct {
	Tolerance string          // as the user wrote it: 1%
	Accept    map[string]bool // of Kinds
	Partial   bool            // a point that only one side has is no failure
}

// A Comparison is what a comparison found: the output of `weft results compare --json`.
type Comparison struct {
	Counts
	Differences []Difference `json:"differences"`
	Lacking     []Lack       `json:"lacking"`
	Troubles    []Trouble    `json:"troubles"`
	// Fails says why the gate of --fail-if does not let the change pass. It is empty if it does,
	// and null without a gate.
	Fails []string `json:"fails"`
}

// NewComparison sums up the judged differences between two sides.
func NewComparison(a, b Side, all []Difference) *Comparison {
	by := namePartsOf(a, b)
	c := &Comparison{Counts: Count(all), Differences: all, Lacking: Lacking(a, b),
		Troubles: append(troubles(b, Changed, by), troubles(a, Base, by)...)}
	// JSON has no null for a list.
	c.Differences, c.Lacking = slices.Concat([]Difference{}, c.Differences), slices.Concat([]Lack{}, c.Lacking)
	c.Troubles = slices.Concat([]Trouble{}, c.Troubles)
	return c
}

// onlyNew reports whether all that was not compared is new.
func (c *Comparison) onlyNew() bool {
	return len(c.Lacking) > 0 && !slices.ContainsFunc(c.Lacking, func(l Lack) bool { return l.Side != Base })
}

// Judge sets Fails. A gate fails for what it did not look at, too: a number that cannot be judged
// and looks worse, a comparison without any number that can, a point that a side lacks.
func (g Gate) Judge(c *Comparison) {
	c.Fails = []string{}
	fails := func(format string, args ...any) { c.Fails = append(c.Fails, fmt.Sprintf(format, args...)) }
	if c.Worse > 0 {
		be := "are"
		if c.Worse == 1 {
			be = "is"
		}
		fails("%d of %s %s worse by more than %s", c.Worse, plural.Count(c.Numbers, "number"), be, g.Tolerance)
	}
	switch unjudged := !g.Accept[UnjudgedKind]; {
	case unjudged && c.Suspect > 0:
		fails("%d of %s cannot be judged, and %d of them would be worse by more than %s", c.Unjudged,
			plural.Count(c.Numbers, "number"), c.Suspect, g.Tolerance)
	case unjudged && c.Unjudged > 0 && c.Unjudged+c.Unmeasured == c.Numbers:
		fails("none of %s can be judged", plural.Count(c.Numbers, "number"))
	}
	if c.Lost > 0 && !g.Accept[UnjudgedKind] {
		first := c.Differences[slices.IndexFunc(c.Differences, func(d Difference) bool { return d.Lost })]
		fails("more runs of %s than of %s lack %d of %s (%s: %d of %d)", Changed, Base, c.Lost,
			plural.Count(c.Numbers, "number"), first.Metric, first.LackB, first.LackB+first.B.N)
	}
	if undirected := slices.DeleteFunc(slices.Clone(c.Differences), func(d Difference) bool {
		return d.Verdict != Differs || !d.of.printed
	}); len(undirected) > 0 && !g.Accept[UnjudgedKind] {
		fails("%s of programs by more than %s, and their names do not say which direction is worse (%s): _us, _ms and "+
			"_s end those of times, _gbps, _mbps and _per_s those of rates", differ(len(undirected)), g.Tolerance,
			undirected[0].Metric)
	}
	if c.Unmeasured > 0 && !g.Partial {
		fails("one side did not measure %d of %s", c.Unmeasured, plural.Count(c.Numbers, "number"))
	}
	lacks := map[string]int{}
	for _, l := range c.Lacking {
		if tried := l.Tried && l.Side == Changed; tried && !g.Accept[l.Status] || !tried && !g.Partial {
			lacks[l.Side]++
		}
	}
	for _, side := range []string{Changed, Base} {
		if n := lacks[side]; n > 0 {
			other := map[string]string{Changed: Base, Base: Changed}[side]
			fails("%s lacks a successful run for %s of %s", side, plural.Count(n, "run"), other)
		}
	}
	g.judgeTroubles(c)
	if len(c.Fails) == 0 && c.Numbers == 0 && !g.Accept[UnjudgedKind] && !(g.Partial && c.onlyNew()) {
		fails("no number was compared")
	}
}

// judgeTroubles adds to Fails how many runs and sweeps of each side have trouble of each kind that
// the gate does not accept.
func (g Gate) judgeTroubles(c *Comparison) {
	type group struct {
		side, kind string
		sweep      bool
	}
	var groups []group
	count := map[group]int{}
	for _, t := range c.Troubles {
		for _, kind := range t.kinds {
			of := group{t.Side, kind, t.Sweep}
			if g.Accept[kind] {
				continue
			}
			if count[of]++; count[of] == 1 {
				groups = append(groups, of)
			}
		}
	}
	slices.SortStableFunc(groups, func(x, y group) int { // runs come before sweeps in Troubles
		return cmp.Or(strings.Compare(y.side, x.side), strings.Compare(x.kind, y.kind))
	})
	for _, of := range groups {
		what := "run"
		if of.sweep {
			what = "sweep"
		}
		c.Fails = append(c.Fails, troubleText(plural.Count(count[of], what)+" of "+of.side, of.kind, of.sweep))
	}
}

// differ says that n numbers differ.
func differ(n int) string {
	if n == 1 {
		return "1 number differs"
	}
	return fmt.Sprintf("%d numbers differ", n)
}

// troubleText says what trouble runs or sweeps of a side have. which says how many there are.
func troubleText(which, kind string, sweep bool) string {
	switch kind {
	case missedKind:
		if sweep {
			return which + " missed expectations across points"
		}
		return which + " missed expectations"
	case record.Degraded, record.Invalid, record.Unjudged:
		return "fidelity " + kind + " in " + which
	}
	return which + " " + kind
}
