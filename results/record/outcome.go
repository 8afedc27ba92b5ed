package record

import (
	"fmt"
	"slices"
)

// Outcome is how a run ended. Every list, page and report that tells a run's status takes it from
// here, so that all say the same of one run.
type Outcome struct {
	Status           string // of the run, as in its manifest
	Fidelity         string // verdict of an emulation, or Unjudged; empty: none is due
	Missed, Expected int    // expectations that were judged
	Skipped          int    // those that were not
	Unproven         int    // those that were met, which proves nothing: see Expect.Unproven
}

// Outcome returns how the run ended.
func (s *Summary) Outcome() Outcome {
	o := Outcome{Status: s.Status}
	o.Expected, o.Skipped = s.Judged()
	switch {
	case s.lacksVerdict(), s.Fidelity != nil && s.Fidelity.Unjudged() != "":
		o.Fidelity = Unjudged
	case s.Fidelity != nil:
		o.Fidelity = s.Fidelity.Verdict
	}
	for i := range s.Expect {
		if s.Expect[i].Missed() {
			o.Missed++
		}
		if s.Expect[i].OK && s.Expect[i].Unproven {
			o.Unproven++
		}
	}
	return o
}

// Outcome returns how a run without a summary ended, or that it is in progress.
func (m *Manifest) Outcome() Outcome { return Outcome{Status: m.Status} }

// String returns the outcome in a word or two, the worst first: a status other than ok, "fidelity
// invalid", "missed 1 of 3", "fidelity degraded", "1 of 3 without proof", "ok, 1 skipped" or ok.
func (o Outcome) String() string {
	switch {
	case o.Status != OK:
		return o.Status
	case o.Fidelity == Invalid:
		return "fidelity " + Invalid
	case o.Missed > 0:
		return fmt.Sprintf("missed %d of %d", o.Missed, o.Expected)
	case o.Doubtful():
		return "fidelity " + o.Fidelity
	case o.Unproven > 0:
		return fmt.Sprintf("%d of %d without proof", o.Unproven, o.Expected)
	case o.Skipped > 0:
		return fmt.Sprintf("%s, %d skipped", OK, o.Skipped)
	}
	return OK
}

// Doubtful reports whether a fidelity is not ok, or should have been judged and was not.
func (o Outcome) Doubtful() bool { return o.Fidelity != "" && o.Fidelity != OK }

// Worse returns the worse of two fidelities: none or ok, degraded, unjudged, which may be anything,
// or invalid, the worst.
func Worse(a, b string) string {
	order := []string{OK, Degraded, Unjudged, Invalid}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// WorseFidelity reports whether the fidelity is worse than that of another outcome.
func (o Outcome) WorseFidelity(than Outcome) bool {
	return Worse(o.Fidelity, than.Fidelity) != than.Fidelity
}

// Grade says what an outcome means for whoever reads a list of runs.
type Grade int

// The grades of outcomes.
const (
	Good  Grade = iota // ok
	Doubt              // in progress, or a fidelity that is neither ok nor invalid
	Bad                // anything else
)

// String returns good, doubt or bad.
func (g Grade) String() string { return [...]string{"good", "doubt", "bad"}[g] }

// Grade returns the grade of the outcome.
func (o Outcome) Grade() Grade {
	switch {
	case o.Status == Running:
		return Doubt
	case o.Status != OK || o.Fidelity == Invalid || o.Missed > 0:
		return Bad
	case o.Doubtful() || o.Unproven > 0:
		return Doubt
	}
	return Good
}
