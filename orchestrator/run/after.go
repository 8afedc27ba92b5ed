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

// afterCounts counts drops and queues from an instant on. A nil one counts nothing.
type afterCounts struct {
	x        *experiment.Experiment
	from     units.Time
	base     *fabric.Counters // counters at the instant; nil until it has come
	maxQueue units.Bytes
}

// countAfter adds an action to opts that starts the counts at an instant. It returns nil if the
// instant is the beginning.
func countAfter(x *experiment.Experiment, from units.Time, opts *sim.Options) *afterCounts {
	if from == 0 {
		return nil
	}
	a := &afterCounts{x: x, from: from}
	opts.Actions = append(opts.Actions, sim.Action{At: from, Do: func(_ units.Time, n *fabric.Network) error {
		c := n.Counters()
		a.base = &c
		return nil
	}})
	slices.SortStableFunc(opts.Actions, func(a, b sim.Action) int { return cmp.Compare(a.At, b.At) })
	return a
}

// sample handles a sample of a port's queue.
func (a *afterCounts) sample(now units.Time, port int, queued units.Bytes) {
	if a != nil && now >= a.from && int(a.x.Fabric.Ports[port].From) >= a.x.Graph.Hosts {
		a.maxQueue = max(a.maxQueue, queued)
	}
}

// result returns the counts, by the totals of the whole run. It is nil if the instant never came.
func (a *afterCounts) result(total fabric.Counters) *record.After {
	if a == nil || a.base == nil {
		return nil
	}
	return &record.After{FromUS: a.from.Microseconds(), Drops: total.Dropped - a.base.Dropped,
		MaxQueue: int64(a.maxQueue)}
}
