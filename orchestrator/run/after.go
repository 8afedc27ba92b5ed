package run

import (
	"cmp"
	"slices"

	"weft/fabric"
	"weft/orchestrator/experiment"
	"weft/results/record"
	"weft/sim"
	"weft/units"
)

// after counts what the fabric sees from an instant on. A nil one counts nothing.
type after struct {
	x      *experiment.Experiment
	from   units.Time
	before *fabric.Counters // what had been by then; nil: that has not come yet
	queue  units.Bytes
}

// countFrom prepares for it; nil when the instant is the beginning.
func countFrom(x *experiment.Experiment, from units.Time, opts *sim.Options) *after {
	if from == 0 {
		return nil
	}
	a := &after{x: x, from: from}
	opts.Actions = append(opts.Actions, sim.Action{At: from, Do: func(_ units.Time, n *fabric.Network) error {
		c := n.Counters()
		a.before = &c
		return nil
	}})
	slices.SortStableFunc(opts.Actions, func(a, b sim.Action) int { return cmp.Compare(a.At, b.At) })
	return a
}

// sample takes in what waits in a port.
func (a *after) sample(now units.Time, port int, queued units.Bytes) {
	if a != nil && now >= a.from && int(a.x.Fabric.Ports[port].From) >= a.x.Graph.Hosts {
		a.queue = max(a.queue, queued)
	}
}

// sum is what was counted, by the totals of the whole run. It is nil when the instant never came.
func (a *after) sum(total fabric.Counters) *record.After {
	if a == nil || a.before == nil {
		return nil
	}
	return &record.After{Drops: total.Dropped - a.before.Dropped, MaxQueue: int64(a.queue)}
}
