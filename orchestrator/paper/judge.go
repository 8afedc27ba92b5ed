package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/results/expect"
	"weft/units"
)

// Row is a row of the table of claims.
type Row struct {
	ID        string `json:"id"`
	Figure    string `json:"figure"`
	Claim     string `json:"claim"`
	Paper     string `json:"paper"`
	Ours      string `json:"ours"`
	Tolerance string `json:"tolerance"`
	Class     string `json:"class"`
	Origin    Origin `json:"origin"`
	Group     Group  `json:"group"`
	Verdict   string `json:"verdict"` // pass, fail, skipped
	Note      string `json:"note,omitempty"`
	OneSided  string `json:"one_sided,omitempty"` // why one side is enough
	Why       string `json:"why,omitempty"`       // the reason for the tolerance, if it is not the class's
}

// A Group is what a row counts to in the totals.
type Group string

// The groups, in the order of the totals.
const (
	OfPaper    Group = "paper"    // a figure's claim with the paper's number or order
	OfOurs     Group = "ours"     // a figure's claim with a limit of ours
	OfSearched Group = "searched" // a claim about a setting that was searched, of any figure
	OfNoFigure Group = NoFigure   // any other claim about what no figure shows
)

// groups are all groups, in the order of the totals.
var groups = []Group{OfPaper, OfOurs, OfSearched, OfNoFigure}

// groupWords says whose the claims of a group are.
var groupWords = map[Group]string{
	OfPaper: "of the paper", OfOurs: "of our own", OfSearched: "of searched settings", OfNoFigure: "without a figure",
}

// group returns the group of a figure's claim.
func (f *Figure) group(origin Origin) Group {
	switch {
	case origin == Searched:
		return OfSearched
	case f.Figure == NoFigure:
		return OfNoFigure
	case origin == Ours:
		return OfOurs
	}
	return OfPaper
}

// The verdicts of a row.
const (
	Pass    = "pass"
	Fail    = "fail"
	Skipped = "skipped"
)

// SeedsThatPass is the share of a figure's seeds with which a claim must pass, so that it passes.
const SeedsThatPass = 0.8

// Judge compares the claims of a figure with its runs. Those of a figure with Seeds are the runs of
// the first seed, then those of the next, and as many of each.
func (f *Figure) Judge(points []expect.Point, quick bool) []Row {
	rows := make([]Row, len(f.Claims))
	for i := range f.Claims {
		c := &f.Claims[i]
		origin := cmp.Or(c.Origin, f.Origin, OfThePaper)
		rows[i] = Row{ID: f.ID, Figure: f.Figure, Claim: c.Claim, Paper: c.Paper, Class: c.Class,
			Tolerance: c.tolerance(), Origin: origin, Group: f.group(origin), Note: c.Note, Why: c.Why}
		if c.oneSided() {
			rows[i].OneSided = cmp.Or(c.OneSided, f.OneSided)
		}
		if quick && (c.Quick == "skip" || f.Quick.Skip) {
			rows[i].Verdict, rows[i].Note = Skipped, "not with --quick"
			continue
		}
		if f.Seeds == 0 {
			c.judge(points, &rows[i])
			continue
		}
		rows[i] = c.judgeSeeds(f.Seeds, points, rows[i])
	}
	return rows
}

// judgeSeeds judges the claim with the runs of each seed. The value is that of the seed in the
// middle, and what is noted of a failure is of the first one that fails.
func (c *Claim) judgeSeeds(seeds int, points []expect.Point, r Row) Row {
	type judged struct {
		ours  string
		value expect.Quantity
	}
	var values []judged
	pass, failed, each := 0, "", len(points)/seeds
	for i := range seeds {
		one := Row{}
		value := c.judge(points[i*each:(i+1)*each], &one)
		if value.Text != "" {
			values = append(values, judged{one.Ours, value})
		}
		if one.Verdict == Pass {
			pass++
		} else {
			failed = cmp.Or(failed, one.Note)
		}
	}
	r.Verdict = Fail
	if float64(pass) >= SeedsThatPass*float64(seeds) {
		r.Verdict = Pass
	}
	if failed != "" {
		r.note(failed)
	}
	r.Ours = fmt.Sprintf("%d of %d seeds pass", pass, seeds)
	if n := len(values); n > 0 {
		slices.SortFunc(values, func(a, b judged) int { return cmp.Compare(a.value.Value, b.value.Value) })
		middle := values[(n-1)/2].ours
		if first, last := values[0].value.Text, values[n-1].value.Text; first != last {
			middle += fmt.Sprintf(", %s to %s", first, last)
		}
		r.Ours = middle + ", " + r.Ours
	}
	return r
}

