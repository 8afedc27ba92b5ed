package summary

import (
	"fmt"
	"slices"

	"weft/clocksync"
	"weft/clocksync/metrics"
	"weft/orchestrator/experiment"
	"weft/results/plot"
	"weft/units"
)

// ClockPlot draws the distance between the hosts' clocks over time, as SVG. It returns nil if
// clocks are perfect or were not sampled.
func ClockPlot(x *experiment.Experiment, o *Outcome) ([]byte, error) {
	if len(o.Clocks) == 0 || x.Lab.Clocks.Kind().Perfect {
		return nil, nil
	}
	grid := shortest(o.Clocks)
	if grid == 0 {
		return nil, nil
	}
	c := clockChart(x, o, grid)
	svg, err := c.SVG()
	if err != nil {
		return nil, fmt.Errorf("plot of the clocks: %w", err)
	}
	return svg, nil
}

// clockChart shows the worst and the median distance of two hosts, and the bounds that hosts state,
// on a logarithmic axis. Values below a picosecond are drawn as one.
func clockChart(x *experiment.Experiment, o *Outcome, grid int) plot.Chart {
	at := make([]metrics.Reading, len(o.Clocks))
	t := make([]float64, grid)
	worst, median, bound := make([]float64, grid), make([]float64, grid), make([]float64, grid)
	var apart, bounds []units.Time
	stated := false
	for k := range grid {
		apart, bounds = apart[:0], bounds[:0]
		for h := range o.Clocks {
			p := &o.Clocks[h].Samples[k]
			at[h] = metrics.Reading{Error: p.Error}
			if p.State != clocksync.Free && !p.Down {
				bounds = append(bounds, p.Bound)
			}
		}
		down := func(h int) bool { return o.Clocks[h].Samples[k].Down }
		i := metrics.Compare(at, down, func(d units.Time) { apart = append(apart, d) })
		t[k] = o.Clocks[0].Samples[k].At.Microseconds() / 1e3
		worst[k], median[k] = drawn(i.Worst), drawn(middle(apart))
		bound[k] = drawn(middle(bounds))
		stated = stated || len(bounds) > 0
	}
	c := plot.Chart{
		Title: fmt.Sprintf("%s: clocks kept by %s", x.Lab.Name, x.Lab.Clocks.Sync),
		Caption: "True time between two hosts' synchronized clocks, over all pairs; what hosts state is the bound " +
			"of their own error.",
		X: plot.Axis{Label: "lab time", Unit: "ms"},
		Y: plot.Axis{Label: "error", Unit: "ns", Scale: plot.Log10},
		Series: []plot.Series{
			plot.Thin(plot.Series{Name: "worst pair", X: t, Y: worst}),
			plot.Thin(plot.Series{Name: "median pair", X: t, Y: median}),
		},
		Marks: []plot.Mark{{Name: "limit", At: x.Lab.Clocks.Limit.Nanoseconds(), On: plot.OnY}},
	}
	if stated {
		c.Series = append(c.Series, plot.Thin(plot.Series{Name: "stated bound, median", X: t, Y: bound, Dashed: true}))
	}
	return c
}

// drawn returns a time in nanoseconds, at least a picosecond, for the logarithmic axis.
func drawn(t units.Time) float64 { return max(t, 1).Nanoseconds() }

// middle returns the median, or 0 without values. It sorts its argument.
func middle(all []units.Time) units.Time {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
