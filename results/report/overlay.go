package report

import (
	"fmt"
	"maps"
	"slices"

	"weft/results/plot"
	"weft/results/store"
)

// Overlay draws runs over each other, each with a label: over time "queues", what waits in all
// switches, and "rates", what arrives; or the distribution of "fct", "slowdown" or "queueing". It
// leaves out runs that did not record it. The error is plot.ErrEmpty if none did.
func Overlay(runs []*Run, labels []string, name string) (plot.Chart, error) {
	var c plot.Chart
	switch name {
	case "queues":
		c = plot.Chart{Title: "Waiting in all switches", X: timeAxis(), Y: plot.Axis{Label: "queued", Unit: "B",
			Zero: true}}
	case "rates":
		c = plot.Chart{Title: "What arrives at all hosts", X: timeAxis(),
			Y: plot.Axis{Label: "throughput", Unit: "Gb/s", Zero: true}}
	case "queueing":
		c.Title = "Time in switch queues"
	default:
		c = FlowChart(name)
	}
	for i, r := range runs {
		var s plot.Series
		var err error
		switch name {
		case "queues":
			s, err = r.waiting()
		case "rates":
			s, err = r.arriving()
		case "queueing":
			var f Figure
			if f, err = r.delays(); len(f.Series) > 0 {
				f.X.Scale = max(f.X.Scale, c.X.Scale) // logarithmic if one needs it
				c.X, c.Y, s = f.X, f.Y, f.Series[0]
			}
		default:
			s, err = Distribution(r.Dir, name, "")
		}
		if err := store.IfPresent(err); err != nil {
			return c, err
		}
		if len(s.X) > 0 {
			s.Name = labels[i]
			c.Series = append(c.Series, s)
		}
	}
	if len(c.Series) == 0 || name == "queues" && !slices.ContainsFunc(c.Series, waits) {
		return c, fmt.Errorf("plot %q: %w", c.Title, plot.ErrEmpty)
	}
	if name == "queues" || name == "rates" {
		c.Spans, c.Caption = runs[0].spans()
	}
	Paint(c.Series)
	return c, nil
}

// waits reports whether a series is not zero throughout.
func waits(s plot.Series) bool { return slices.Max(s.Y) > 0 }

// waiting returns the bytes that waited in all switches over time.
func (r *Run) waiting() (plot.Series, error) {
	type row struct {
		Time   int64  `parquet:"time_ps"`
		Port   string `parquet:"port"`
		Queued int64  `parquet:"queued_bytes"`
	}
	network, err := store.ReadNetwork(r.Dir)
	if err != nil {
		return plot.Series{}, store.ErrNoTable // the run has no frames
	}
	hosts := map[string]bool{} // ports
	for _, p := range network.Ports {
		hosts[p.Name] = p.From >= 0 && p.From < len(network.Nodes) && network.Nodes[p.From].Host
	}
	at := map[int64]float64{}
	err = store.Scan(r.Dir, store.FramesFile, func(rows []row) error {
		for _, q := range rows {
			if hosts[q.Port] {
				q.Queued = 0
			}
			at[q.Time] += float64(q.Queued)
		}
		return nil
	})
	return plot.Thin(overTime(at)), err
}

// arriving returns the throughput of all connections over time, in Gb/s.
func (r *Run) arriving() (plot.Series, error) {
	type row struct {
		Time    int64 `parquet:"time_ps"`
		Conn    int64 `parquet:"conn"`
		Arrived int64 `parquet:"arrived_bytes"`
	}
	at, before := map[int64]float64{}, map[int64]int64{}
	err := store.Scan(r.Dir, store.FrameConnsFile, func(rows []row) error {
		for _, c := range rows {
			at[c.Time] += float64(max(c.Arrived-before[c.Conn], 0))
			before[c.Conn] = max(c.Arrived, before[c.Conn])
		}
		return nil
	})
	const steps = 150 // packets arrive whole: over less than a round trip their rate says little
	all, out := overTime(at), plot.Series{Steps: true}
	if len(all.X) < 2 {
		return out, err
	}
	from, sum, step := all.X[0], 0.0, (all.X[len(all.X)-1]-all.X[0])/steps
	if r.Summary != nil {
		step = max(step, r.Summary.BaseRTTUS)
	}
	for i := 1; i < len(all.X); i++ {
		sum += all.Y[i]
		if span := all.X[i] - from; span >= step || i == len(all.X)-1 {
			out.X, out.Y = append(out.X, from), append(out.Y, sum*8/span/1e3)
			from, sum = all.X[i], 0
		}
	}
	out.X, out.Y = append(out.X, from), append(out.Y, 0)
	return out, err
}

// overTime returns values by instants in picoseconds as a series.
func overTime(at map[int64]float64) plot.Series {
	s := plot.Series{Steps: true}
	for _, t := range slices.Sorted(maps.Keys(at)) {
		s.X, s.Y = append(s.X, float64(t)/1e6), append(s.Y, at[t])
	}
	return s
}

// sameAxes widens the axes of two charts to the range of both.
func sameAxes(a, b *plot.Chart) {
	for i := range 2 {
		low, high := 0.0, 0.0
		for _, c := range []*plot.Chart{a, b} {
			for _, s := range c.Series {
				values := [2][]float64{s.X, s.Y}[i]
				if len(values) > 0 {
					low, high = min(low, slices.Min(values)), max(high, slices.Max(values))
				}
			}
		}
		for _, c := range []*plot.Chart{a, b} {
			axis := [2]*plot.Axis{&c.X, &c.Y}[i]
			axis.Min, axis.Max = low, high
		}
	}
}
