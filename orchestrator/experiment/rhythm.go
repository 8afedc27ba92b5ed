package experiment

import (
	"slices"

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
	warmWindows  = 8                      // before the workload: joining takes up to two, a line needs four, and its rate is better by more
)

// rhythm chooses the window and how many pairs it has, where the lab leaves them open: short runs have short windows. It
// returns how long clocks need with these before a workload may rely on them; 0 where the lab chose for itself.
func (x *Experiment) rhythm(p *node.HuygensParams) (warm units.Time) {
	if !x.Lab.Clocks.Kind().Windows {
		return 0
	}
	if p.Window == 0 {
		defer func() { warm = warmWindows * p.Window }()
		p.Window = usualWindow
		if length := x.length(); length > 0 {
			p.Window = min(usualWindow, max(length/leastWindows, leastRounds*x.BaseRTT))
		}
	}
	if p.Pairs == 0 {
		p.Pairs = max(leastPairs, int(usualPairs*p.Window/usualWindow))
	}
	return 0
}

// warmUp lets clocks be kept for a while before the workload begins, as those of a cluster are before a job: what the lab says
// of instants counts from then on. A workload that begins late needs less of it, and clocks alone need none.
func (x *Experiment) warmUp(auto units.Time) {
	by := x.Lab.Clocks.Warmup
	if len(x.Items) == 0 || by < 0 {
		return
	}
	if by == 0 {
		first := x.Items[0].Start
		for i := range x.Items {
			first = min(first, x.Items[i].Start)
		}
		if by = auto - first; by <= 0 {
			return
		}
	}
	for i := range x.Items {
		x.Items[i].Start += by
	}
	for h := range x.Plans {
		for i := range x.Plans[h].Items {
			x.Plans[h].Items[i].Start += by
		}
	}
	l := *x.Lab
	l.Faults = slices.Clone(l.Faults)
	for i := range l.Faults {
		if l.Faults[i].At > 0 { // what is so from the beginning stays so
			l.Faults[i].At += by
		}
	}
	if l.Measure.From > 0 {
		l.Measure.From += by
	}
	x.Lab = &l
}

// length is how long the run lasts, roughly and at least: every repetition of an item takes as long as sending its buffer.
// 0: the lab does not say.
func (x *Experiment) length() units.Time {
	var end, last units.Time
	for i := range x.Items {
		it := &x.Items[i]
		start := it.Start
		if it.Previous {
			start = max(start, last)
		}
		rate := x.NicRate(0)
		for _, r := range it.Ranks {
			rate = min(rate, x.NicRate(topology.NodeID(r)))
		}
		last = start + units.Time(it.Repeat)*(it.Compute+rate.TransmitTime(it.Size))
		end = max(end, last)
	}
	return max(end, x.Lab.Clocks.For)
}