// tolerance describes when the claim passes.
func (c *Claim) tolerance() string {
	number := "±" + c.Within
	switch {
	case !c.compares():
		return "must hold"
	case c.Bound != "" && c.Within == "":
		number = c.Bound
	case c.Bound != "":
		number = c.Bound + ", " + c.Within
	}
	if c.Holds != "" {
		number += ", and must hold"
	}
	return number
}

// judge judges the claim with runs. It returns the claim's value, zero without one.
func (c *Claim) judge(points []expect.Point, r *Row) (ours expect.Quantity) {
	fail := func(err error) {
		r.Verdict = Fail
		r.note(err.Error())
	}
	r.Verdict = Pass
	if c.Ours != "" {
		e, err := expect.ParseValue(c.Ours)
		if err == nil {
			ours, err = e.Value(points)
		}
		if err != nil {
			fail(err)
			return ours
		}
		r.Ours = ours.Text
	}
	if c.Holds != "" {
		e, err := expect.Parse(c.Holds)
		if err != nil {
			fail(err)
			return ours
		}
		got := e.Sweep(points)
		if !got.OK {
			r.Verdict = Fail
			r.note(got.Note)
		}
		if r.Ours == "" {
			r.Ours = map[bool]string{true: "holds", false: "does not hold"}[got.OK]
		}
	}
	if c.compares() {
		if err := c.compare(ours, r); err != nil {
			fail(err)
		}
	}
	return ours
}

// compare compares our value with the paper's number.
func (c *Claim) compare(ours expect.Quantity, r *Row) error {
	theirs, err := expect.ParseQuantity(c.Paper)
	if err != nil {
		return err
	}
	if theirs.Unit != ours.Unit {
		return fmt.Errorf("the paper's number is in %q and ours in %q", theirs.Unit, ours.Unit)
	}
	within := expect.Quantity{}
	if c.Within != "" {
		if within, err = expect.ParseQuantity(c.Within); err != nil {
			return err
		}
	}
	apart := ours.Value - theirs.Value
	if theirs.Value != 0 {
		r.Ours += fmt.Sprintf(" (%s)", units.FormatChange(apart/math.Abs(theirs.Value)))
	}
	if c.Bound == "at most" && apart <= 0 || c.Bound == "at least" && apart >= 0 {
		return nil
	}
	if near := math.Abs(apart) <= within.Value*math.Abs(theirs.Value)*(1+1e-9); !near { // or ours is no number
		r.Verdict = Fail
	}
	return nil
}

// note appends text to the row's note.
func (r *Row) note(text string) {
	if r.Note != "" {
		text += " (" + r.Note + ")"
	}
	r.Note = text
}

// Total is how the rows of a group were judged.
type Total struct {
	Group   Group `json:"group"`
	Pass    int   `json:"pass"`
	Fail    int   `json:"fail"`
	Skipped int   `json:"skipped"`
}

// Totals counts rows by group. Groups without rows are left out.
func Totals(rows []Row) []Total {
	var out []Total
	for _, g := range groups {
		t := Total{Group: g}
		for _, r := range rows {
			switch {
			case r.Group != g:
			case r.Verdict == Pass:
				t.Pass++
			case r.Verdict == Fail:
				t.Fail++
			default:
				t.Skipped++
			}
		}
		if t.Pass+t.Fail+t.Skipped > 0 {
			out = append(out, t)
		}
	}
	return out
}

// Sum returns the total of all groups.
func Sum(totals []Total) Total {
	var sum Total
	for _, t := range totals {
		sum.Pass, sum.Fail, sum.Skipped = sum.Pass+t.Pass, sum.Fail+t.Fail, sum.Skipped+t.Skipped
	}
	return sum
}

// TotalsText says how many claims of each group pass, of those that were judged: "3 of 4 claims of
// the paper pass; 1 of 2 of our own; 2 skipped".
func TotalsText(totals []Total) string {
	var parts []string
	for _, t := range totals {
		words := groupWords[t.Group]
		if len(parts) == 0 {
			words = "claims " + words + " pass"
		}
		if judged := t.Pass + t.Fail; judged > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d %s", t.Pass, judged, words))
		}
	}
	if n := Sum(totals).Skipped; n > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", n))
	}
	return cmp.Or(strings.Join(parts, "; "), "no claim")
}
