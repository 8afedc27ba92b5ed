package experiment

import (
	"slices"

	"weft/units"
)

// warmUp delays the workload so that clocks can synchronize before it begins, as those of a cluster
// have before a job. Instants of the lab count from then on. A workload that begins late needs less
// delay, and clocks alone need none.
func (x *compiler) warmUp(auto units.Time) {
	by := x.Lab.Clocks.Warmup
	first, ok := x.Begins()
	if !ok || by < 0 {
		return
	}
	if by == 0 {
		if by = auto - first; by <= 0 {
			return
		}
	}
	x.Clocks.Warmup = by
	for i := range x.Items {
		x.Items[i].Start += by
	}
	for i := range x.Programs {
		x.Programs[i].Begin += by
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
