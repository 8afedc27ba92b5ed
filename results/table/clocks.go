package table

import (
	"fmt"
	"io"
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

// clocks returns the table of clock errors, or nil if none were measured.
func clocks(s *record.Summary) *grid {
	c := &s.Clocks
	if c.Samples == 0 {
		return nil
	}
	var g grid
	g.row(header("clock error"), header("mean"), header("p50"), header("p99"), header("max"), header(""))
	row := func(name, path string, q *record.Quantiles, note string) {
		if q == nil {
			return
		}
		value := func(part string, v float64) cell { return right(Value(s, path+part, micros(v/1e3))) }
		g.row(header(name), value(".mean", q.Mean), value(".p50", q.P50), value(".p99", q.P99), value(".max", q.Max),
			left(note))
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
	row("between hosts", "clocks.error_ns", &c.Error, convergence)
	row("to the reference", "clocks.reference_ns", c.Reference, "")
	if c.Coverage != nil {
		row("stated bound", "clocks.bound_ns", c.Bound, holds(s))
	}
	return &g
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

// stability returns the table of clock stability over averaging times, with limits to compare it
// with. It is nil for runs with a workload, whose tables suffice, and for runs without
// measurements.
func stability(s *record.Summary) *grid {
	t := s.Clocks.Stability
	if t == nil || s.Flows.Count > 0 {
		return nil
	}
	var g grid
	ns := func(v float64) cell { return right(micros(v / 1e3)) }
	share := func(v float64) cell { return right(strconv.FormatFloat(v, 'g', 3, 64)) }
	none := right("")
	g.row(header("to the reference, worst host"), header("ADEV"), header("MDEV"), header("TDEV"), header("MTIE"),
		header("mean"), header("max"), header(""))
	for i, a := range t.At {
		mean, most := none, none
		if i == 0 {
			mean, most = ns(t.Constant), right(Value(s, "clocks.stability.max_te_ns", micros(t.MaxTE/1e3)))
		}
		mtie := Value(s, fmt.Sprintf("clocks.stability.at.%d.mtie_ns", i), micros(a.MTIE/1e3))
		g.row(left("over "+micros(a.TauUS)), share(a.ADEV), share(a.MDEV), ns(a.TDEV), right(mtie), mean, most)
	}
	for i, c := range t.Classes {
		note := ""
		if i == 0 {
			note = "limits for 1000 s of one clock, for comparison alone"
		}
		g.row(header("G.8273.2 class "+c.Name), none, none, ns(c.TDEV), ns(c.MTIE), ns(c.Constant), ns(c.MaxTE),
			left(note))
	}
	return &g
}

// clockPoints writes the table of several runs with measured clocks.
func clockPoints(w io.Writer, runs []*record.Summary, st Style) error {
	var g grid
	g.row(header("lab"), header("point"), header("engine"), header("clocks"), header("error p50"), header("p99"),
		header("max"),
		header("converged"), header("bound p50"), header("holds"), header("cost"), header("status"))
	for _, s := range runs {
		c := &s.Clocks
		converged, bound, holds := "no", "–", "–"
		if c.ConvergedUS != nil {
			converged = Value(s, "clocks.converged_us", micros(*c.ConvergedUS))
		}
		if c.Coverage != nil {
			holds = Value(s, "clocks.coverage", percent(*c.Coverage))
		}
		if c.Bound != nil {
			bound = Value(s, "clocks.bound_ns.p50", micros(c.Bound.P50/1e3))
		}
		value := func(part string, v float64) cell { return right(Value(s, "clocks.error_ns"+part, micros(v/1e3))) }
		g.row(left(s.Lab), left(Point(s.Point)), left(s.Engine), left(c.Sync), value(".p50", c.Error.P50),
			value(".p99", c.Error.P99), value(".max", c.Error.Max), right(converged), right(bound), right(holds),
			right(percent(c.Share)),
			outcome(s))
	}
	return g.write(w, st, "")
}
