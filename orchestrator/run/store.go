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

// storeClocks writes the error of every host's clock over time.
func storeClocks(x *experiment.Experiment, o *summary.Outcome, dir *store.Run) error {
	if x.Lab.Clocks.Kind().Perfect {
		return nil
	}
	for h := range o.Clocks {
		for _, p := range o.Clocks[h].Samples {
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

// storeAll writes the data files.
func storeAll(x *experiment.Experiment, o *summary.Outcome, parts []record.Part, dir *store.Run) error {
	err := errors.Join(storeClocks(x, o, dir), storeClockPlot(x, o, dir), storeFlows(x, o.Flows, dir),
		dir.Parts(parts), dir.Histogram(store.RTTFile, o.RTT))
	if len(o.Metrics) > 0 {
		err = errors.Join(err, dir.Metrics(o.Metrics))
	}
	if o.Delays != nil {
		err = errors.Join(err, dir.Histogram(store.QueueDelayFile, o.Delays))
	}
	return err
}

// storeClockPlot writes the chart of the clocks.
func storeClockPlot(x *experiment.Experiment, o *summary.Outcome, dir *store.Run) error {
	svg, err := summary.ClockPlot(x, o)
	if err != nil || svg == nil {
		return err
	}
	return dir.Plot("clocks", svg)
}

// storeFlows writes the flows in batches, since a row is twice as large as a flow and there are
// millions of them.
func storeFlows(x *experiment.Experiment, flows []host.Flow, dir *store.Run) error {
	const batch = 4096
	if err := dir.Flows(nil); err != nil { // creates the file even without flows
		return err
	}
	rows := make([]record.Flow, 0, min(batch, len(flows)))
	for part := range slices.Chunk(flows, batch) {
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
