package paper

import (
	"fmt"
	"math"

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
	Verdict   string `json:"verdict"` // pass, fail, skipped
	Note      string `json:"note,omitempty"`
}

// The verdicts of a row.
const (
	Pass    = "pass"
	Fail    = "fail"
	Skipped = "skipped"
)

// Judge compares the claims of a figure with its runs.
func (f *Figure) Judge(points []expect.Point, quick bool) []Row {
	rows := make([]Row, len(f.Claims))
	for i := range f.Claims {
		c := &f.Claims[i]
		rows[i] = Row{ID: f.ID, Figure: f.Figure, Claim: c.Claim, Paper: c.Paper, Class: c.Class,
			Tolerance: c.tolerance(), Note: c.Note}
		if quick && (c.Quick == "skip" || f.Quick.Skip) {
			rows[i].Verdict, rows[i].Note = Skipped, "not with --quick"
			continue
		}
		c.judge(points, &rows[i])
	}
	return rows
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

func (c *Claim) judge(points []expect.Point, r *Row) {
	fail := func(err error) {
		r.Verdict = Fail
		r.note(err.Error())
	}
	r.Verdict = Pass
	var ours expect.Quantity
	if c.Ours != "" {
		e, err := expect.ParseValue(c.Ours)
		if err == nil {
			ours, err = e.Value(points)
		}
		if err != nil {
			fail(err)
			return
		}
		r.Ours = ours.Text
	}
	if c.Holds != "" {
		e, err := expect.Parse(c.Holds)
		if err != nil {
			fail(err)
			return
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

// Count returns the numbers of rows that passed, failed and were skipped.
func Count(rows []Row) (passed, failed, skipped int) {
	for _, r := range rows {
		switch r.Verdict {
		case Pass:
			passed++
		case Fail:
			failed++
		default:
			skipped++
		}
	}
	return passed, failed, skipped
}
