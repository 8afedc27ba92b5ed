package experiment

import (
	"slices"

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
func (x *compiler) rhythm() (warm units.Time) {
	p := &x.Clocks.Huygens
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
func (x *compiler) warmUp(auto units.Time) {
	by := x.Lab.Clocks.Warmup
	if len(x.Items) == 0 || by < 0 {
		return
	}
	if by == 0 {
		first, _ := x.begins()
		if by = auto - first; by <= 0 {
			return
		}
	}
	x.Clocks.Warmup = by
	for i := range x.Items {
		x.Items[i].Start += by
	}
	for h := range x.Plans {
		for i := range x.Plans[h].Items {
			x.Plans[h].Items[i].Start += by
		}
	}
	x.Faults.All = slices.Clone(x.Lab.Faults)
	for i := range x.Faults.All {
		if f := &x.Faults.All[i]; f.At > 0 { // what is so from the beginning stays so
			f.At += by
		}
	}
}
