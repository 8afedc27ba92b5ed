package summary

import (
	"fmt"

	"weft/clocksync/node"
	"weft/orchestrator/experiment"
	"weft/results/record"
	"weft/units"
)

// minInstants is the least number of sampling instants whose largest error counts as that of the
// run: with fewer, an error that grows steadily is 5 % larger or more between the last sample and
// the next one, which was not taken. Ours.
const minInstants = 20

// instants returns how many samples of the interval each host has from an instant on, and when the
// last one was.
func instants(clocks []node.Report, every, since units.Time) (n int, last units.Time) {
	for k := range shortest(clocks) {
		if at := clocks[0].Samples[k].At; at >= since && at%every == 0 {
			n, last = n+1, at
		}
	}
	return n, last
}

// boundClocks says which numbers of the samples of clocks have no value, since nobody looked at the
// clocks after the start, and which maxima are lower bounds, since clocks may have been farther
// apart between two samples. Faults of clocks are at samples of their own. All else that changes
// clocks, faults of links included, comes with the corrections of the protocol.
func boundClocks(x *experiment.Experiment, o *Outcome, s *record.Summary) {
	c, k := &x.Lab.Clocks, &s.Clocks
	if k.Samples == 0 {
		return
	}
	n, last := instants(o.Clocks, c.Sample, x.Measure.Clocks)
	if last == 0 {
		s.Lack(fmt.Sprintf("the only sample is that of the start: clocks.sample is %v, and the run ended at %v",
			c.Sample, o.End().Rounded()), "clocks.error_ns", "clocks.reference_ns", "clocks.bound_ns",
			"clocks.coverage", "clocks.converged_us", "clocks.stability")
	}
	why, kind := "", c.Kind()
	switch pace := x.Clocks.Pace(node.Sync(c.Sync)); {
	case pace > 0 && c.Sample > pace:
		why = fmt.Sprintf("of samples every %v (clocks.sample), and clocks are corrected every %v (clocks.%s.%s)",
			c.Sample, pace, c.Sync, kind.Pace)
	case n < minInstants:
		why = fmt.Sprintf("of %d instants (clocks.sample is %v), and it takes %d", n, c.Sample, minInstants)
	}
	s.AtLeast(why, "clocks.error_ns.max", "clocks.reference_ns.max", "clocks.bound_ns.max", "clocks.converged_us")
	if k.Stability == nil {
		return
	}
	s.AtLeast(why, "clocks.stability.max_te_ns")
	for i := range k.Stability.At {
		s.AtLeast(why, fmt.Sprintf("clocks.stability.at.%d.mtie_ns", i))
	}
}
