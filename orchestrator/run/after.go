package run

import (
	"cmp"
	"slices"

	"weft/fabric"
	"weft/results/record"
	"weft/sim"
	"weft/units"
)

// afterCounts counts drops and the largest queue from an instant on. A nil one counts nothing.
type afterCounts struct {
	from units.Time
	base *fabric.Counters // counters at the instant; nil until it has come
	net  *fabric.Network
}

// countAfter adds an action to opts that starts the counts at an instant. It returns nil if the
// instant is the beginning.
func countAfter(from units.Time, opts *sim.Options) *afterCounts {
	if from == 0 {
		return nil
	}
	a := &afterCounts{from: from}
	opts.Actions = append(opts.Actions, sim.Action{At: from, Do: func(now units.Time, n *fabric.Network) error {
		c := n.Counters()
		a.base, a.net = &c, n
		n.RestartMaxQueue(now)
		return nil
	}})
	slices.SortStableFunc(opts.Actions, func(a, b sim.Action) int { return cmp.Compare(a.At, b.At) })
	return a
}

// result returns the counts, by the totals of the whole run. It is nil if the instant never came.
func (a *afterCounts) result(total fabric.Counters) *record.After {
	if a == nil || a.base == nil {
		return nil
	}
	return &record.After{FromUS: a.from.Microseconds(), Drops: total.Dropped - a.base.Dropped,
		MaxQueue: int64(a.net.MaxQueueSince())}
}
