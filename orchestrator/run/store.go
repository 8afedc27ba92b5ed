package run

import (
	"errors"
	"slices"

	"weft/host"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/results/record"
	"weft/results/store"
)

// errStopped is returned for rows that were left out because the run was interrupted.
var errStopped = errors.New("interrupted")

// storeClocks writes the error of every host's clock over time.
func storeClocks(x *experiment.Experiment, o *summary.Outcome, dir *store.Run, stopped func() bool) error {
	if x.Lab.Clocks.Kind().Perfect {
		return nil
	}
	for h := range o.Clocks {
		for k, p := range o.Clocks[h].Samples {
			if k%1024 == 0 && stopped() {
				return errStopped
			}
			row := record.Clock{
				At: p.At, Host: x.Graph.Nodes[h].Name,
				Error: p.Error, Bound: p.Bound, State: p.State.String(), Down: p.Down,
			}
			if err := dir.Clock(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// storeAll writes the data files. Once stopped returns true it leaves out rows of clocks and flows,
// and returns warnings that name the files.
func storeAll(x *experiment.Experiment, o *summary.Outcome, parts []record.Part, dir *store.Run,
	stopped func() bool) (short []string, err error) {
	for _, f := range []struct {
		name  string
		write func() error
	}{
		{store.ClocksFile, func() error { return storeClocks(x, o, dir, stopped) }},
		{store.ClocksFile, func() error { return storeClockPlot(x, o, dir, stopped) }},
		{store.FlowsFile, func() error { return storeFlows(x, o.Flows, dir, stopped) }},
	} {
		failed := f.write()
		switch {
		case !errors.Is(failed, errStopped):
			err = errors.Join(err, failed)
		default:
			short = append(short, f.name+" lacks rows, since the run was interrupted")
		}
	}
	err = errors.Join(err, dir.Parts(parts), dir.Histogram(store.RTTFile, o.RTT))
	if len(o.Metrics) > 0 {
		err = errors.Join(err, dir.Metrics(o.Metrics))
	}
	if o.Delays != nil {
		err = errors.Join(err, dir.Histogram(store.QueueDelayFile, o.Delays))
	}
	return short, err
}

// storeClockPlot writes the chart of the clocks.
func storeClockPlot(x *experiment.Experiment, o *summary.Outcome, dir *store.Run, stopped func() bool) error {
	if stopped() {
		return nil
	}
	svg, err := summary.ClockPlot(x, o)
	if err != nil || svg == nil {
		return err
	}
	return dir.Plot("clocks", svg)
}

// storeFlows writes the flows in batches, since a row is twice as large as a flow and there are
// millions of them.
func storeFlows(x *experiment.Experiment, flows []host.Flow, dir *store.Run, stopped func() bool) error {
	const batch = 4096
	if err := dir.Flows(nil); err != nil { // creates the file even without flows
		return err
	}
	rows := make([]record.Flow, 0, min(batch, len(flows)))
	for part := range slices.Chunk(flows, batch) {
		if stopped() {
			return errStopped
		}
		rows = rows[:0]
		for _, f := range part {
			row := record.Flow{
				Item: int(f.Item), Repeat: int(f.Repeat),
				Src: x.Graph.Nodes[f.Src].Name, Dst: x.Graph.Nodes[f.Dst].Name,
				Conn: uint32(f.Conn), Message: f.Message, Size: f.Size, Start: f.Start, Finished: f.Acked != 0,
				Ideal: x.Ideal(f.Conn, f.Size),
			}
			if f.Acked != 0 {
				row.FCT = f.Acked - f.Start
			}
			rows = append(rows, row)
		}
		if err := dir.Flows(rows); err != nil {
			return err
		}
	}
	return nil
}
