package run

import (
	"weft/clocksync/node"
	"weft/orchestrator/topology"
	"weft/units"
)

// Windows of Huygens, where the lab leaves them open. Ours.
const (
	usualWindow  = 20 * units.Millisecond // Huygens' 2 s, as short as a lab; a longer one filters more
	usualPairs   = 500                    // in that
	leastPairs   = 32                     // fits want 20 points of each direction, two of a pair that came whole, also when half met queues
	leastWindows = 3                      // of a run: what one finds is used in the next. Shorter ones meet nothing but queues when the run begins with load
	leastRounds  = 10                     // base RTTs: reports of a window travel in a tenth of one
)

// rhythm chooses the window and how many pairs it has, where the lab leaves them open: short runs have short windows.
func (x *Experiment) rhythm(p *node.HuygensParams) {
	if x.Lab.Clocks.Sync != "huygens" {
		return
	}
	if p.Window == 0 {
		p.Window = usualWindow
		if length := x.length(); length > 0 {
			p.Window = min(usualWindow, max(length/leastWindows, leastRounds*x.BaseRTT))
		}
	}
	if p.Pairs == 0 {
		p.Pairs = max(leastPairs, int(usualPairs*p.Window/usualWindow))
	}
}

// length is how long the run lasts, roughly and at least: every repetition of an item takes as long as sending its buffer.
// 0: the lab does not say.
func (x *Experiment) length() units.Time {
	var end, last units.Time
	for i := range x.items {
		it := &x.items[i]
		start := it.Start
		if it.Previous {
			start = max(start, last)
		}
		rate := x.nicRate(0)
		for _, r := range it.Ranks {
			rate = min(rate, x.nicRate(topology.NodeID(r)))
		}
		last = start + units.Time(it.Repeat)*(it.Compute+rate.TransmitTime(it.Size))
		end = max(end, last)
	}
	return max(end, x.Lab.Clocks.For)
}
