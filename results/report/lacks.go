package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/internal/plural"
)

// with returns the runs of a side that measured a metric.
func (s Side) with(m metric) Side {
	return slices.DeleteFunc(slices.Clone(s), func(r *Run) bool { return math.IsNaN(m.Value(r.Summary)) })
}

// values returns the values of a metric, without the runs that did not measure it.
func (s Side) values(m metric) []float64 {
	var out []float64
	for _, r := range s.with(m) {
		out = append(out, m.Value(r.Summary))
	}
	return out
}

// lacks counts the runs of both sides that did not measure a metric.
func (d *Difference) lacks(m metric, a, b Side) {
	seeds := func(s Side) (out []uint64) {
		for _, r := range s {
			if math.IsNaN(m.Value(r.Summary)) {
				out = append(out, r.seed())
			}
		}
		slices.Sort(out)
		return out
	}
	x, y := seeds(a), seeds(b)
	d.LackA, d.LackB = len(x), len(y)
	d.uneven = !slices.Equal(x, y)
	d.more = d.LackB > d.LackA || d.LackB*len(a) > d.LackA*len(b)
}

// doubt makes the verdict unknown if the runs that lack the number are not of the same seeds on
// both sides: clocks that never converged have no time of convergence, and the others alone look
// better than all are. What is worse even so stays worse. suspect says that the number is worse by
// more than the tolerance.
func (d *Difference) doubt(suspect bool) {
	d.Lost, d.partly = false, false
	switch {
	case !d.uneven || d.Verdict == Unmeasured || d.Verdict == Worse:
	case d.more:
		d.Verdict, d.Lost, d.partly = Unknown, true, true
	case d.Verdict != Differs:
		d.Verdict, d.Suspect, d.partly = Unknown, suspect, true
	}
}

// lackText says how many runs of which side lack the number; "": none does.
func (d *Difference) lackText() string {
	var parts []string
	for _, side := range []struct {
		name       string
		lack, have int
	}{{"A", d.LackA, d.A.N}, {"B", d.LackB, d.B.N}} {
		if side.lack > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s of %s without it", side.lack,
				plural.Count(side.lack+side.have, "run"), side.name))
		}
	}
	return strings.Join(parts, ", ")
}

// maxLacks is the number of numbers that LackNote names. Our own choice.
const maxLacks = 4

// LackNote names the numbers that cannot be judged because runs lack them, with how many runs of
// which side; "" if there are none.
func LackNote(all []Difference) string {
	var parts []string
	for i := range all {
		if d := &all[i]; d.partly {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s (%s)", d.Point, d.Metric, d.lackText())))
		}
	}
	if parts == nil {
		return ""
	}
	text := strings.Join(parts[:min(len(parts), maxLacks)], "; ")
	if more := len(parts) - maxLacks; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "cannot be judged, since the runs without a value may be the worst (weft results show of one says why): " +
		text
}
