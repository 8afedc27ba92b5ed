package table

import (
	"fmt"
	"strconv"

	"weft/results/record"
	"weft/units"
)

// synchronization summarizes the cost of keeping the clocks together, or is empty without
// synchronization.
func synchronization(c *record.Clocks) string {
	switch {
	case c.Samples == 0:
		return ""
	case c.Packets == 0:
		return fmt.Sprintf("%s: not synchronized", c.Sync)
	}
	text := fmt.Sprintf("%s: %s packets, %s, %s of what NICs can send", c.Sync, units.Count(c.Packets), size(c.Bytes),
		percent(c.Share))
	for _, part := range []struct {
		n    int64
		what string
	}{{c.Refused, "refused"}, {c.Filtered, "outliers left out"}, {c.Steps, "steps"}, {c.Resets, "clock restarts"},
		{c.Falsetickers, "servers outvoted"}, {c.NoMajority, "rounds without a majority"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text
}

// Clocks returns the table of clock errors, empty if none were measured.
func Clocks(s *record.Summary) (t Table) {
	c := &s.Clocks
	if c.Samples == 0 {
		return t
	}
	t.Head = []string{"clock error", "mean", "p50", "p99", "max", ""}
	row := func(name, distribution, note string) {
		cells := []Cell{Row(name)}
		for _, n := range record.Select(quantiles(distribution)...) {
			cells = append(cells, Right(n.Text(s)))
		}
		t.Add(append(cells, Left(note))...)
	}
	convergence := fmt.Sprintf("still apart by more than %s at the end", micros(c.LimitNS/1e3))
	switch {
	case s.Lacks("clocks.converged_us") != "":
		convergence = s.Lacks("clocks.converged_us")
	case c.ConvergedUS != nil && s.LowerBound("clocks.converged_us") != "":
		convergence = fmt.Sprintf("within %s in all samples since %s", micros(c.LimitNS/1e3), micros(*c.ConvergedUS))
	case c.ConvergedUS != nil:
		convergence = fmt.Sprintf("within %s since %s", micros(c.LimitNS/1e3), micros(*c.ConvergedUS))
	}
	row("between hosts", "clock_error", convergence)
	if c.Reference != nil {
		row("to the reference", "clock_reference", "")
	}
	if c.Coverage != nil && c.Bound != nil {
		row("stated bound", "clock_bound", holds(s))
	}
	return t
}

// quantiles returns the names of the numbers of a distribution.
func quantiles(distribution string) []string {
	return []string{distribution + ".mean", distribution + ".p50", distribution + ".p99", distribution + ".max"}
}

// holds says of how many pairs of samples the bounds that both hosts state hold, or why that is not
// known.
func holds(s *record.Summary) string {
	c := &s.Clocks
	if why := s.Lacks("clocks.coverage"); why != "" {
		return why
	}
	text := "holds for " + percent(*c.Coverage)
	if c.BoundPairs == c.Pairs { // an older Weft counted none
		return text + " of pairs"
	}
	return fmt.Sprintf("%s of the %s of %s pairs that state one", text, units.Count(c.BoundPairs), units.Count(c.Pairs))
}

// Stability returns the table of clock stability over averaging times, with limits to compare it
// with. It is empty for runs with a workload, whose tables suffice, and for runs without
// measurements.
func Stability(s *record.Summary) (t Table) {
	k := s.Clocks.Stability
	if k == nil || s.Flows.Count > 0 {
		return t
	}
	ns := func(v float64) Cell { return Right(micros(v / 1e3)) }
	share := func(v float64) Cell { return Right(strconv.FormatFloat(v, 'g', 3, 64)) }
	none := Right("")
	t.Head = []string{"to the reference, worst host", "ADEV", "MDEV", "TDEV", "MTIE", "mean", "max", ""}
	for i, a := range k.At {
		mean, most := none, none
		if i == 0 {
			mean, most = ns(k.Constant), Right(record.Select("clock_stability.max")[0].Text(s))
		}
		mtie := record.Select(fmt.Sprintf("clock_stability.%d.mtie", i))[0]
		t.Add(Left("over "+micros(a.TauUS)), share(a.ADEV), share(a.MDEV), ns(a.TDEV), Right(mtie.Text(s)), mean, most)
	}
	for i, c := range k.Classes {
		note := ""
		if i == 0 {
			note = "limits for 1000 s of one clock, for comparison alone"
		}
		t.Add(Row("G.8273.2 class "+c.Name), none, none, ns(c.TDEV), ns(c.MTIE), ns(c.Constant), ns(c.MaxTE),
			Left(note))
	}
	return t
}
